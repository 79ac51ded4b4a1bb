//! A queue that keeps what it is sent and an object store in memory, with the limits every adapter has.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use posthaste_core::model::time::Timestamp;
use posthaste_ports::{
    ETag, ErrorKind, ListPage, MessageId, Object, ObjectMeta, ObjectStore, OutgoingMessage, PortError,
    PutCondition, QueueSender, Revalidated, validate,
};

/// A queue nobody receives from.
#[derive(Debug, Clone, Default)]
pub(crate) struct MemoryQueue(Arc<Mutex<Vec<OutgoingMessage>>>);

impl MemoryQueue {
    /// What was sent, in order.
    pub(crate) fn messages(&self) -> Vec<OutgoingMessage> {
        self.0.lock().unwrap().clone()
    }
}

impl QueueSender for MemoryQueue {
    async fn send_batch(
        &self,
        entries: Vec<OutgoingMessage>,
    ) -> Result<Vec<Result<MessageId, PortError>>, PortError> {
        validate::batch(&entries).map_err(|refusal| refusal.at("send messages"))?;
        let mut messages = self.0.lock().unwrap();
        let send = |message: OutgoingMessage| {
            validate::message(&message).map_err(|refusal| refusal.at("send a message"))?;
            messages.push(message);
            Ok(MessageId(messages.len().to_string()))
        };
        Ok(entries.into_iter().map(send).collect())
    }
}

/// Objects under keys; the version is the number of the put.
#[derive(Debug, Clone, Default)]
pub(crate) struct MemoryStore(Arc<Mutex<Objects>>);

#[derive(Debug, Default)]
struct Objects {
    by_key: BTreeMap<String, Object>,
    puts: u64,
}

impl MemoryStore {
    /// The objects whose keys start with `prefix`.
    pub(crate) fn under(&self, prefix: &str) -> Vec<(String, Bytes)> {
        let objects = self.lock();
        let found = objects.by_key.iter().filter(|(key, _)| key.starts_with(prefix));
        found.map(|(key, object)| (key.clone(), object.bytes.clone())).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Objects> {
        self.0.lock().unwrap()
    }
}

impl ObjectStore for MemoryStore {
    async fn get(&self, key: &str) -> Result<Option<Object>, PortError> {
        Ok(self.lock().by_key.get(key).cloned())
    }

    async fn get_if_changed(&self, key: &str, known: &ETag) -> Result<Revalidated, PortError> {
        Ok(match self.get(key).await? {
            None => Revalidated::Missing,
            Some(object) if object.etag == *known => Revalidated::Unchanged,
            Some(object) => Revalidated::Changed(object),
        })
    }

    async fn put(&self, key: &str, bytes: Bytes, condition: PutCondition) -> Result<ETag, PortError> {
        validate::key(key).map_err(|refusal| refusal.at("put an object"))?;
        let mut objects = self.lock();
        let present = objects.by_key.get(key).map(|object| &object.etag);
        let holds = match &condition {
            PutCondition::Always => true,
            PutCondition::IfAbsent => present.is_none(),
            PutCondition::IfMatch(etag) => present == Some(etag),
        };
        if !holds {
            return Err(PortError::new("put an object", ErrorKind::PreconditionFailed));
        }
        objects.puts += 1;
        let etag = ETag(objects.puts.to_string());
        objects.by_key.insert(key.to_owned(), Object { bytes, etag: etag.clone() });
        Ok(etag)
    }

    async fn delete(&self, key: &str) -> Result<(), PortError> {
        self.lock().by_key.remove(key);
        Ok(())
    }

    async fn list(&self, prefix: &str, after: Option<&str>, max: usize) -> Result<ListPage, PortError> {
        let found = self.under(prefix).into_iter().filter(|(key, _)| after.is_none_or(|a| key.as_str() > a));
        let meta = |(key, bytes): (String, Bytes)| ObjectMeta {
            key,
            size: bytes.len() as u64,
            modified_at: Timestamp::EPOCH,
        };
        let mut objects: Vec<_> = found.take(max + 1).map(meta).collect();
        let is_more = objects.len() > max;
        objects.truncate(max);
        let next_after = objects.last().filter(|_| is_more).map(|last| last.key.clone());
        Ok(ListPage { objects, next_after })
    }
}
