//! The object store, with the semantics of S3: whole objects, conditional puts, listing in key
//! order.

use std::future::Future;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use posthaste_core::api::WaitingCount;
use posthaste_core::model::Timestamp;

use crate::{ErrorKind, PortError, validate};

/// An opaque version of an object: equal exactly when the object was not written in between.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ETag(pub String);

/// An object as it was read.
#[derive(Debug, Clone)]
pub struct StoredObject {
    /// All bytes of the object.
    pub bytes: Bytes,
    /// The version.
    pub etag: ETag,
}

/// The result of a read that named a known version.
#[derive(Debug, Clone)]
pub enum RevalidatedObject {
    /// Still the version the caller knows.
    Unchanged,
    /// Another version.
    Changed(StoredObject),
    /// No such object.
    Missing,
}

/// The condition under which a put happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutCondition {
    /// No condition.
    Always,
    /// The put happens only if there is no object under the key.
    IfAbsent,
    /// The put happens only if the object has this version.
    IfMatch(ETag),
}

/// An object as a listing shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectMeta {
    /// The key.
    pub key: String,
    /// The size, in bytes.
    pub size: u64,
    /// The time of the last write.
    pub modified_at: Timestamp,
}

/// One page of a listing.
#[derive(Debug, Clone, Default)]
pub struct ListPage {
    /// The objects, in ascending order of their keys' UTF-8 bytes.
    pub objects: Vec<ObjectMeta>,
    /// The key to list on after, if there may be more.
    pub next_after: Option<String>,
}

/// Keeps whole objects under keys. Keys are 1..=1024 bytes of UTF-8 in `/`-separated segments, none
/// of which is empty, `.` or `..`, without control characters; others are refused with kind
/// `Invalid`.
///
/// A put is atomic (a reader sees all of it or nothing) and durable when it returns; a read, or a
/// listing, that starts after it sees it.
pub trait ObjectStore: Send + Sync {
    /// Reads an object; `None` if there is none.
    fn get(
        &self,
        key: &str,
    ) -> impl Future<Output = Result<Option<StoredObject>, PortError>> + Send;

    /// Reads an object only if it has another version than `known`.
    fn get_if_changed(
        &self,
        key: &str,
        known: &ETag,
    ) -> impl Future<Output = Result<RevalidatedObject, PortError>> + Send;

    /// Reads exactly these bytes of an object. An object that is not there is an `Err` of kind
    /// `NotFound`, one that ends before the range does is `Damaged`, and an empty range is
    /// `Invalid`.
    ///
    /// The default reads the whole object. A store that can read less has its own method.
    fn get_range(
        &self,
        key: &str,
        range: Range<u64>,
    ) -> impl Future<Output = Result<Bytes, PortError>> + Send {
        async move { slice_of_object(self.get(key).await?, &range) }
    }

    /// Writes an object and returns its new version. A condition that does not hold is an `Err` of
    /// kind `PreconditionFailed`; of many that race under `IfAbsent` or one `IfMatch`, exactly one
    /// wins.
    fn put(
        &self,
        key: &str,
        bytes: Bytes,
        condition: PutCondition,
    ) -> impl Future<Output = Result<ETag, PortError>> + Send;

    /// Deletes an object. A missing object is not an error.
    fn delete(&self, key: &str) -> impl Future<Output = Result<(), PortError>> + Send;

    /// Lists at most `max` (1..=1000) objects whose keys start with `prefix` and are greater than
    /// `after`.
    fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        max: usize,
    ) -> impl Future<Output = Result<ListPage, PortError>> + Send;

    /// Counts the events in parked and held objects without a list: of these folders
    /// (`topic.subscription` in lower case), or of all. Folders without such an object are left out.
    /// `None` if the store keeps no such count, as S3 does not.
    fn waiting_objects(&self, of: Option<&[String]>) -> Option<Vec<(Arc<str>, WaitingCount)>> {
        let _ = of;
        None
    }
}

/// A borrowed store.
#[deny(clippy::missing_trait_methods)]
impl<S: ObjectStore> ObjectStore for &S {
    async fn get(&self, key: &str) -> Result<Option<StoredObject>, PortError> {
        S::get(self, key).await
    }

    async fn get_if_changed(
        &self,
        key: &str,
        known: &ETag,
    ) -> Result<RevalidatedObject, PortError> {
        S::get_if_changed(self, key, known).await
    }

    async fn get_range(&self, key: &str, range: Range<u64>) -> Result<Bytes, PortError> {
        S::get_range(self, key, range).await
    }

    async fn put(
        &self,
        key: &str,
        bytes: Bytes,
        condition: PutCondition,
    ) -> Result<ETag, PortError> {
        S::put(self, key, bytes, condition).await
    }

    async fn delete(&self, key: &str) -> Result<(), PortError> {
        S::delete(self, key).await
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        max: usize,
    ) -> Result<ListPage, PortError> {
        S::list(self, prefix, after, max).await
    }

    fn waiting_objects(&self, of: Option<&[String]>) -> Option<Vec<(Arc<str>, WaitingCount)>> {
        S::waiting_objects(self, of)
    }
}

/// A range of an object that was read whole, as [`ObjectStore::get_range`] returns it.
pub fn slice_of_object(
    object: Option<StoredObject>,
    range: &Range<u64>,
) -> Result<Bytes, PortError> {
    const DOING: &str = "read a range of an object";
    validate::byte_range(range).map_err(|refusal| refusal.into_port_error(DOING))?;
    let bytes = object
        .ok_or_else(|| PortError::new(DOING, ErrorKind::NotFound))?
        .bytes;
    let end = usize::try_from(range.end)
        .ok()
        .filter(|end| *end <= bytes.len());
    let part = usize::try_from(range.start)
        .ok()
        .zip(end)
        .map(|(start, end)| bytes.slice(start..end));
    part.ok_or_else(|| ends_early_error(DOING, range, bytes.len() as u64))
}

/// The failure of a range that goes beyond the end of its object.
pub fn ends_early_error(doing: &'static str, range: &Range<u64>, length: u64) -> PortError {
    let cause = format!(
        "the object ends at byte {length}, expected {} or more",
        range.end
    );
    PortError::with_cause(doing, ErrorKind::Damaged, cause)
}
