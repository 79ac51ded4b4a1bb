//! A lease that keeps two runs of a function apart: the time at which it lapses, and the checkpoint
//! that a run leaves for the next. It has no version: a member that is missing has its default, and
//! an object that cannot be read is replaced. Each has its own file: `wake_lease.rs` and
//! `record_lease.rs`.

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::model::Timestamp;

/// A lease as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredLease<C> {
    /// The time at which it lapses.
    pub lapses_at: Timestamp,
    /// A UUID of the run that holds it, or held it last. No two runs write the same bytes, or a
    /// store that recognizes its own write by them would let both in.
    #[serde(default)]
    pub holder: String,
    /// The checkpoint of the last run.
    #[serde(flatten)]
    pub checkpoint: C,
}

impl<C: Serialize + DeserializeOwned> StoredLease<C> {
    /// Reads a lease; `None` if the object says nothing.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    /// Writes the lease.
    pub fn render(&self) -> Bytes {
        // Texts and numbers: serialising them cannot fail.
        Bytes::from(serde_json::to_vec(self).unwrap_or_default())
    }
}
