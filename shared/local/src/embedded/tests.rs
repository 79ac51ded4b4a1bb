//! Promises of the embedded store beyond the conformance suite: durability, faults, and a model.

mod behaviour;
mod damage;
mod device;
mod faults;
mod model;
mod opening;
mod power_cut;
mod room;
mod snapshot;
mod waiting_objects;
mod withheld;

use std::time::Duration;

use posthaste_core::model::Timestamp;
use posthaste_ports::{
    OutgoingMessage, QueueName, QueueReceiver, ReceiveRequest, ReceivedMessage, Successor,
};

use super::lock::FolderLock;
use super::{EmbeddedStore, LocalOptions};
use device::Device;
use posthaste_testkit::{ManualClock, SeededEntropy};

const START: Timestamp = Timestamp::from_millis(1_800_000_000_000);

fn clock() -> ManualClock {
    ManualClock::new(START)
}

fn open_with(
    device: &Device,
    options: &LocalOptions,
    clock: &ManualClock,
) -> EmbeddedStore<ManualClock> {
    let disk = Box::new(device.clone());
    EmbeddedStore::open_disk(
        disk,
        FolderLock::none(),
        options,
        clock.clone(),
        &SeededEntropy::new(1),
    )
    .unwrap()
}

fn open(device: &Device) -> EmbeddedStore<ManualClock> {
    open_with(device, &LocalOptions::default(), &clock())
}

fn message(body: impl Into<String>) -> OutgoingMessage {
    OutgoingMessage {
        body: body.into().into(),
        group: None,
        delay: Duration::ZERO,
    }
}

fn to(to: QueueName, body: impl Into<String>) -> Successor {
    Successor {
        to,
        message: message(body),
    }
}

fn ask(max: usize) -> ReceiveRequest {
    ReceiveRequest {
        max,
        visibility: Duration::from_secs(30),
        wait: Duration::ZERO,
    }
}

fn text(message: &ReceivedMessage) -> String {
    String::from_utf8(message.body.to_vec()).unwrap()
}

/// Receives all that is visible; the bodies, sorted.
async fn drain(local: &EmbeddedStore<ManualClock>, queue: QueueName) -> Vec<String> {
    let mut bodies = Vec::new();
    loop {
        let received = local.queue(queue).receive(ask(10)).await.unwrap();
        if received.is_empty() {
            break;
        }
        bodies.extend(received.iter().map(text));
    }
    bodies.sort();
    bodies
}
