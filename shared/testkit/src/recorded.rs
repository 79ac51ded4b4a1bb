//! A decorator that notes every call of a port, for tests of cost: the exact SQS and S3 calls per
//! delivered event.
//!
//! The decorator keeps all calls until they are taken, so it must not be used in a process that
//! runs for long.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use posthaste_core::api::WaitingCount;
use posthaste_core::model::Link;
use posthaste_core::pressure::DueOfGroup;

use posthaste_ports::{
    AlwaysBegin, ETag, ErrorKind, GroupCount, LastLook, ListPage, MessageId, ObjectStore,
    OutgoingMessage, PortError, PutCondition, QueueCounts, QueueReceiver, QueueSender,
    ReceiptHandle, ReceiveRequest, ReceivedMessage, RevalidatedObject, StoredObject, Successor,
    WebhookAnswer, WebhookClient, WebhookRequest, WithheldMessages,
};

/// A method of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PortOperation {
    /// [`QueueSender::send_batch`].
    SendBatch,
    /// [`QueueReceiver::receive`].
    Receive,
    /// [`QueueReceiver::acknowledge`].
    Acknowledge,
    /// [`QueueReceiver::replace`].
    Replace,
    /// [`QueueReceiver::change_visibility`].
    ChangeVisibility,
    /// [`QueueReceiver::counts`], and the counts by group.
    Counts,
    /// [`QueueReceiver::waiting_counts`].
    Waiting,
    /// [`ObjectStore::get`].
    Get,
    /// [`ObjectStore::get_if_changed`].
    GetIfChanged,
    /// [`ObjectStore::get_range`].
    GetRange,
    /// [`ObjectStore::put`].
    Put,
    /// [`ObjectStore::delete`].
    Delete,
    /// [`ObjectStore::list`].
    List,
    /// [`WebhookClient::send`].
    Post,
}

/// The end of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallEnd {
    /// With a result. Single entries of a batch may have failed all the same.
    Ok,
    /// With an error of this kind.
    Err(ErrorKind),
    /// The caller dropped it before it ended.
    Cut,
}

/// One call of a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedCall {
    /// The label of the decorator it went through.
    pub port: &'static str,
    /// The method.
    pub operation: PortOperation,
    /// The object's key, the listing's prefix, or the endpoint's URL without its query; empty for
    /// a queue.
    pub key: String,
    /// The number of messages or objects that went out or came back.
    pub entries: usize,
    /// The number of bytes of bodies that went out or came back.
    pub bytes: usize,
    /// The end of the call.
    pub ended: CallEnd,
}

/// Calls in the order in which they ended. Clones share them; several decorators may note into one.
#[derive(Debug, Clone, Default)]
pub struct RecordedCalls(Arc<Mutex<CallLog>>);

#[derive(Debug, Default)]
struct CallLog {
    ended: Vec<RecordedCall>,
    ended_ever: u64,
    under_way: usize,
}

impl RecordedCalls {
    /// A copy of all calls.
    pub fn all(&self) -> Vec<RecordedCall> {
        self.lock().ended.clone()
    }

    /// Returns all calls, and starts a new list.
    pub fn take(&self) -> Vec<RecordedCall> {
        std::mem::take(&mut self.lock().ended)
    }

    /// The number of calls of an operation, over all ports.
    pub fn count(&self, operation: PortOperation) -> usize {
        self.lock()
            .ended
            .iter()
            .filter(|call| call.operation == operation)
            .count()
    }

    /// The number of calls that have ended so far, also those that were taken since.
    pub fn ended_ever(&self) -> u64 {
        self.lock().ended_ever
    }

    /// The number of calls that have begun and not ended.
    pub fn under_way(&self) -> usize {
        self.lock().under_way
    }

    /// Does work that counts as under way but is not noted as a call: calls that the test itself
    /// makes.
    pub async fn unnoted<F: Future>(&self, work: F) -> F::Output {
        let _under_way = UnderWay::begin(self);
        work.await
    }

    fn lock(&self) -> MutexGuard<'_, CallLog> {
        self.0.lock()
    }

    fn begin(&self, port: &'static str, operation: PortOperation, key: &str) -> OpenCall {
        let call = RecordedCall {
            port,
            operation,
            key: key.to_owned(),
            entries: 0,
            bytes: 0,
            ended: CallEnd::Cut,
        };
        OpenCall {
            under_way: UnderWay::begin(self),
            call,
        }
    }
}

/// A call under way; noted when dropped, so that one whose future was dropped is noted too.
struct OpenCall {
    under_way: UnderWay,
    call: RecordedCall,
}

/// Counts as under way until it is dropped.
struct UnderWay(RecordedCalls);

impl UnderWay {
    fn begin(calls: &RecordedCalls) -> Self {
        calls.lock().under_way += 1;
        Self(calls.clone())
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.lock().under_way -= 1;
    }
}

impl OpenCall {
    fn carrying(mut self, entries: usize, bytes: usize) -> Self {
        self.call.entries = entries;
        self.call.bytes = bytes;
        self
    }

    fn end<T>(mut self, result: &Result<T, PortError>) {
        self.call.ended = result
            .as_ref()
            .map_or_else(|error| CallEnd::Err(error.kind), |_| CallEnd::Ok);
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        let mut noted = self.under_way.0.lock();
        noted.ended.push(self.call.clone());
        noted.ended_ever += 1;
    }
}

/// Notes the calls of `P` under a label.
#[derive(Debug, Clone)]
pub struct Recorded<P> {
    port: P,
    label: &'static str,
    calls: RecordedCalls,
}

impl<P> Recorded<P> {
    /// Decorates `port`; its calls are noted in `calls` as those of `label`.
    pub fn new(port: P, label: &'static str, calls: &RecordedCalls) -> Self {
        Self {
            port,
            label,
            calls: calls.clone(),
        }
    }

    fn begin(&self, operation: PortOperation, key: &str) -> OpenCall {
        self.calls.begin(self.label, operation, key)
    }
}

#[deny(clippy::missing_trait_methods)]
impl<P: QueueSender> QueueSender for Recorded<P> {
    async fn send_batch(
        &self,
        entries: Vec<OutgoingMessage>,
    ) -> Result<Vec<Result<MessageId, PortError>>, PortError> {
        let bytes = entries.iter().map(|entry| entry.body.len()).sum();
        let call = self
            .begin(PortOperation::SendBatch, "")
            .carrying(entries.len(), bytes);
        let result = self.port.send_batch(entries).await;
        call.end(&result);
        result
    }

    fn sends_whole(&self) -> bool {
        self.port.sends_whole()
    }

    async fn send_whole(
        &self,
        entries: Vec<OutgoingMessage>,
        beside: Vec<Successor>,
    ) -> Result<(), PortError> {
        let others = beside.iter().map(|successor| &successor.message);
        let bytes = entries
            .iter()
            .chain(others)
            .map(|entry| entry.body.len())
            .sum();
        let call = self
            .begin(PortOperation::SendBatch, "")
            .carrying(entries.len() + beside.len(), bytes);
        let result = self.port.send_whole(entries, beside).await;
        call.end(&result);
        result
    }

    async fn withhold(&self, entries: Vec<OutgoingMessage>) -> Result<WithheldMessages, PortError> {
        let bytes = entries.iter().map(|entry| entry.body.len()).sum();
        let call = self
            .begin(PortOperation::SendBatch, "")
            .carrying(entries.len(), bytes);
        let result = self.port.withhold(entries).await;
        call.end(&result);
        result
    }
}

#[deny(clippy::missing_trait_methods)]
impl<P: QueueReceiver> QueueReceiver for Recorded<P> {
    async fn receive(&self, request: ReceiveRequest) -> Result<Vec<ReceivedMessage>, PortError> {
        let call = self.begin(PortOperation::Receive, "");
        let result = self.port.receive(request).await;
        let received = result.as_deref().unwrap_or_default();
        call.carrying(received.len(), received.iter().map(|m| m.body.len()).sum())
            .end(&result);
        result
    }

    async fn acknowledge(&self, receipt: &ReceiptHandle) -> Result<(), PortError> {
        let call = self.begin(PortOperation::Acknowledge, "").carrying(1, 0);
        let result = self.port.acknowledge(receipt).await;
        call.end(&result);
        result
    }

    async fn replace(
        &self,
        receipt: &ReceiptHandle,
        successors: Vec<Successor>,
    ) -> Result<(), PortError> {
        let bytes = successors.iter().map(|s| s.message.body.len()).sum();
        let call = self
            .begin(PortOperation::Replace, "")
            .carrying(successors.len(), bytes);
        let result = self.port.replace(receipt, successors).await;
        call.end(&result);
        result
    }

    async fn change_visibility(
        &self,
        receipt: &ReceiptHandle,
        visibility: Duration,
    ) -> Result<(), PortError> {
        let call = self
            .begin(PortOperation::ChangeVisibility, "")
            .carrying(1, 0);
        let result = self.port.change_visibility(receipt, visibility).await;
        call.end(&result);
        result
    }

    async fn counts(&self) -> Result<QueueCounts, PortError> {
        let call = self.begin(PortOperation::Counts, "");
        let result = self.port.counts().await;
        call.end(&result);
        result
    }

    async fn due_by_group(&self) -> Result<Option<Vec<DueOfGroup>>, PortError> {
        let call = self.begin(PortOperation::Counts, "");
        let result = self.port.due_by_group().await;
        call.end(&result);
        result
    }

    async fn due_counts(&self, groups: &[String]) -> Result<Option<Vec<u64>>, PortError> {
        let call = self.begin(PortOperation::Counts, "");
        let result = self.port.due_counts(groups).await;
        call.carrying(groups.len(), 0).end(&result);
        result
    }

    async fn waiting_counts(
        &self,
        groups: &[String],
    ) -> Result<Option<Vec<GroupCount>>, PortError> {
        let call = self.begin(PortOperation::Waiting, "");
        let result = self.port.waiting_counts(groups).await;
        call.carrying(groups.len(), 0).end(&result);
        result
    }

    async fn waiting_by_group(&self) -> Result<Option<Vec<(Arc<str>, GroupCount)>>, PortError> {
        let call = self.begin(PortOperation::Waiting, "");
        let result = self.port.waiting_by_group().await;
        call.end(&result);
        result
    }
}

#[deny(clippy::missing_trait_methods)]
impl<P: ObjectStore> ObjectStore for Recorded<P> {
    fn waiting_objects(&self, of: Option<&[String]>) -> Option<Vec<(Arc<str>, WaitingCount)>> {
        self.port.waiting_objects(of)
    }

    async fn get(&self, key: &str) -> Result<Option<StoredObject>, PortError> {
        let call = self.begin(PortOperation::Get, key);
        let result = self.port.get(key).await;
        let found = result.as_ref().ok().and_then(Option::as_ref);
        call.carrying(
            usize::from(found.is_some()),
            found.map_or(0, |object| object.bytes.len()),
        )
        .end(&result);
        result
    }

    async fn get_if_changed(
        &self,
        key: &str,
        known: &ETag,
    ) -> Result<RevalidatedObject, PortError> {
        let call = self.begin(PortOperation::GetIfChanged, key);
        let result = self.port.get_if_changed(key, known).await;
        let (entries, bytes) = match &result {
            Ok(RevalidatedObject::Changed(object)) => (1, object.bytes.len()),
            Ok(RevalidatedObject::Unchanged | RevalidatedObject::Missing) | Err(_) => (0, 0),
        };
        call.carrying(entries, bytes).end(&result);
        result
    }

    async fn get_range(&self, key: &str, range: Range<u64>) -> Result<Bytes, PortError> {
        let call = self.begin(PortOperation::GetRange, key);
        let result = self.port.get_range(key, range).await;
        call.carrying(
            usize::from(result.is_ok()),
            result.as_ref().map_or(0, Bytes::len),
        )
        .end(&result);
        result
    }

    async fn put(
        &self,
        key: &str,
        bytes: Bytes,
        condition: PutCondition,
    ) -> Result<ETag, PortError> {
        let call = self.begin(PortOperation::Put, key).carrying(1, bytes.len());
        let result = self.port.put(key, bytes, condition).await;
        call.end(&result);
        result
    }

    async fn delete(&self, key: &str) -> Result<(), PortError> {
        let call = self.begin(PortOperation::Delete, key).carrying(1, 0);
        let result = self.port.delete(key).await;
        call.end(&result);
        result
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        max: usize,
    ) -> Result<ListPage, PortError> {
        let call = self.begin(PortOperation::List, prefix);
        let result = self.port.list(prefix, after, max).await;
        call.carrying(result.as_ref().map_or(0, |page| page.objects.len()), 0)
            .end(&result);
        result
    }
}

#[deny(clippy::missing_trait_methods)]
impl<P: WebhookClient> WebhookClient for Recorded<P> {
    async fn send(&self, request: WebhookRequest) -> WebhookAnswer {
        self.send_if(request, &AlwaysBegin).await
    }

    async fn send_if(&self, request: WebhookRequest, look: &impl LastLook) -> WebhookAnswer {
        let bytes = request.body.iter().map(Bytes::len).sum();
        let url = format!("{:?}", request.url);
        let call = self.begin(PortOperation::Post, &url).carrying(1, bytes);
        let answer = self.port.send_if(request, look).await;
        // An endpoint that fails is a result of this port.
        call.end(&Ok(()));
        answer
    }

    /// Passes the call on without noting it: it makes no request.
    fn drop_link(&self, link: &Link) {
        self.port.drop_link(link);
    }
}

#[cfg(test)]
mod tests;
