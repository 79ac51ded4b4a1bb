//! Stores whose calls take time by a manual clock.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use posthaste_ports::{
    Clock, ETag, ErrorKind, ListPage, ObjectStore, PortError, PutCondition, RevalidatedObject,
    StoredObject,
};
use posthaste_testkit::ManualClock;

/// Reads and writes in progress, and what was written.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Reads under way, and the most of them at once.
    pub(super) reads: [usize; 2],
    /// Bytes read and not yet written, and the most of them at once.
    pub(super) held: [usize; 2],
    /// The objects written, by key.
    pub(super) written: BTreeMap<String, Bytes>,
}

/// The state bucket, in which every payload has the same bytes, and the dead-letter bucket.
#[derive(Debug, Clone)]
pub(super) struct Slow {
    pub(super) clock: ManualClock,
    pub(super) payload: Bytes,
    /// The time that a read takes, by key.
    pub(super) read_time: fn(&str) -> Duration,
    pub(super) write_time: Duration,
    pub(super) seen: Arc<Mutex<Seen>>,
}

fn none() -> PortError {
    PortError::new("do what no test asks for", ErrorKind::Other)
}

impl ObjectStore for Slow {
    async fn get(&self, key: &str) -> Result<Option<StoredObject>, PortError> {
        let enter = |seen: &mut Seen| {
            seen.reads[0] += 1;
            seen.reads[1] = seen.reads[1].max(seen.reads[0]);
        };
        enter(&mut self.seen.lock().unwrap());
        self.clock.sleep((self.read_time)(key)).await;
        let mut seen = self.seen.lock().unwrap();
        seen.reads[0] -= 1;
        seen.held[0] += self.payload.len();
        seen.held[1] = seen.held[1].max(seen.held[0]);
        Ok(Some(StoredObject {
            bytes: self.payload.clone(),
            etag: ETag(String::new()),
        }))
    }

    async fn get_if_changed(&self, _: &str, _: &ETag) -> Result<RevalidatedObject, PortError> {
        Err(none())
    }

    async fn put(&self, key: &str, bytes: Bytes, _: PutCondition) -> Result<ETag, PortError> {
        self.clock.sleep(self.write_time).await;
        let mut seen = self.seen.lock().unwrap();
        seen.held[0] = seen.held[0].saturating_sub(bytes.len());
        seen.written.insert(key.to_owned(), bytes);
        Ok(ETag(String::new()))
    }

    async fn delete(&self, _: &str) -> Result<(), PortError> {
        Err(none())
    }

    async fn list(&self, _: &str, _: Option<&str>, _: usize) -> Result<ListPage, PortError> {
        Err(none())
    }
}
