//! The report of an opening on the process before.

use bytes::Bytes;
use posthaste_ports::{ObjectStore, PutCondition, QueueSender};

use super::*;

#[tokio::test]
async fn opening_knows_what_was_due_and_when_it_was_written() {
    let device = Device::default();
    let clock = clock();
    let local = open_with(&device, &LocalOptions::default(), &clock);
    assert_eq!(local.opening_report().written_until, None);
    let delayed = OutgoingMessage {
        delay: Duration::from_mins(10),
        ..message("delayed")
    };
    let deliveries = local.queue(QueueName::Deliveries);
    let sent = vec![message("one"), message("three"), delayed];
    deliveries.send_batch(sent).await.unwrap();
    let records = local.queue(QueueName::Records);
    records.send_batch(vec![message("record")]).await.unwrap();
    // One is under way when the process ends.
    assert_eq!(deliveries.receive(ask(1)).await.unwrap().len(), 1);
    clock.advance(Duration::from_secs(5));
    let put = PutCondition::Always;
    let state = local.state_store();
    state.put("a.json", Bytes::from("{}"), put).await.unwrap();
    local.close().await;

    clock.advance(Duration::from_secs(5));
    let local = open_with(&device, &LocalOptions::default(), &clock);
    let opening = local.opening_report();
    let written_until = Some(START + Duration::from_secs(5));
    assert_eq!(opening.written_until, written_until);
    assert_eq!(opening.due_deliveries, 2);
    let bytes = |body: &Bytes| body.len() as u64;
    assert_eq!(local.sum_over_due(bytes).await.unwrap(), 8);
    local.close().await;

    // Only as many are looked at as can be in flight at once.
    let few = LocalOptions {
        deliveries_in_flight_max: 1,
        ..LocalOptions::default()
    };
    let local = open_with(&device, &few, &clock);
    assert_eq!(local.opening_report().due_deliveries, 2);
    assert_eq!(local.sum_over_due(bytes).await.unwrap(), 3);
    local.close().await;
}
