//! Batches: what is written, what comes back, what is lost and counted.

use posthaste_core::delivery_log::render_records;
use posthaste_ports::{ErrorKind, QueueName, QueueReceiver, QueueSender, ReceiveRequest};
use posthaste_testkit::memory::message as outgoing;
use posthaste_testkit::{CallFault, FaultPlan, PortOperation};

use super::*;

#[tokio::test]
async fn batch_becomes_one_file_an_hour_with_each_record_once() {
    let kit = Kit::new();
    let late = record(9_000, at("2026-03-07T01:59:59Z"));
    let mut all = records(0..100);
    all.push(late);
    let bodies = [render_records(&all), render_records(&all[..50])].concat();
    let batch = (0..)
        .zip(bodies)
        .map(|(n, body)| message(&format!("{n}"), body))
        .collect();
    assert_eq!(kit.record.handle(batch, kit.deadline()).await.failures, []);
    assert_eq!(kit.ids().await, ids_of(&all));
    let keys = kit.log.keys("");
    assert_eq!(keys.len(), 2);
    assert!(
        keys[0].starts_with("date=2026-03-07/hour=01/10-"),
        "{keys:?}"
    );
    assert!(
        keys[1].starts_with("date=2026-03-07/hour=03/10-"),
        "{keys:?}"
    );
    kit.record.handle(Vec::new(), kit.deadline()).await;
    assert_eq!(kit.log.keys("").len(), 2, "nothing makes no file");
}

#[tokio::test]
async fn messages_come_back_whose_hour_was_not_written() {
    let is_of_three = |key: &str| key.starts_with(HOUR);
    let plan = FaultPlan::at(CallFault::Before(ErrorKind::Full), move |effect| {
        effect.operation == PortOperation::Put && is_of_three(effect.key)
    });
    let kit = Kit::with(&plan);
    let three = record(1, at("2026-03-07T03:00:00Z"));
    let two = record(2, at("2026-03-07T02:00:00Z"));
    let both = [three.clone(), two.clone()];
    let bodies = [
        render_records(&[three]),
        render_records(&both),
        render_records(&[two]),
    ]
    .concat();
    let batch: Vec<_> = ["three", "both", "two"]
        .into_iter()
        .zip(bodies)
        .map(|(id, it)| message(id, it))
        .collect();
    let failures = kit
        .record
        .handle(batch.clone(), kit.deadline())
        .await
        .failures;
    assert_eq!(failures, ["three", "both"].map(|id| MessageId(id.into())));
    plan.switch(false);
    assert_eq!(
        kit.record
            .handle(batch[..2].to_vec(), kit.deadline())
            .await
            .failures,
        []
    );
    assert_eq!(
        kit.ids().await,
        ids_of(&both),
        "what was written twice is read once"
    );
}

#[tokio::test]
async fn after_the_deadline_nothing_is_settled() {
    let kit = Kit::with(&FaultPlan::at(CallFault::HangBefore, |effect| {
        effect.operation == PortOperation::Put
    }));
    let body = render_records(&records(0..1)).remove(0);
    let handled = kit.record.handle(vec![message("a", body)], kit.deadline());
    let passes = async {
        while kit.clock.sleepers() == 0 || kit.log.keys("").len() > 1 {
            tokio::task::yield_now().await;
        }
        kit.clock.advance(MINUTE);
    };
    let (response, ()) = tokio::join!(handled, passes);
    assert_eq!(response.failures, [MessageId("a".into())]);
}

#[tokio::test]
async fn a_message_that_cannot_be_read_holds_up_no_other() {
    let kit = Kit::new();
    let good = render_records(&records(0..3)).remove(0);
    let batch = vec![
        message("bad", "{"),
        message("good", good),
        message("odd", r#"{"v":1}"#),
    ];
    assert_eq!(kit.record.handle(batch, kit.deadline()).await.failures, []);
    assert_eq!(kit.ids().await.len(), 3);
}

#[tokio::test]
async fn a_message_of_a_newer_version_waits_for_a_newer_program() {
    let kit = Kit::new();
    let queue = kit.queue.sibling_queue(QueueName::Records);
    queue
        .send_batch(vec![outgoing(r#"{"v":9,"records":7}"#)])
        .await
        .unwrap();
    let all = ReceiveRequest {
        max: 10,
        visibility: MINUTE,
        wait: Duration::ZERO,
    };
    let batch = queue.receive(all).await.unwrap();
    assert_eq!(kit.record.handle(batch, kit.deadline()).await.failures, []);
    let waiting = queue.messages();
    assert_eq!((waiting.len(), waiting[0].delay.as_secs()), (1, 900));
    let stale = kit
        .record
        .handle(vec![message("gone", r#"{"v":9}"#)], kit.deadline())
        .await;
    assert_eq!(stale.failures, [MessageId("gone".into())]);
}
