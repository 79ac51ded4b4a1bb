//! A decorator that makes chosen calls of a port fail, for tests with a fault at every effect.

mod plan;

use std::future::pending;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use posthaste_core::api::WaitingCount;
use posthaste_core::model::{Link, SendFailure};
use posthaste_core::pressure::DueOfGroup;

use posthaste_ports::{
    AlwaysBegin, ETag, ErrorKind, GroupCount, LastLook, ListPage, MessageId, ObjectStore,
    OutgoingMessage, PortError, PutCondition, QueueCounts, QueueReceiver, QueueSender,
    ReceiptHandle, ReceiveRequest, ReceivedMessage, RevalidatedObject, StoredObject, Successor,
    WebhookAnswer, WebhookClient, WebhookRequest, WithheldMessages,
};

use crate::recorded::PortOperation;
pub use plan::{CallFault, EntryFault, FaultPlan, PortEffect, at_every_effect, at_every_effect_of};

/// Makes calls of `P` fail by a plan.
#[derive(Debug, Clone)]
pub struct Faulty<P> {
    port: P,
    label: &'static str,
    plan: FaultPlan,
}

impl<P> Faulty<P> {
    /// Decorates `port`; the plan knows it as `label`.
    pub fn new(port: P, label: &'static str, plan: &FaultPlan) -> Self {
        Self {
            port,
            label,
            plan: plan.clone(),
        }
    }

    fn decide(&self, operation: PortOperation, key: &str) -> Option<CallFault> {
        self.plan.decide(self.label, operation, key)
    }

    /// Makes `call` with what the plan has for it.
    async fn run<T, F>(
        &self,
        operation: PortOperation,
        key: &str,
        call: impl FnOnce() -> F,
    ) -> Result<T, PortError>
    where
        F: Future<Output = Result<T, PortError>>,
    {
        apply(self.decide(operation, key), call).await
    }
}

/// The call is begun only where it may happen: a port may act before its future is polled.
async fn apply<T, F>(fault: Option<CallFault>, call: impl FnOnce() -> F) -> Result<T, PortError>
where
    F: Future<Output = Result<T, PortError>>,
{
    match fault {
        None | Some(CallFault::Entries(_)) => call().await,
        Some(CallFault::Before(kind)) => Err(planned(kind)),
        Some(CallFault::HangBefore) => pending().await,
        Some(CallFault::After(kind)) => {
            call().await?;
            Err(planned(kind))
        }
        Some(CallFault::HangAfter) => {
            // The result, good or bad, is never seen.
            drop(call().await);
            pending().await
        }
    }
}

fn planned(kind: ErrorKind) -> PortError {
    PortError::new("get past a planned fault", kind)
}

#[deny(clippy::missing_trait_methods)]
impl<P: QueueSender> QueueSender for Faulty<P> {
    async fn send_batch(
        &self,
        entries: Vec<OutgoingMessage>,
    ) -> Result<Vec<Result<MessageId, PortError>>, PortError> {
        match self.decide(PortOperation::SendBatch, "") {
            Some(CallFault::Entries(faults)) => {
                send_with_faults(&self.port, entries, &faults).await
            }
            fault => apply(fault, || self.port.send_batch(entries)).await,
        }
    }

    fn sends_whole(&self) -> bool {
        self.port.sends_whole()
    }

    async fn send_whole(
        &self,
        entries: Vec<OutgoingMessage>,
        beside: Vec<Successor>,
    ) -> Result<(), PortError> {
        let fault = of_whole(self.decide(PortOperation::SendBatch, ""));
        apply(fault, || self.port.send_whole(entries, beside)).await
    }

    async fn withhold(&self, entries: Vec<OutgoingMessage>) -> Result<WithheldMessages, PortError> {
        let fault = of_whole(self.decide(PortOperation::SendBatch, ""));
        apply(fault, || self.port.withhold(entries)).await
    }
}

/// The fault of messages that are sent all or none: with one of them, all fail.
fn of_whole(fault: Option<CallFault>) -> Option<CallFault> {
    match fault {
        Some(CallFault::Entries(faults)) => {
            faults.first().map(|fault| CallFault::Before(fault.kind))
        }
        fault => fault,
    }
}

pub(crate) async fn send_with_faults(
    port: &impl QueueSender,
    entries: Vec<OutgoingMessage>,
    faults: &[EntryFault],
) -> Result<Vec<Result<MessageId, PortError>>, PortError> {
    let fault_at = |index| faults.iter().find(|fault| fault.index == index);
    let is_sent = |index| fault_at(index).is_none_or(|fault| fault.is_sent);
    let length = entries.len();
    let sent: Vec<_> = entries
        .into_iter()
        .enumerate()
        .filter(|(i, _)| is_sent(*i))
        .map(|(_, entry)| entry)
        .collect();
    let answers = if sent.is_empty() {
        Vec::new()
    } else {
        port.send_batch(sent).await?
    };
    let mut answers = answers.into_iter();
    let lost = || Err(planned(ErrorKind::Other));
    let merged = (0..length).map(|index| {
        let answer = if is_sent(index) {
            answers.next().unwrap_or_else(lost)
        } else {
            lost()
        };
        fault_at(index).map_or(answer, |fault| Err(planned(fault.kind)))
    });
    Ok(merged.collect())
}

#[deny(clippy::missing_trait_methods)]
impl<P: QueueReceiver> QueueReceiver for Faulty<P> {
    async fn receive(&self, request: ReceiveRequest) -> Result<Vec<ReceivedMessage>, PortError> {
        self.run(PortOperation::Receive, "", || self.port.receive(request))
            .await
    }

    async fn acknowledge(&self, receipt: &ReceiptHandle) -> Result<(), PortError> {
        self.run(PortOperation::Acknowledge, "", || {
            self.port.acknowledge(receipt)
        })
        .await
    }

    async fn replace(
        &self,
        receipt: &ReceiptHandle,
        successors: Vec<Successor>,
    ) -> Result<(), PortError> {
        self.run(PortOperation::Replace, "", || {
            self.port.replace(receipt, successors)
        })
        .await
    }

    async fn change_visibility(
        &self,
        receipt: &ReceiptHandle,
        visibility: Duration,
    ) -> Result<(), PortError> {
        let call = || self.port.change_visibility(receipt, visibility);
        self.run(PortOperation::ChangeVisibility, "", call).await
    }

    async fn counts(&self) -> Result<QueueCounts, PortError> {
        self.run(PortOperation::Counts, "", || self.port.counts())
            .await
    }

    async fn due_by_group(&self) -> Result<Option<Vec<DueOfGroup>>, PortError> {
        self.run(PortOperation::Counts, "", || self.port.due_by_group())
            .await
    }

    async fn due_counts(&self, groups: &[String]) -> Result<Option<Vec<u64>>, PortError> {
        self.run(PortOperation::Counts, "", || self.port.due_counts(groups))
            .await
    }

    async fn waiting_counts(
        &self,
        groups: &[String],
    ) -> Result<Option<Vec<GroupCount>>, PortError> {
        self.run(PortOperation::Waiting, "", || {
            self.port.waiting_counts(groups)
        })
        .await
    }

    async fn waiting_by_group(&self) -> Result<Option<Vec<(Arc<str>, GroupCount)>>, PortError> {
        self.run(PortOperation::Waiting, "", || self.port.waiting_by_group())
            .await
    }
}

#[deny(clippy::missing_trait_methods)]
impl<P: ObjectStore> ObjectStore for Faulty<P> {
    fn waiting_objects(&self, of: Option<&[String]>) -> Option<Vec<(Arc<str>, WaitingCount)>> {
        self.port.waiting_objects(of)
    }

    async fn get(&self, key: &str) -> Result<Option<StoredObject>, PortError> {
        self.run(PortOperation::Get, key, || self.port.get(key))
            .await
    }

    async fn get_if_changed(
        &self,
        key: &str,
        known: &ETag,
    ) -> Result<RevalidatedObject, PortError> {
        self.run(PortOperation::GetIfChanged, key, || {
            self.port.get_if_changed(key, known)
        })
        .await
    }

    async fn get_range(&self, key: &str, range: Range<u64>) -> Result<Bytes, PortError> {
        self.run(PortOperation::GetRange, key, || {
            self.port.get_range(key, range)
        })
        .await
    }

    async fn put(
        &self,
        key: &str,
        bytes: Bytes,
        condition: PutCondition,
    ) -> Result<ETag, PortError> {
        self.run(PortOperation::Put, key, || {
            self.port.put(key, bytes, condition)
        })
        .await
    }

    async fn delete(&self, key: &str) -> Result<(), PortError> {
        self.run(PortOperation::Delete, key, || self.port.delete(key))
            .await
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        max: usize,
    ) -> Result<ListPage, PortError> {
        self.run(PortOperation::List, prefix, || {
            self.port.list(prefix, after, max)
        })
        .await
    }
}

#[deny(clippy::missing_trait_methods)]
impl<P: WebhookClient> WebhookClient for Faulty<P> {
    async fn send(&self, request: WebhookRequest) -> WebhookAnswer {
        self.send_if(request, &AlwaysBegin).await
    }

    async fn send_if(&self, request: WebhookRequest, look: &impl LastLook) -> WebhookAnswer {
        let fault = self.decide(PortOperation::Post, "");
        let answered = apply(fault, || async {
            Ok(self.port.send_if(request, look).await)
        })
        .await;
        answered.unwrap_or_else(|error| {
            let failure = if error.kind == ErrorKind::TimedOut {
                SendFailure::TimedOut
            } else {
                SendFailure::Socket
            };
            WebhookAnswer {
                failure_text: None,
                result: Err(failure),
                took: Duration::ZERO,
                late: None,
            }
        })
    }

    /// Passes the call on: it cannot fail.
    fn drop_link(&self, link: &Link) {
        self.port.drop_link(link);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::MemoryEndpoint;
    use crate::memory::{MemoryQueue, MemoryStore, message, request};

    async fn bodies(queue: &MemoryQueue) -> Vec<String> {
        let all = ReceiveRequest {
            max: 10,
            visibility: Duration::from_secs(30),
            wait: Duration::ZERO,
        };
        let received = queue.receive(all).await.unwrap();
        received
            .into_iter()
            .map(|m| String::from_utf8(m.body.to_vec()).unwrap())
            .collect()
    }

    /// Sends `a`, `b`, `c` under a fault and tells each entry's error and what arrived.
    async fn sent(fault: CallFault) -> (Result<Vec<Option<ErrorKind>>, ErrorKind>, Vec<String>) {
        let queue = MemoryQueue::default();
        let faulty = Faulty::new(queue.clone(), "q", &FaultPlan::nth(0, fault));
        let entries = ["a", "b", "c"].map(message).to_vec();
        let result = faulty.send_batch(entries).await;
        let kinds = result.map(|entries| {
            entries
                .into_iter()
                .map(|r| r.err().map(|e| e.kind))
                .collect()
        });
        (kinds.map_err(|e| e.kind), bodies(&queue).await)
    }

    /// Faults before the effect leave nothing of it, and faults after it leave all.
    #[tokio::test]
    async fn fault_before_the_effect_leaves_none_and_after_it_all() {
        assert_eq!(
            sent(CallFault::Before(ErrorKind::TimedOut)).await,
            (Err(ErrorKind::TimedOut), vec![])
        );
        let all = vec!["a".to_owned(), "b".to_owned(), "c".to_owned()];
        assert_eq!(
            sent(CallFault::After(ErrorKind::Other)).await,
            (Err(ErrorKind::Other), all)
        );
    }

    #[tokio::test]
    async fn entries_of_a_batch_fail_by_themselves() {
        let faults = CallFault::Entries(vec![
            EntryFault {
                index: 0,
                is_sent: false,
                kind: ErrorKind::Other,
            },
            EntryFault {
                index: 2,
                is_sent: true,
                kind: ErrorKind::TimedOut,
            },
            EntryFault {
                index: 9,
                is_sent: false,
                kind: ErrorKind::Other,
            },
        ]);
        let kinds = vec![Some(ErrorKind::Other), None, Some(ErrorKind::TimedOut)];
        assert_eq!(
            sent(faults).await,
            (Ok(kinds), vec!["b".to_owned(), "c".to_owned()])
        );
        let none = (0..3)
            .map(|index| EntryFault {
                index,
                is_sent: false,
                kind: ErrorKind::Other,
            })
            .collect();
        assert_eq!(
            sent(CallFault::Entries(none)).await,
            (Ok(vec![Some(ErrorKind::Other); 3]), vec![])
        );
    }

    /// Plans count effects over several ports, and every effect can be hit.
    #[tokio::test]
    async fn plan_counts_over_several_ports_and_hits_every_effect() {
        let mut hit = Vec::new();
        at_every_effect(async |plan, place| {
            let queue = Faulty::new(MemoryQueue::default(), "queue", plan);
            let store = Faulty::new(MemoryStore::default(), "store", plan);
            let put = store
                .put("k", Bytes::from("v"), PutCondition::Always)
                .await
                .is_err();
            let counted = queue.counts().await.is_err();
            let got = store.get("k").await.is_err();
            assert_eq!(plan.effects(), 3, "{place}");
            hit.push((put, counted, got));
        })
        .await;
        let expected = [
            (true, false, false),
            (false, true, false),
            (false, false, true),
            (false, false, false),
        ];
        assert_eq!(hit, [expected, expected].concat());
    }

    /// Plans fail one of the calls that are meant, and none while they are off.
    #[tokio::test]
    async fn plan_fails_one_selected_call_and_none_while_off() {
        let is_get = |effect: PortEffect<'_>| effect.operation == PortOperation::Get;
        let plan = FaultPlan::nth_of(1, CallFault::Before(ErrorKind::Other), is_get);
        let store = Faulty::new(MemoryStore::default(), "state", &plan);
        let fails = async || {
            (
                store.get("k").await.is_err(),
                store.list("", None, 1).await.is_err(),
            )
        };
        plan.switch(false);
        assert_eq!([fails().await, fails().await], [(false, false); 2]);
        plan.switch(true);
        assert_eq!(
            [fails().await, fails().await, fails().await],
            [(false, false), (true, false), (false, false)]
        );
        assert_eq!((plan.effects(), plan.faults()), (10, 1));
    }

    #[tokio::test]
    async fn a_read_of_a_range_fails_by_itself() {
        let is_range = |effect: PortEffect<'_>| {
            effect.operation == PortOperation::GetRange && effect.key == "k"
        };
        let plan = FaultPlan::nth_of(0, CallFault::Before(ErrorKind::TimedOut), is_range);
        let store = Faulty::new(MemoryStore::default(), "log", &plan);
        store
            .put("k", Bytes::from("value"), PutCondition::Always)
            .await
            .unwrap();
        assert!(store.get("k").await.unwrap().is_some());
        assert_eq!(
            store.get_range("k", 0..2).await.map_err(|e| e.kind),
            Err(ErrorKind::TimedOut)
        );
        assert_eq!(store.get_range("k", 0..2).await.unwrap(), "va");
        assert_eq!((plan.effects(), plan.faults()), (4, 1));
    }

    #[tokio::test]
    async fn a_rule_sees_port_operation_and_key() {
        let store = MemoryStore::default();
        let plan = FaultPlan::by(|effect| {
            let is_hit = effect.port == "state"
                && effect.operation == PortOperation::Put
                && effect.key == "topics/a.json";
            is_hit.then_some(CallFault::After(ErrorKind::TimedOut))
        });
        let faulty = Faulty::new(store.clone(), "state", &plan);
        let put = |key| faulty.put(key, Bytes::from("v"), PutCondition::Always);
        assert_eq!(
            put("topics/a.json").await.unwrap_err().kind,
            ErrorKind::TimedOut
        );
        put("topics/b.json").await.unwrap();
        assert!(store.get("topics/a.json").await.unwrap().is_some());
        assert_eq!((plan.effects(), plan.faults()), (2, 1));
    }

    #[tokio::test]
    async fn a_hanging_call_ends_only_by_being_dropped() {
        let store = MemoryStore::default();
        for (fault, is_there) in [(CallFault::HangBefore, false), (CallFault::HangAfter, true)] {
            let plan = FaultPlan::nth(0, fault);
            let faulty = Faulty::new(store.clone(), "state", &plan);
            plan.kill(faulty.put("k", Bytes::from("v"), PutCondition::Always))
                .await;
            assert_eq!(store.get("k").await.unwrap().is_some(), is_there);
        }
    }

    #[tokio::test]
    async fn a_webhook_under_a_fault_answers_a_failure() {
        let client = MemoryEndpoint::default();
        let check = async |fault, failure, requests| {
            let faulty = Faulty::new(client.clone(), "webhook", &FaultPlan::nth(0, fault));
            let answer = faulty.send(request("https://a.example/", "x")).await;
            assert_eq!(answer.result.unwrap_err(), failure);
            assert_eq!(client.take().len(), requests);
        };
        check(CallFault::Before(ErrorKind::Other), SendFailure::Socket, 0).await;
        check(
            CallFault::After(ErrorKind::TimedOut),
            SendFailure::TimedOut,
            1,
        )
        .await;
    }
}
