//! An object store in memory, plain or as S3 may behave.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use posthaste_core::model::Timestamp;
use posthaste_ports::{
    Clock, ETag, ErrorKind, ListPage, ObjectMeta, ObjectStore, PortError, PutCondition,
    RevalidatedObject, StoredObject, validate,
};

use crate::clock::ManualClock;

/// A store; clones share it.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    shared: Arc<Mutex<Shared>>,
    /// Most objects of a page, whatever is asked for; `None` for as many as are asked for.
    page_max: Option<usize>,
    /// The time of writes; without it all of them were made at the epoch.
    clock: Option<ManualClock>,
}

#[derive(Debug, Default)]
struct Shared {
    objects: BTreeMap<String, Stored>,
    versions: u64,
    listed: Vec<(String, Option<String>)>,
}

#[derive(Debug, Clone)]
struct Stored {
    object: StoredObject,
    modified_at: Timestamp,
}

impl MemoryStore {
    /// A store that behaves as S3 may: its pages have at most this length, and if the response to a
    /// put was lost, it recognizes its own write by the bytes. Every operation lets others run
    /// first.
    pub fn like_s3(page_max: usize) -> Self {
        Self {
            page_max: Some(page_max),
            ..Self::default()
        }
    }

    /// A store whose objects are as old as the clock says.
    pub fn with_clock(clock: ManualClock) -> Self {
        Self {
            clock: Some(clock),
            ..Self::default()
        }
    }

    /// The keys that start with `prefix`.
    pub fn keys(&self, prefix: &str) -> Vec<String> {
        self.lock()
            .objects
            .keys()
            .filter(|key| key.starts_with(prefix))
            .cloned()
            .collect()
    }

    /// The objects whose keys start with `prefix`.
    pub fn objects_under(&self, prefix: &str) -> Vec<(String, Bytes)> {
        let shared = self.lock();
        let found = shared
            .objects
            .iter()
            .filter(|(key, _)| key.starts_with(prefix));
        found
            .map(|(key, stored)| (key.clone(), stored.object.bytes.clone()))
            .collect()
    }

    /// The keys after which lists of `prefix` began, since this was asked last.
    pub fn take_listed(&self, prefix: &str) -> Vec<Option<String>> {
        let listed = std::mem::take(&mut self.lock().listed);
        listed
            .into_iter()
            .filter(|(listed, _)| listed == prefix)
            .map(|(_, after)| after)
            .collect()
    }

    /// Writes an object at once, in the middle of another call.
    pub fn write(&self, key: &str, bytes: impl Into<Bytes>) {
        self.write_at(key, bytes, Timestamp::EPOCH);
    }

    /// Writes an object that is as old as that.
    pub fn write_at(&self, key: &str, bytes: impl Into<Bytes>, modified_at: Timestamp) {
        self.lock().write(key, bytes.into(), modified_at);
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock()
    }

    async fn let_others_run(&self) {
        if self.page_max.is_some() {
            tokio::task::yield_now().await;
        }
    }
}

impl Shared {
    fn write(&mut self, key: &str, bytes: Bytes, modified_at: Timestamp) -> ETag {
        self.versions += 1;
        let etag = ETag(self.versions.to_string());
        let object = StoredObject {
            bytes,
            etag: etag.clone(),
        };
        self.objects.insert(
            key.to_owned(),
            Stored {
                object,
                modified_at,
            },
        );
        etag
    }
}

impl ObjectStore for MemoryStore {
    async fn get(&self, key: &str) -> Result<Option<StoredObject>, PortError> {
        validate::object_key(key).map_err(|e| e.into_port_error("get"))?;
        self.let_others_run().await;
        Ok(self
            .lock()
            .objects
            .get(key)
            .map(|stored| stored.object.clone()))
    }

    async fn get_if_changed(
        &self,
        key: &str,
        known: &ETag,
    ) -> Result<RevalidatedObject, PortError> {
        Ok(match self.get(key).await? {
            None => RevalidatedObject::Missing,
            Some(object) if object.etag == *known => RevalidatedObject::Unchanged,
            Some(object) => RevalidatedObject::Changed(object),
        })
    }

    async fn put(
        &self,
        key: &str,
        bytes: Bytes,
        condition: PutCondition,
    ) -> Result<ETag, PortError> {
        validate::object_key(key).map_err(|e| e.into_port_error("put"))?;
        self.let_others_run().await;
        let mut shared = self.lock();
        let there = shared.objects.get(key).map(|stored| &stored.object);
        let holds = match &condition {
            PutCondition::Always => true,
            PutCondition::IfAbsent => there.is_none(),
            PutCondition::IfMatch(known) => there.is_some_and(|object| object.etag == *known),
        };
        if !holds {
            let own = there.filter(|object| self.page_max.is_some() && object.bytes == bytes);
            let own = own.map(|object| object.etag.clone());
            return own.ok_or_else(|| PortError::new("put", ErrorKind::PreconditionFailed));
        }
        let now = self.clock.as_ref().map_or(Timestamp::EPOCH, Clock::now);
        Ok(shared.write(key, bytes, now))
    }

    async fn delete(&self, key: &str) -> Result<(), PortError> {
        validate::object_key(key).map_err(|e| e.into_port_error("delete"))?;
        self.let_others_run().await;
        self.lock().objects.remove(key);
        Ok(())
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        max: usize,
    ) -> Result<ListPage, PortError> {
        validate::page_size(max).map_err(|e| e.into_port_error("list"))?;
        self.let_others_run().await;
        let mut shared = self.lock();
        shared
            .listed
            .push((prefix.to_owned(), after.map(str::to_owned)));
        let is_listed = |key: &str| key.starts_with(prefix) && key > after.unwrap_or_default();
        let mut matching = shared.objects.iter().filter(|(key, _)| is_listed(key));
        let meta = |(key, stored): (&String, &Stored)| ObjectMeta {
            key: key.clone(),
            size: stored.object.bytes.len() as u64,
            modified_at: stored.modified_at,
        };
        let page_max = self.page_max.unwrap_or(max).min(max);
        let objects: Vec<_> = matching.by_ref().take(page_max).map(meta).collect();
        let next_after = matching
            .next()
            .and(objects.last())
            .map(|last| last.key.clone());
        Ok(ListPage {
            objects,
            next_after,
        })
    }
}
