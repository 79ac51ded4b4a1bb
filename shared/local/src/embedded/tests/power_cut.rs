//! A power cut at any point: work whose result was `Ok` is there, and other work is there whole or
//! not at all.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use futures_util::future::join_all;
use posthaste_ports::{
    ObjectStore, PutCondition, QueueName, QueueReceiver, QueueSender, ReceiptHandle,
};
use proptest::prelude::*;

use super::device::{Device, Fault};
use super::{FolderLock, ask, clock, drain, message, open, text, to};
use crate::{EmbeddedStore, LocalOptions};
use posthaste_testkit::{ManualClock, SeededEntropy};

/// Steps that are done at once, so that several share a commit.
type Round = Vec<Step>;

#[derive(Debug, Clone)]
enum Step {
    Send { messages: usize, kib: usize },
    Receive { max: usize },
    Acknowledge,
    Replace { successors: usize },
    Put { key: u8 },
}

/// The end of a call that wrote something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Ok,
    Err,
}

/// The requests to the store, with their results.
#[derive(Debug, Default)]
struct Book {
    numbers: u32,
    /// Bodies that were sent together.
    sends: Vec<(Vec<String>, Ended)>,
    acknowledged: BTreeSet<String>,
    /// A body and its successors.
    replaces: Vec<(String, Vec<String>, Ended)>,
    /// By key: the values in the order of writing.
    puts: BTreeMap<u8, Vec<(String, Ended)>>,
    held: Vec<(ReceiptHandle, String)>,
}

impl Book {
    fn body(&mut self, kib: usize) -> String {
        self.numbers += 1;
        format!("{:06}{}", self.numbers, "x".repeat(kib * 1024))
    }
}

/// The work of a step, with everything it needs.
enum Call {
    Send(Vec<String>),
    Receive(usize),
    Acknowledge(ReceiptHandle, String),
    Replace(ReceiptHandle, String, Vec<String>),
    Put(u8, String),
}

impl Call {
    fn of(step: &Step, book: &mut Book) -> Option<Self> {
        Some(match *step {
            Step::Send { messages, kib } => {
                Self::Send((0..messages).map(|_| book.body(kib)).collect())
            }
            Step::Receive { max } => Self::Receive(max),
            Step::Acknowledge => {
                let (receipt, body) = book.held.pop()?;
                Self::Acknowledge(receipt, body)
            }
            Step::Replace { successors } => {
                let (receipt, body) = book.held.pop()?;
                Self::Replace(
                    receipt,
                    body,
                    (0..successors).map(|_| book.body(1)).collect(),
                )
            }
            Step::Put { key } => Self::Put(key, book.body(2)),
        })
    }

    /// Does it, and returns how it ended and what was received.
    async fn make(
        &self,
        local: &EmbeddedStore<ManualClock>,
    ) -> (Ended, Vec<(ReceiptHandle, String)>) {
        let queue = local.queue(QueueName::Deliveries);
        let mut held = Vec::new();
        let is_ok = match self {
            Self::Send(bodies) => {
                let entries = bodies.iter().map(message).collect();
                let answers = queue.send_batch(entries).await;
                answers.is_ok_and(|answers| answers.iter().all(Result::is_ok))
            }
            Self::Receive(max) => match queue.receive(ask(*max)).await {
                Ok(received) => {
                    held.extend(received.iter().map(|m| (m.receipt.clone(), text(m))));
                    true
                }
                Err(_) => false,
            },
            Self::Acknowledge(receipt, _) => queue.acknowledge(receipt).await.is_ok(),
            Self::Replace(receipt, _, successors) => {
                // Into two queues, so that a half would show.
                let name = |n| {
                    if n % 2 == 0 {
                        QueueName::DeadLetters
                    } else {
                        QueueName::Deliveries
                    }
                };
                let successors = successors
                    .iter()
                    .enumerate()
                    .map(|(n, body)| to(name(n), body));
                queue.replace(receipt, successors.collect()).await.is_ok()
            }
            Self::Put(key, value) => {
                let value = Bytes::from(value.clone());
                local
                    .state_store()
                    .put(&key.to_string(), value, PutCondition::Always)
                    .await
                    .is_ok()
            }
        };
        (if is_ok { Ended::Ok } else { Ended::Err }, held)
    }

    fn note(self, ended: Ended, book: &mut Book) {
        match self {
            Self::Send(bodies) => book.sends.push((bodies, ended)),
            Self::Receive(_) => {}
            Self::Acknowledge(_, body) => {
                book.acknowledged.insert(body);
            }
            Self::Replace(_, body, successors) => book.replaces.push((body, successors, ended)),
            Self::Put(key, value) => book.puts.entry(key).or_default().push((value, ended)),
        }
    }
}

async fn work(local: &EmbeddedStore<ManualClock>, rounds: &[Round]) -> Book {
    let mut book = Book::default();
    for round in rounds {
        let mut keys = BTreeSet::new();
        // One put per key and round: the order of those at once is not known.
        let is_sole = |step: &&Step| !matches!(step, Step::Put { key } if !keys.insert(*key));
        let calls: Vec<_> = round
            .iter()
            .filter(is_sole)
            .filter_map(|step| Call::of(step, &mut book))
            .collect();
        let ended = join_all(calls.iter().map(|call| call.make(local))).await;
        for (call, (ended, held)) in calls.into_iter().zip(ended) {
            call.note(ended, &mut book);
            book.held.extend(held);
        }
    }
    book
}

/// Checks what is left against what was promised.
async fn check(local: &EmbeddedStore<ManualClock>, book: &Book) {
    let mut left: BTreeSet<String> = BTreeSet::new();
    for queue in [QueueName::Deliveries, QueueName::DeadLetters] {
        for body in drain(local, queue).await {
            assert!(left.insert(body.clone()), "{} is there twice", &body[..6]);
        }
    }
    let replaced_ok = |body: &String| {
        book.replaces
            .iter()
            .any(|(old, _, ended)| old == body && *ended == Ended::Ok)
    };
    let replaced = |body: &String| book.replaces.iter().any(|(old, ..)| old == body);
    let settled = |body: &String| book.acknowledged.contains(body) || replaced(body);
    let written = book.sends.iter().map(|(bodies, ended)| (bodies, *ended));
    let written: Vec<_> = written
        .chain(book.replaces.iter().map(|(_, new, ended)| (new, *ended)))
        .collect();
    for (bodies, ended) in &written {
        let there = bodies
            .iter()
            .filter(|body| left.contains(*body) || settled(body))
            .count();
        let is_whole = there == bodies.len()
            || (*ended == Ended::Err && bodies.iter().all(|b| !left.contains(b)));
        assert!(
            is_whole,
            "{there} of {} messages of a call that ended {ended:?}",
            bodies.len()
        );
    }
    for (old, new, ended) in &book.replaces {
        let has_old = left.contains(old);
        let has_new = new.iter().any(|body| left.contains(body));
        assert!(
            !(has_old && has_new),
            "a message and its successors are both there"
        );
        assert!(
            *ended == Ended::Err || !has_old,
            "a replaced message is still there"
        );
        let is_lost = !has_old && !has_new && !new.is_empty() && !new.iter().any(settled);
        assert!(!is_lost, "a message and its successors are both gone");
    }
    let known: BTreeSet<_> = written
        .iter()
        .flat_map(|(bodies, _)| bodies.iter())
        .collect();
    assert!(
        left.iter()
            .all(|body| known.contains(body) && !replaced_ok(body))
    );
    for (key, puts) in &book.puts {
        let found = local
            .state_store()
            .get(&key.to_string())
            .await
            .unwrap()
            .map(|object| object.bytes);
        let last_ok = puts.iter().rposition(|(_, ended)| *ended == Ended::Ok);
        let mut allowed: Vec<_> = puts[last_ok.unwrap_or(0)..]
            .iter()
            .map(|(value, _)| Some(Bytes::from(value.clone())))
            .collect();
        allowed.extend(last_ok.is_none().then_some(None));
        assert!(allowed.contains(&found), "key {key} holds another value");
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1_usize..=10, 0_usize..6).prop_map(|(messages, kib)| Step::Send { messages, kib }),
        3 => (1_usize..=10).prop_map(|max| Step::Receive { max }),
        2 => Just(Step::Acknowledge),
        2 => (0_usize..=4).prop_map(|successors| Step::Replace { successors }),
        2 => (0_u8..3).prop_map(|key| Step::Put { key }),
    ]
}

fn run(rounds: &[Round], after: u32, again_after: u32, seed: u64) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let device = Device::default();
        let local = open(&device);
        device.arm(Some(Fault::PowerCut { after }));
        let book = work(&local, rounds).await;
        let survivor = device.after_power_cut(seed);
        drop(local);
        let survivor = cut_while_opening(&survivor, again_after, seed);
        let local = open(&survivor);
        check(&local, &book).await;
        local.close().await;
        // And what was found is found again: the recovery itself was durable.
        check(&open(&survivor.after_power_cut(seed)), &book).await;
    });
}

/// The power fails again while the folder is opened, or soon after.
fn cut_while_opening(device: &Device, after: u32, seed: u64) -> Device {
    device.arm(Some(Fault::PowerCut { after }));
    let disk = Box::new(device.clone());
    let options = LocalOptions::default();
    let opened = EmbeddedStore::open_disk(
        disk,
        FolderLock::none(),
        &options,
        clock(),
        &SeededEntropy::new(1),
    );
    let survivor = device.after_power_cut(seed.wrapping_add(1));
    drop(opened);
    survivor
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn whatever_was_answered_survives_a_power_cut(
        rounds in prop::collection::vec(prop::collection::vec(step(), 1..6), 1..25),
        after in 0_u32..400,
        again_after in 0_u32..60,
        seed: u64,
    ) {
        run(&rounds, after, again_after, seed);
    }
}
