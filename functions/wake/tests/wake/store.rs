//! An object store in memory that answers as S3 may: with pages shorter than were asked for, and, where the answer to a
//! put was lost, by knowing its own write by the bytes. Every operation lets others run first.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use posthaste_core::model::time::Timestamp;
use posthaste_ports::{
    ETag, ErrorKind, ListPage, Object, ObjectMeta, ObjectStore, PortError, PutCondition, Revalidated,
};

/// Most objects of a page, whatever was asked for.
pub(crate) const SHORT_PAGE: usize = 3;

/// The store; clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Store(Arc<Mutex<Shared>>);

#[derive(Debug, Default)]
struct Shared {
    objects: BTreeMap<String, Object>,
    /// When objects were written that said so.
    written: BTreeMap<String, Timestamp>,
    puts: u64,
    begun: Vec<Option<String>>,
}

impl Store {
    /// The keys that start with `prefix`.
    pub(crate) fn under(&self, prefix: &str) -> Vec<String> {
        self.lock().objects.keys().filter(|key| key.starts_with(prefix)).cloned().collect()
    }

    /// After which keys listings of `parked/` began since this was asked last.
    pub(crate) fn take_begun(&self) -> Vec<Option<String>> {
        std::mem::take(&mut self.lock().begun)
    }

    /// Writes an object at once, in the middle of somebody else's call.
    pub(crate) fn write_now(&self, key: &str, bytes: Bytes) {
        let mut shared = self.lock();
        shared.puts += 1;
        let etag = ETag(shared.puts.to_string());
        shared.objects.insert(key.to_owned(), Object { bytes, etag });
    }

    /// Writes an object that is as old as that.
    pub(crate) fn write_at(&self, key: &str, bytes: Bytes, written: Timestamp) {
        self.write_now(key, bytes);
        self.lock().written.insert(key.to_owned(), written);
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap()
    }
}

impl ObjectStore for Store {
    async fn get(&self, key: &str) -> Result<Option<Object>, PortError> {
        tokio::task::yield_now().await;
        Ok(self.lock().objects.get(key).cloned())
    }

    async fn get_if_changed(&self, key: &str, known: &ETag) -> Result<Revalidated, PortError> {
        Ok(match self.get(key).await? {
            None => Revalidated::Missing,
            Some(object) if object.etag == *known => Revalidated::Unchanged,
            Some(object) => Revalidated::Changed(object),
        })
    }

    async fn put(&self, key: &str, bytes: Bytes, condition: PutCondition) -> Result<ETag, PortError> {
        tokio::task::yield_now().await;
        let mut shared = self.lock();
        let there = shared.objects.get(key);
        let holds = match &condition {
            PutCondition::Always => true,
            PutCondition::IfAbsent => there.is_none(),
            PutCondition::IfMatch(etag) => there.is_some_and(|object| object.etag == *etag),
        };
        if !holds {
            let own = there.filter(|object| object.bytes == bytes).map(|object| object.etag.clone());
            return own.ok_or_else(|| PortError::new("put an object", ErrorKind::PreconditionFailed));
        }
        shared.puts += 1;
        let etag = ETag(shared.puts.to_string());
        shared.objects.insert(key.to_owned(), Object { bytes, etag: etag.clone() });
        Ok(etag)
    }

    async fn delete(&self, key: &str) -> Result<(), PortError> {
        tokio::task::yield_now().await;
        self.lock().objects.remove(key);
        Ok(())
    }

    async fn list(&self, prefix: &str, after: Option<&str>, max: usize) -> Result<ListPage, PortError> {
        tokio::task::yield_now().await;
        let mut shared = self.lock();
        if prefix == posthaste_core::stored::layout::PARKED {
            shared.begun.push(after.map(str::to_owned));
        }
        let is_listed = |key: &str| key.starts_with(prefix) && after.is_none_or(|after| key > after);
        let mut keys = shared.objects.keys().filter(|key| is_listed(key));
        let written = |key: &String| shared.written.get(key).copied().unwrap_or(Timestamp::EPOCH);
        let meta = |key: &String| ObjectMeta { key: key.clone(), size: 1, modified_at: written(key) };
        let objects: Vec<_> = keys.by_ref().take(max.min(SHORT_PAGE)).map(meta).collect();
        let next_after = keys.next().and(objects.last()).map(|last| last.key.clone());
        Ok(ListPage { objects, next_after })
    }
}
