//! Messages whose records the store refuses, or that cannot be read: what waits, and what is
//! counted.

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusRecorder};
use posthaste_ports::{ErrorKind, OutgoingMessage, QueueReceiver, QueueSender, ReceiveRequest};
use posthaste_testkit::{CallFault, PortOperation};

use super::*;

fn refusing() -> FaultPlan {
    FaultPlan::at(CallFault::Before(ErrorKind::Other), |effect| {
        effect.operation == PortOperation::Put
    })
}

/// The message of these records in the queue, received so many times.
async fn received(kit: &Kit, records: &[LogRecord], receive_count: u32) -> ReceivedMessage {
    let queue = kit.queue.sibling_queue(QueueName::Records);
    let body = render_records(records).remove(0);
    queue
        .send_batch(vec![OutgoingMessage {
            body,
            group: None,
            delay: Duration::ZERO,
        }])
        .await
        .unwrap();
    let one = ReceiveRequest {
        max: 10,
        visibility: MINUTE,
        wait: Duration::ZERO,
    };
    let received = queue.receive(one).await.unwrap().remove(0);
    ReceivedMessage {
        receive_count,
        ..received
    }
}

#[tokio::test]
async fn a_message_that_was_refused_often_waits_in_a_fresh_one() {
    let kit = Kit::with(&refusing());
    // Its records are of two hours, and both are refused.
    let all = [
        record(1, at("2026-03-07T02:00:00Z")),
        record(2, at("2026-03-07T03:00:00Z")),
    ];
    let tired = received(&kit, &all, 10).await;
    assert_eq!(
        kit.record
            .handle(vec![tired.clone()], kit.deadline())
            .await
            .failures,
        []
    );
    let waiting = kit.queue.sibling_queue(QueueName::Records).messages();
    assert_eq!(
        (waiting.len(), waiting[0].delay.as_secs(), &waiting[0].body),
        (1, 900, &tired.body)
    );
    kit.plan.switch(false);
    let fresh = message("fresh", waiting[0].body.clone());
    assert_eq!(
        kit.record
            .handle(vec![fresh], kit.deadline())
            .await
            .failures,
        []
    );
    assert_eq!(kit.ids().await, ids_of(&all));
}

#[tokio::test]
async fn a_message_that_was_refused_a_few_times_comes_back_as_it_is() {
    let kit = Kit::with(&refusing());
    let young = received(&kit, &records(0..2), 9).await;
    assert_eq!(
        kit.record
            .handle(vec![young.clone()], kit.deadline())
            .await
            .failures,
        [young.id]
    );
    let kit = Kit::new();
    let written = received(&kit, &records(0..2), 49).await;
    assert_eq!(
        kit.record
            .handle(vec![written], kit.deadline())
            .await
            .failures,
        []
    );
    let waiting = kit.queue.sibling_queue(QueueName::Records).messages();
    assert!(
        waiting.iter().all(|message| message.delay.is_zero()),
        "what is written is not put off"
    );
}

#[tokio::test]
async fn a_message_that_cannot_be_put_off_comes_back_as_it_is() {
    let kit = Kit::with(&refusing());
    let gone = message("gone", render_records(&records(0..2)).remove(0));
    let gone = ReceivedMessage {
        receive_count: 30,
        ..gone
    };
    assert_eq!(
        kit.record
            .handle(vec![gone.clone()], kit.deadline())
            .await
            .failures,
        [gone.id]
    );
}

#[tokio::test]
async fn a_store_that_hangs_leaves_time_to_put_messages_off() {
    let kit = Kit::with(&FaultPlan::at(CallFault::HangBefore, |effect| {
        effect.operation == PortOperation::Put
    }));
    let tired = received(&kit, &records(0..2), 20).await;
    let handled = kit.record.handle(vec![tired], kit.deadline());
    let passes = async {
        while kit.plan.faults() == 0 {
            tokio::task::yield_now().await;
        }
        kit.clock.advance(Duration::from_secs(50));
    };
    let (response, ()) = tokio::join!(handled, passes);
    assert_eq!(response.failures, []);
    assert_eq!(
        kit.queue.sibling_queue(QueueName::Records).messages().len(),
        1
    );
}

fn shown(recorder: &PrometheusRecorder, name: &str) -> Vec<String> {
    let text = recorder.handle().render();
    let values = text
        .lines()
        .filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    values.map(str::to_owned).collect()
}

/// The age of the oldest refused record is shown until the record is written.
#[tokio::test]
async fn age_of_the_oldest_refused_record_shows_until_written() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let kit = Kit::with(&refusing());
    let age = || shown(&recorder, "OldestUnwrittenRecordInSeconds");
    let bodies = [records(0..1), records(5..6)].map(|it| render_records(&it).remove(0));
    let batch = vec![
        message("a", bodies[0].clone()),
        message("b", bodies[1].clone()),
    ];
    kit.record.handle(batch.clone(), kit.deadline()).await;
    assert_eq!(
        age(),
        ["600"],
        "the records are of three o'clock, and it is ten past"
    );
    kit.clock.advance(MINUTE);
    kit.record.handle(batch[1..].to_vec(), kit.deadline()).await;
    assert_eq!(age(), ["655"]);
    kit.plan.switch(false);
    kit.record.handle(batch, kit.deadline()).await;
    assert_eq!(age(), ["0"]);
}

#[tokio::test]
async fn unreadable_messages_count_as_the_records_they_show() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let kit = Kit::new();
    let batch = vec![
        message("three", r#"{"v":1,"records":[{},{},{}]}"#),
        message("unknown", "{"),
    ];
    assert_eq!(kit.record.handle(batch, kit.deadline()).await.failures, []);
    assert_eq!(shown(&recorder, "LogRecordsLostCount"), ["4"]);
}
