//! The entries of the audit trail: who changed what.
//!
//! Key `audit/{time}-{id}.{topic}.json`, or without the topic where there is none. The time is
//! what is left of thirteen nines milliseconds: so the newest entry is listed first, and those
//! that are too old are the last. Version 1; written by manage, console, wake and, in `serve`,
//! deliver; read by manage; deleted by wake in `serve`, and by a lifecycle rule on AWS. Fixture:
//! `audit-entry-v1.json`.

mod changes;

use super::format::versioned_object;
use crate::api::{AuditDoor, AuditEntry, IsoTimestamp};
use crate::model::{SubscriptionName, Timestamp, TopicName};

pub use changes::record_changes;

/// The prefix of all entries.
pub const AUDIT: &str = "audit/";

/// The millisecond from which times in keys count back: in the year 2286.
const LAST_MILLIS: u64 = 9_999_999_999_999;

/// Milliseconds of an hour.
const HOUR_MILLIS: u64 = 3_600_000;

versioned_object!(AuditEntry, 1, "an entry of the audit trail");

/// The key of an entry.
pub fn audit_entry_key(entry: &AuditEntry) -> String {
    let start = format!("{}-{}", audit_key_before(entry.at.0), entry.id);
    match &entry.topic {
        Some(topic) => format!("{start}.{}.json", topic.folded()),
        None => format!("{start}.json"),
    }
}

/// The beginning of the keys of all entries of this millisecond: the keys before it are those of
/// later entries.
pub fn audit_key_before(at: Timestamp) -> String {
    let left = LAST_MILLIS.saturating_sub(at.as_millis());
    format!("{AUDIT}{left:013}")
}

/// A key behind all entries of this millisecond and of later ones.
pub fn audit_key_after(at: Timestamp) -> String {
    // An id follows after a hyphen, which is before a dot.
    format!("{}.", audit_key_before(at))
}

/// Whether the key of an entry names this topic.
pub fn is_audit_of(key: &str, topic: &TopicName) -> bool {
    let name = key
        .strip_suffix(".json")
        .and_then(|key| key.split_once('.'));
    name.is_some_and(|(_, name)| name == topic.folded())
}

/// The id of the entry of a subscription whose time was over: the same whoever takes it out.
pub fn expired_id(name: &SubscriptionName) -> String {
    format!("expired-{}", name.folded())
}

/// The id of the entry of a subscription that was disabled because its endpoint is gone.
pub fn gone_id(name: &SubscriptionName) -> String {
    format!("gone-{}", name.folded())
}

/// The id and the time of the entry of keys that are refused at a door in this hour: one for all
/// processes.
pub fn refused_keys(door: AuditDoor, now: Timestamp) -> (String, Timestamp) {
    let hour = now.as_millis() / HOUR_MILLIS * HOUR_MILLIS;
    (format!("refused-{door}"), Timestamp::from_millis(hour))
}

impl AuditEntry {
    /// The same with keys that were refused since, the last of them at the address of `newer`.
    #[must_use]
    pub fn with_refused(self, newer: &Self) -> Self {
        let [before, more] = [&self, newer].map(|entry| entry.count.unwrap_or_default());
        Self {
            count: Some(before.saturating_add(more)),
            address: newer.address,
            ..self
        }
    }

    /// The time, as it is.
    pub fn time(&self) -> Timestamp {
        let IsoTimestamp(at) = self.at;
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{AuditAction, AuditCaller};

    const FIXTURE: &str = include_str!("fixtures/audit-entry-v1.json");

    fn topic(name: &str) -> TopicName {
        TopicName::parse(name).unwrap()
    }

    fn entry(id: &str, millis: u64) -> AuditEntry {
        let at = Timestamp::from_millis(millis);
        AuditEntry::new(
            id.to_owned(),
            at,
            AuditCaller::default(),
            AuditAction::PutTopic,
        )
    }

    #[test]
    fn an_entry_is_read_and_written_as_its_fixture() {
        let entry = AuditEntry::parse(FIXTURE.as_bytes()).unwrap();
        assert_eq!(entry.render(), FIXTURE.trim_end());
        assert_eq!(entry.changes.len(), 2);
    }

    #[test]
    fn keys_are_in_the_order_of_time_the_newest_first() {
        let millis = [1_700_000_000_000, 1_700_000_000_001, 1_999_999_999_999];
        let keys = millis.map(|at| audit_entry_key(&entry("a", at)));
        assert!(keys.is_sorted_by(|one, next| one > next), "{keys:?}");
        assert_eq!(keys[0], "audit/8299999999999-a.json");
        let orders = entry("a", millis[0]).of_topic(&topic("Orders"));
        assert_eq!(
            audit_entry_key(&orders),
            "audit/8299999999999-a.orders.json"
        );
    }

    #[test]
    fn a_time_in_a_key_tells_earlier_from_later_entries() {
        let at = |millis| Timestamp::from_millis(millis);
        let key = |millis| audit_entry_key(&entry("f", millis).of_topic(&topic("orders")));
        let asked = 1_700_000_000_000;
        let later = 1_700_000_000_001;
        // `to` leaves out its own millisecond, `from` does not.
        assert!(key(asked) < audit_key_after(at(asked)) && key(later) < audit_key_after(at(asked)));
        assert!(key(asked - 1) > audit_key_after(at(asked)));
        assert!(key(asked) > audit_key_before(at(asked)));
        assert!(key(later) < audit_key_before(at(asked)));
    }

    #[test]
    fn a_key_names_the_topic_of_its_entry_alone() {
        let orders = entry("a", 1).of_topic(&topic("Orders"));
        assert!(is_audit_of(&audit_entry_key(&orders), &topic("orders")));
        assert!(!is_audit_of(&audit_entry_key(&orders), &topic("order")));
        assert!(!is_audit_of(
            &audit_entry_key(&entry("orders", 1)),
            &topic("orders")
        ));
        assert!(!is_audit_of("audit/", &topic("orders")));
    }

    #[test]
    fn refused_keys_of_an_hour_and_door_are_one_entry() {
        let at = |text: &str| Timestamp::parse(text).unwrap();
        let of = |door, text| {
            let (id, at) = refused_keys(door, at(text));
            (id, at.to_string())
        };
        let first = of(AuditDoor::Console, "2026-03-07T04:00:00Z");
        assert_eq!(first, of(AuditDoor::Console, "2026-03-07T04:59:59.999Z"));
        assert_eq!(first.1, "2026-03-07T04:00:00.000Z");
        assert_ne!(first, of(AuditDoor::Console, "2026-03-07T05:00:00Z"));
        assert_ne!(first, of(AuditDoor::Api, "2026-03-07T04:00:00Z"));
        let counted = |count| AuditEntry {
            count: Some(count),
            ..entry("a", 1)
        };
        assert_eq!(counted(3).with_refused(&counted(4)), counted(7));
    }
}
