//! An object of a bucket.

use bytes::Bytes;
use posthaste_core::model::Timestamp;

/// An object.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) bytes: Bytes,
    pub(super) etag: String,
    pub(super) modified_at: Timestamp,
}
