//! The state objects: the `ObjectStore` port over the engine, in the same group commit as the
//! queues.

use std::error::Error;
use std::ops::{Bound, Range};
use std::sync::Arc;

use bytes::Bytes;
use posthaste_core::api::WaitingCount;
use posthaste_core::stored::{TOPICS, layout};
use posthaste_ports::{
    ETag, ErrorKind, ListPage, ObjectMeta, ObjectStore, PortError, PutCondition, RevalidatedObject,
    StoredObject, slice_of_object, validate,
};
use redb::ReadTransaction;

use super::failure::EngineError;
use super::inbox::{CommitWork, CompletedJob, JobFailure};
use super::record;
use super::shared::StoreHandle;
use super::tables::{OBJECT_BYTES, OBJECT_DIGESTS, OBJECTS, ObjectFacts};

/// Largest state object. State objects are small; parked ones are gathered to 4 MiB.
const OBJECT_BYTES_MAX: usize = 256 << 20;

/// The state objects of one data folder; clones share it.
#[derive(Debug, Clone)]
pub struct StateStore {
    pub(super) handle: Arc<StoreHandle>,
}

impl StateStore {
    /// Reads an object, unless it has the known version. A damaged object that may start empty is
    /// deleted.
    async fn read_object(
        &self,
        doing: &'static str,
        key: &str,
        known: Option<u64>,
    ) -> Result<RevalidatedObject, PortError> {
        let asked = key.to_owned();
        match self
            .read_blocking(doing, move |transaction| {
                look_up_object(transaction, &asked, known)
            })
            .await
        {
            Err(error) if error.kind == ErrorKind::Damaged && layout::begins_anew(key) => {
                tracing::error!(
                    key,
                    error = &error as &dyn Error,
                    "a damaged object is deleted, it will be written again"
                );
                self.delete(key).await?;
                Ok(RevalidatedObject::Missing)
            }
            found => found,
        }
    }

    async fn commit_work(
        &self,
        doing: &'static str,
        work: CommitWork,
        bytes: usize,
    ) -> Result<CompletedJob, PortError> {
        let shared = &self.handle.shared;
        let _counted = match &work {
            // A payload is published like the messages that refer to it.
            CommitWork::Put { key, .. } if layout::is_payload(key) => shared
                .counters
                .count_publish(std::iter::once(bytes), (shared.now)().monotonic),
            _ => shared.counters.count_write(),
        };
        let room = shared.inbox.reserve_room(bytes).await;
        commit_result(doing, shared.inbox.push(work, room).await)
    }

    /// An object, whose version is known from then on.
    async fn object_and_version(
        &self,
        doing: &'static str,
        key: &str,
        known: Option<u64>,
    ) -> Result<RevalidatedObject, PortError> {
        let versions = &self.handle.shared.versions;
        let changes = versions.change_count();
        let found = self.read_object(doing, key, known).await?;
        let version = match &found {
            RevalidatedObject::Unchanged => known,
            RevalidatedObject::Changed(object) => version_of(&object.etag),
            RevalidatedObject::Missing => None,
        };
        if let Some(version) = version {
            versions.learn(key, version, changes);
        }
        Ok(found)
    }

    /// Reads on a blocking thread, because it may read the disk.
    async fn read_blocking<T: Send + 'static>(
        &self,
        doing: &'static str,
        read: impl FnOnce(&ReadTransaction) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<T, PortError> {
        let shared = self.handle.shared.clone();
        let read = tokio::task::spawn_blocking(move || shared.engine.read(read)).await;
        read.map_err(|error| PortError::with_cause(doing, ErrorKind::Other, error))?
            .map_err(|error| PortError::with_cause(doing, error.kind(), error))
    }
}

/// The result of a commit as the port's.
pub(super) fn commit_result(
    doing: &'static str,
    answered: Result<Result<CompletedJob, JobFailure>, tokio::sync::oneshot::error::RecvError>,
) -> Result<CompletedJob, PortError> {
    answered
        .map_err(|error| PortError::with_cause(doing, ErrorKind::Other, error))?
        .map_err(|error| PortError::with_cause(doing, error.kind, error))
}

/// The version an `ETag` of this store names.
pub(super) fn version_of(etag: &ETag) -> Option<u64> {
    etag.0.parse().ok()
}

fn etag_of_version(version: u64) -> ETag {
    ETag(version.to_string())
}

impl ObjectStore for StateStore {
    async fn get(&self, key: &str) -> Result<Option<StoredObject>, PortError> {
        const DOING: &str = "read a state object";
        validate::object_key(key).map_err(|refusal| refusal.into_port_error(DOING))?;
        // The registry reads a topic like this once, and asks from then on whether it has changed.
        let found = if key.starts_with(TOPICS) {
            self.object_and_version(DOING, key, None).await?
        } else {
            self.read_object(DOING, key, None).await?
        };
        Ok(match found {
            RevalidatedObject::Changed(object) => Some(object),
            RevalidatedObject::Unchanged | RevalidatedObject::Missing => None,
        })
    }

    async fn get_if_changed(
        &self,
        key: &str,
        known: &ETag,
    ) -> Result<RevalidatedObject, PortError> {
        const DOING: &str = "read a state object";
        validate::object_key(key).map_err(|refusal| refusal.into_port_error(DOING))?;
        let known = version_of(known);
        let versions = &self.handle.shared.versions;
        if known.is_some_and(|known| versions.has(key, known)) {
            return Ok(RevalidatedObject::Unchanged);
        }
        // Boxed: an object has rarely changed, and its read would make the future of every call
        // larger.
        Box::pin(self.object_and_version(DOING, key, known)).await
    }

    /// Reads the whole object, because the digest covers all of it.
    async fn get_range(&self, key: &str, range: Range<u64>) -> Result<Bytes, PortError> {
        slice_of_object(self.get(key).await?, &range)
    }

    async fn put(
        &self,
        key: &str,
        bytes: Bytes,
        condition: PutCondition,
    ) -> Result<ETag, PortError> {
        const DOING: &str = "write a state object";
        validate::object_key(key).map_err(|refusal| refusal.into_port_error(DOING))?;
        if bytes.len() > OBJECT_BYTES_MAX {
            let cause = format!(
                "an object of {} bytes, expected at most {OBJECT_BYTES_MAX}",
                bytes.len()
            );
            return Err(PortError::with_cause(DOING, ErrorKind::Invalid, cause));
        }
        let size = bytes.len();
        let modified_at = (self.handle.shared.now)().wall;
        let work = CommitWork::Put {
            key: key.to_owned(),
            bytes,
            condition,
            modified_at,
        };
        let written = self.commit_work(DOING, work, size).await?;
        Ok(etag_of_version(written.number))
    }

    async fn delete(&self, key: &str) -> Result<(), PortError> {
        const DOING: &str = "delete a state object";
        validate::object_key(key).map_err(|refusal| refusal.into_port_error(DOING))?;
        self.commit_work(
            DOING,
            CommitWork::Delete {
                key: key.to_owned(),
            },
            0,
        )
        .await
        .map(drop)
    }

    fn waiting_objects(&self, of: Option<&[String]>) -> Option<Vec<(Arc<str>, WaitingCount)>> {
        Some(self.handle.shared.waiting_objects.counts(of))
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        max: usize,
    ) -> Result<ListPage, PortError> {
        const DOING: &str = "list state objects";
        validate::page_size(max).map_err(|refusal| refusal.into_port_error(DOING))?;
        let prefix = prefix.to_owned();
        let after = after.map(str::to_owned);
        self.read_blocking(DOING, move |transaction| {
            list_page(transaction, &prefix, after.as_deref(), max)
        })
        .await
    }
}

fn look_up_object(
    transaction: &ReadTransaction,
    key: &str,
    known: Option<u64>,
) -> Result<RevalidatedObject, EngineError> {
    let objects = transaction.open_table(OBJECTS)?;
    let Some(facts) = objects
        .get(key)?
        .map(|facts| ObjectFacts::from(facts.value()))
    else {
        return Ok(RevalidatedObject::Missing);
    };
    if known == Some(facts.version) {
        return Ok(RevalidatedObject::Unchanged);
    }
    let contents = transaction.open_table(OBJECT_BYTES)?;
    let bytes = contents
        .get(key)?
        .ok_or_else(|| EngineError::Object(key.to_owned()))?;
    let bytes = Bytes::copy_from_slice(bytes.value());
    if !is_as_written(transaction, key, facts, &bytes)? {
        return Err(EngineError::Object(key.to_owned()));
    }
    Ok(RevalidatedObject::Changed(StoredObject {
        bytes,
        etag: etag_of_version(facts.version),
    }))
}

/// True if an object has the bytes that were written; those of an older program have no digest.
pub(super) fn is_as_written(
    transaction: &ReadTransaction,
    key: &str,
    facts: ObjectFacts,
    bytes: &[u8],
) -> Result<bool, EngineError> {
    let known = transaction.open_table(OBJECT_DIGESTS)?.get(key)?;
    let known = known
        .map(|digest| digest.value())
        .filter(|(version, _)| *version == facts.version);
    let has_digest = known.is_none_or(|(_, crc)| crc == record::crc(&[key.as_bytes(), bytes]));
    Ok(has_digest && facts.bytes == bytes.len() as u64)
}

fn list_page(
    transaction: &ReadTransaction,
    prefix: &str,
    after: Option<&str>,
    max: usize,
) -> Result<ListPage, EngineError> {
    let objects = transaction.open_table(OBJECTS)?;
    let from = match after {
        Some(after) if after >= prefix => Bound::Excluded(after),
        _ => Bound::Included(prefix),
    };
    let mut page = ListPage::default();
    for row in objects.range::<&str>((from, Bound::Unbounded))? {
        let (key, facts) = row?;
        if !key.value().starts_with(prefix) {
            break;
        }
        if page.objects.len() == max {
            page.next_after = page
                .objects
                .last()
                .map(|last: &ObjectMeta| last.key.clone());
            break;
        }
        let ObjectFacts {
            bytes: size,
            modified_at,
            ..
        } = facts.value().into();
        page.objects.push(ObjectMeta {
            key: key.value().to_owned(),
            size,
            modified_at,
        });
    }
    Ok(page)
}
