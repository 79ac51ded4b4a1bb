//! The lease of record's merge, at [`layout::RECORD_LEASE`](super::layout::RECORD_LEASE): a
//! [`StoredLease`] with the checkpoint that a run leaves for the next. record alone reads and
//! writes it. Fixture: `record-lease.json`.

use super::lease::StoredLease;
use crate::delivery_log::MergeCheckpoint;

/// The lease of record's merge as it is stored.
pub type RecordLease = StoredLease<MergeCheckpoint>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Timestamp;

    const FIXTURE: &str = include_str!("fixtures/record-lease.json");

    #[test]
    fn a_lease_is_written_as_it_always_was_and_read_back() {
        let lease = RecordLease {
            lapses_at: Timestamp::from_millis(1_700_000_150_000),
            holder: "0b8b9c5e-2f0a-4a39-9d3f-8b0f5f5f3c11".to_owned(),
            checkpoint: MergeCheckpoint {
                all_merged_at: Some(Timestamp::from_millis(1_700_000_000_000)),
            },
        };
        assert_eq!(lease.render(), FIXTURE.trim_end());
        assert_eq!(RecordLease::parse(FIXTURE.as_bytes()), Some(lease));
    }

    #[test]
    fn missing_members_have_defaults_and_a_foreign_object_is_none() {
        let lease = RecordLease::parse(br#"{"lapsesAt":5}"#).unwrap();
        assert_eq!(lease.checkpoint, MergeCheckpoint::default());
        assert_eq!(
            RecordLease::parse(br#"{"lapsesAt":5,"allMergedAt":"x"}"#),
            None
        );
    }
}
