//! Tables of the engine, and the numbers about the folder.

use posthaste_core::model::Timestamp;
use redb::TableDefinition;

/// Messages of all queues by sequence number: [`Header`] and body.
pub(super) const MESSAGES: TableDefinition<u64, &[u8]> = TableDefinition::new("messages");

/// The state objects' version, time of writing in milliseconds, and size. Apart from their bytes,
/// so that a listing does not read those.
pub(super) const OBJECTS: TableDefinition<&str, (u64, u64, u64)> = TableDefinition::new("objects");

/// The state objects' bytes.
pub(super) const OBJECT_BYTES: TableDefinition<&str, &[u8]> = TableDefinition::new("object_bytes");

/// The last version of each state object that a program with digests wrote, and the CRC-32 of its
/// key and bytes. A row does not apply to an object that has another version now.
pub(super) const OBJECT_DIGESTS: TableDefinition<&str, (u64, u32)> =
    TableDefinition::new("object_digests");

/// Numbers about the folder itself.
pub(super) const FOLDER: TableDefinition<&str, u64> = TableDefinition::new("folder");

pub(super) const FORMAT: &str = "format";
pub(super) const FOLDER_ID: &str = "id";
pub(super) const NEXT_SEQUENCE: &str = "next_sequence";
/// Counts the commits that store no message, so that after a failed one it is known whether it took
/// effect. The others are known by their messages, and save a page.
pub(super) const COMMIT: &str = "commit";

/// The layout this code reads and writes.
///
/// 2: records and objects carry digests. Those of version 1 have none.
pub(super) const FORMAT_VERSION: u64 = 2;

/// Every opening takes 2^40 sequence numbers, so that no number comes twice: enough for 317 days at
/// 40,000 messages a second, and for 16 million openings.
pub(super) const SEQUENCES_PER_OPENING_BITS: u32 = 40;

/// An object's version, time of writing and size, as [`OBJECTS`] keeps them.
#[derive(Debug, Clone, Copy)]
pub(super) struct ObjectFacts {
    pub(super) version: u64,
    pub(super) modified_at: Timestamp,
    pub(super) bytes: u64,
}

impl From<(u64, u64, u64)> for ObjectFacts {
    fn from(row: (u64, u64, u64)) -> Self {
        let (version, modified_ms, bytes) = row;
        Self {
            version,
            modified_at: Timestamp::from_millis(modified_ms),
            bytes,
        }
    }
}
