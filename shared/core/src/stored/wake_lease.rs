//! The lease of wake, at [`layout::WAKE_LEASE`](super::layout::WAKE_LEASE): a [`StoredLease`] with
//! the checkpoint that a run leaves for the next. Leases of older programs have nothing but their
//! time. wake alone reads and writes it. Fixtures: `wake-lease.json`, `wake-lease-rest.json`.

use serde::{Deserialize, Serialize};

use super::lease::StoredLease;
use crate::model::Timestamp;

/// The lease of wake as it is stored.
pub type WakeLease = StoredLease<WakeCheckpoint>;

/// The progress of one run, from which the next one goes on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WakeCheckpoint {
    /// The oldest minute, since the epoch, for which something may still be parked. `None` if that
    /// is not known.
    pub open_from_minute: Option<u64>,
    /// The time at which the objects before that minute are scanned anyway.
    pub scan_at: Option<Timestamp>,
    /// The last temporary topic that was looked at, where a run did not come to the end of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swept_to: Option<String>,
    /// The key after which a run goes on to look for held deliveries, where the last one did not
    /// come to the end of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_to: Option<String>,
    /// The last parked object that was looked at under pressure for what has expired, where a run
    /// did not come to the end of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expired_to: Option<String>,
    /// The time at which the last run began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_at: Option<Timestamp>,
    /// The time at which runs began again after an outage. `None` if none is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awake_since: Option<Timestamp>,
    /// The scan for what was parked by a clock that was ahead. `None` if all was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub look: Option<SetBackScan>,
    /// The time until which there can be no work that no signal announces. `None` if the last run
    /// found work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest_until: Option<Timestamp>,
}

/// A scan of all that is parked for what was written by a clock that was ahead. It may take some
/// runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SetBackScan {
    /// The time at which it began.
    pub began_at: Timestamp,
    /// The key after which it goes on.
    pub after: String,
    /// The key after which it goes on once it has come to the end: before the first object that
    /// could not be moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again_after: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIXTURE: &str = include_str!("fixtures/wake-lease.json");
    const REST_FIXTURE: &str = include_str!("fixtures/wake-lease-rest.json");

    fn lease() -> WakeLease {
        let at = Timestamp::from_millis;
        WakeLease {
            lapses_at: at(1_700_000_090_000),
            holder: "0b8b9c5e-2f0a-4a39-9d3f-8b0f5f5f3c11".to_owned(),
            checkpoint: WakeCheckpoint {
                open_from_minute: Some(28_333_333),
                scan_at: Some(at(1_700_086_400_000)),
                swept_to: Some("temporary/orders".to_owned()),
                held_to: Some("held/orders.billing0".to_owned()),
                expired_to: Some("parked/20231114T2213Z/orders.billing/x.json".to_owned()),
                began_at: Some(at(1_700_000_000_000)),
                awake_since: Some(at(1_699_999_000_000)),
                look: Some(SetBackScan {
                    began_at: at(1_700_000_000_000),
                    after: "parked/20231114T2215Z".to_owned(),
                    again_after: Some("parked/20231114T2214Z".to_owned()),
                }),
                rest_until: None,
            },
        }
    }

    #[test]
    fn a_lease_is_written_as_it_always_was_and_read_back() {
        assert_eq!(lease().render(), FIXTURE.trim_end());
        assert_eq!(WakeLease::parse(FIXTURE.as_bytes()), Some(lease()));
    }

    #[test]
    fn a_lease_says_until_when_wake_may_rest() {
        let at = Timestamp::from_millis;
        let lease = WakeLease {
            lapses_at: at(0),
            checkpoint: WakeCheckpoint {
                open_from_minute: Some(28_333_333),
                scan_at: Some(at(1_700_086_400_000)),
                began_at: Some(at(1_700_000_000_000)),
                rest_until: Some(at(1_700_000_840_000)),
                ..WakeCheckpoint::default()
            },
            ..lease()
        };
        assert_eq!(lease.render(), REST_FIXTURE.trim_end());
        assert_eq!(WakeLease::parse(REST_FIXTURE.as_bytes()), Some(lease));
    }

    /// A lease of an older program has an empty checkpoint, and a foreign object is none.
    #[test]
    fn old_lease_has_an_empty_checkpoint_and_a_foreign_is_none() {
        let old = WakeLease::parse(br#"{"lapsesAt":5}"#).unwrap();
        assert_eq!(
            (old.lapses_at, &old.checkpoint),
            (Timestamp::from_millis(5), &WakeCheckpoint::default())
        );
        assert_eq!(
            old.render(),
            r#"{"lapsesAt":5,"holder":"","openFromMinute":null,"scanAt":null}"#
        );
        assert_eq!(WakeLease::parse(b"{"), None);
        assert_eq!(
            WakeLease::parse(br#"{"lapsesAt":0,"openFromMinute":"x"}"#),
            None
        );
    }
}
