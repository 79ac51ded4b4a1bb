//! A queue in memory that records its requests and responds by a script.

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::join_all;
use parking_lot::Mutex;
use posthaste_core::model::Timestamp;
use posthaste_ports::{
    ErrorKind, MessageId, OutgoingMessage, PortError, QueueName, ReceiptHandle, Successor,
};
use posthaste_testkit::ManualClock;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

use crate::queue::batch::ItemResult;
use crate::queue::calls::BatchCalls;
use crate::queue::replace::MessageReplacer;

/// Turns of other tasks before time must pass.
const TURNS: usize = 20;

/// The contents of a request: the bodies that went to a queue, or the receipts deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum QueueRequest {
    Send(QueueName, Vec<String>),
    Delete(Vec<String>),
}

/// The response to a request, given the request and the number before it.
type Script = dyn Fn(usize, &QueueRequest) -> Answer + Send + Sync;

pub(super) enum Answer {
    /// Every item is done.
    Done,
    /// Failures of these items.
    Items(Vec<(usize, ErrorKind)>),
    /// The request failed.
    Whole(ErrorKind),
    /// The response lists no item.
    Silent,
    Panic,
}

/// The requests of SQS, in memory.
struct Fake {
    asked: Arc<Mutex<Vec<QueueRequest>>>,
    script: Box<Script>,
    /// Permits, one per request that may end.
    gate: Arc<Semaphore>,
}

impl Fake {
    async fn answer(&self, asked: QueueRequest) -> Result<Vec<Result<(), PortError>>, PortError> {
        let before = self.asked.lock().len();
        let items = asked.items().len();
        let answer = (self.script)(before, &asked);
        self.asked.lock().push(asked);
        self.gate.acquire().await.unwrap().forget();
        let mut results: Vec<_> = (0..items).map(|_| Ok(())).collect();
        match answer {
            Answer::Done => {}
            Answer::Items(failed) => {
                for (place, kind) in failed {
                    results[place] = Err(PortError::new("item", kind));
                }
            }
            Answer::Whole(kind) => return Err(PortError::new("request", kind)),
            Answer::Silent => results.clear(),
            Answer::Panic => panic!("the script says so"),
        }
        Ok(results)
    }
}

impl QueueRequest {
    pub(super) fn items(&self) -> &[String] {
        match self {
            Self::Send(_, items) | Self::Delete(items) => items,
        }
    }
}

impl BatchCalls for Fake {
    async fn send(
        &self,
        to: QueueName,
        messages: Vec<OutgoingMessage>,
    ) -> Result<Vec<ItemResult<MessageId>>, PortError> {
        let text = |message: OutgoingMessage| String::from_utf8(message.body.into()).unwrap();
        let results = self
            .answer(QueueRequest::Send(
                to,
                messages.into_iter().map(text).collect(),
            ))
            .await?;
        Ok(results
            .into_iter()
            .map(|result| result.map(|()| MessageId("id".into())))
            .collect())
    }

    async fn delete(&self, receipts: Vec<ReceiptHandle>) -> Result<Vec<ItemResult<()>>, PortError> {
        self.answer(QueueRequest::Delete(
            receipts
                .into_iter()
                .map(|receipt| receipt.0.to_string())
                .collect(),
        ))
        .await
    }
}

pub(super) struct World {
    replacer: Arc<MessageReplacer<Fake, ManualClock>>,
    pub(super) clock: ManualClock,
    asked: Arc<Mutex<Vec<QueueRequest>>>,
    pub(super) gate: Arc<Semaphore>,
}

impl World {
    /// A queue that responds by a script.
    pub(super) fn by(
        script: impl Fn(usize, &QueueRequest) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let asked = Arc::default();
        let gate = Arc::new(Semaphore::new(Semaphore::MAX_PERMITS));
        let fake = Fake {
            asked: Arc::clone(&asked),
            script: Box::new(script),
            gate: Arc::clone(&gate),
        };
        let clock = ManualClock::new(Timestamp::EPOCH);
        Self {
            replacer: Arc::new(MessageReplacer::new(fake, clock.clone())),
            clock,
            asked,
            gate,
        }
    }

    pub(super) fn good() -> Self {
        Self::by(|_, _| Answer::Done)
    }

    /// A queue that does not respond until the gate is opened.
    pub(super) fn shut() -> Self {
        let world = Self::good();
        world.gate.forget_permits(Semaphore::MAX_PERMITS);
        world
    }

    pub(super) fn asked(&self) -> Vec<QueueRequest> {
        self.asked.lock().clone()
    }

    /// The number of items in each request.
    pub(super) fn shape(&self) -> Vec<usize> {
        self.asked()
            .iter()
            .map(|asked| asked.items().len())
            .collect()
    }

    /// Replaces message `n` by one in the delivery queue.
    pub(super) async fn replace(&self, n: usize) -> Result<(), ErrorKind> {
        self.replace_by(n, vec![(QueueName::Deliveries, format!("successor {n}"))])
            .await
    }

    pub(super) async fn replace_by(
        &self,
        n: usize,
        successors: Vec<(QueueName, String)>,
    ) -> Result<(), ErrorKind> {
        let successor = |(to, body): (_, String)| {
            let message = OutgoingMessage {
                body: Bytes::from(body),
                group: None,
                delay: Duration::from_secs(10),
            };
            Successor { to, message }
        };
        let successors = successors.into_iter().map(successor).collect();
        self.replacer
            .replace(ReceiptHandle(n.to_string().into()), successors)
            .await
            .map_err(|e| e.kind)
    }

    /// Replaces messages `0..count` at once.
    pub(super) async fn replace_all(&self, count: usize) -> Vec<Result<(), ErrorKind>> {
        self.passing(join_all((0..count).map(|n| self.replace(n))))
            .await
    }

    /// Lets every task run that can without time passing.
    pub(super) async fn settle(&self) {
        for _ in 0..TURNS {
            tokio::task::yield_now().await;
        }
    }

    /// Lets time pass, from one sleeper to the next, until `work` is done.
    pub(super) async fn passing<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        for _ in 0..1000 {
            for _ in 0..TURNS {
                if let Some(done) = work.as_mut().now_or_never() {
                    return done;
                }
                tokio::task::yield_now().await;
            }
            self.clock.advance_to_next();
        }
        panic!("the work never ends; asked so far: {:?}", self.asked());
    }
}

pub(super) fn deliveries(successors: &[&str]) -> QueueRequest {
    QueueRequest::Send(
        QueueName::Deliveries,
        successors.iter().map(|text| (*text).to_owned()).collect(),
    )
}

pub(super) fn deletes(receipts: &[&str]) -> QueueRequest {
    QueueRequest::Delete(receipts.iter().map(|text| (*text).to_owned()).collect())
}
