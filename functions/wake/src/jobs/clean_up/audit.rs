//! Deletion of the oldest entries of the audit trail: those that were kept for as long as they are,
//! and those for which there is no room.

use futures_util::future::try_join_all;
use posthaste_core::model::time::whole_millis;
use posthaste_core::model::{AUDIT_BYTES_MAX, AUDIT_ENTRIES_MAX, AUDIT_KEPT, Timestamp};
use posthaste_core::stored::layout;
use posthaste_ports::validate::LIST_PAGE_MAX;
use posthaste_ports::{ObjectMeta, ObjectStore, PortError, Ports};

use super::kinds::DELETES_AT_ONCE;
use crate::run::WakeRun;

/// The minute of the hour in which old entries are looked for, with those of other kinds.
pub(super) const MINUTE: u64 = 0;

/// Bounds of what is kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct AuditRoom {
    pub(super) entries: usize,
    pub(super) bytes: u64,
}

impl AuditRoom {
    pub(super) const MOST: Self = Self {
        entries: AUDIT_ENTRIES_MAX,
        bytes: AUDIT_BYTES_MAX,
    };

    /// Takes the place of an entry, if there is one.
    fn reserve_entry(&mut self, entry: &ObjectMeta) -> bool {
        let entries = self.entries.checked_sub(1);
        let bytes = self.bytes.checked_sub(entry.size);
        // What is older than an entry without a place has none either.
        self.entries = entries.filter(|_| bytes.is_some()).unwrap_or_default();
        self.bytes = bytes.unwrap_or_default();
        entries.is_some() && bytes.is_some()
    }
}

/// Deletes the entries that are too old or have no room, while there is time. The newest are listed
/// first. Returns the number of those that were deleted.
pub(super) async fn delete_old<P: Ports>(
    run: WakeRun<'_, P>,
    mut room: AuditRoom,
    now: Timestamp,
) -> Result<usize, PortError> {
    let store = &run.ports.state;
    let kept_ms = whole_millis(AUDIT_KEPT);
    let oldest = Timestamp::from_millis(now.as_millis().saturating_sub(kept_ms));
    let too_old = layout::audit_key_after(oldest);
    let mut deleted = 0;
    let mut after = None;
    while run.has_time() {
        let page = store
            .list(layout::AUDIT, after.as_deref(), LIST_PAGE_MAX)
            .await?;
        let old: Vec<_> = page
            .objects
            .iter()
            .filter(|entry| entry.key > too_old || !room.reserve_entry(entry))
            .collect();
        for some in old.chunks(DELETES_AT_ONCE) {
            if !run.has_time() {
                return Ok(deleted);
            }
            let gone = some.iter().map(|entry| store.delete(&entry.key));
            deleted += try_join_all(gone).await?.len();
        }
        after = page.next_after;
        if after.is_none() {
            break;
        }
    }
    Ok(deleted)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use posthaste_core::api::{AuditAction, AuditCaller, AuditEntry};
    use posthaste_ports::Clock;

    use super::*;
    use crate::testing::Kit;

    const DAY: Duration = Duration::from_hours(24);

    /// Writes an entry of this age.
    fn entry(kit: &Kit, age: Duration) -> String {
        let age_ms = u64::try_from(age.as_millis()).unwrap();
        let at = Timestamp::from_millis(kit.clock.now().as_millis() - age_ms);
        let entry = AuditEntry::new(
            "a".to_owned(),
            at,
            AuditCaller::posthaste_itself(),
            AuditAction::Test,
        );
        let key = layout::audit_entry_key(&entry);
        kit.store.write(&key, entry.render());
        key
    }

    fn left(kit: &Kit) -> Vec<String> {
        kit.store.keys(layout::AUDIT)
    }

    #[tokio::test]
    async fn entries_go_once_their_time_is_over() {
        let kit = Kit::new();
        let young = [Duration::ZERO, DAY, AUDIT_KEPT].map(|age| entry(&kit, age));
        for age in [AUDIT_KEPT + Duration::from_millis(1), 2 * AUDIT_KEPT] {
            entry(&kit, age);
        }
        let now = kit.clock.now();
        let deleted = delete_old(kit.run(), AuditRoom::MOST, now).await.unwrap();
        assert_eq!((deleted, left(&kit)), (2, young.to_vec()));
    }

    #[tokio::test]
    async fn the_oldest_go_where_there_is_no_room() {
        let check = async |room: AuditRoom, kept: usize| {
            let kit = Kit::new();
            let keys: Vec<_> = (0..5).map(|day| entry(&kit, DAY * day)).collect();
            let now = kit.clock.now();
            delete_old(kit.run(), room, now).await.unwrap();
            assert_eq!(left(&kit), keys[..kept], "{room:?}");
        };
        let kit = Kit::new();
        let key = entry(&kit, Duration::ZERO);
        let size = kit.store.objects_under(&key)[0].1.len();
        let size = u64::try_from(size).unwrap();
        let bytes = u64::MAX;
        check(AuditRoom { entries: 5, bytes }, 5).await;
        check(AuditRoom { entries: 3, bytes }, 3).await;
        check(AuditRoom { entries: 0, bytes }, 0).await;
        let entries = 5;
        check(
            AuditRoom {
                entries,
                bytes: 2 * size,
            },
            2,
        )
        .await;
        check(
            AuditRoom {
                entries,
                bytes: 3 * size - 1,
            },
            2,
        )
        .await;
    }

    #[tokio::test]
    async fn without_time_nothing_goes() {
        let kit = Kit::new();
        entry(&kit, 2 * AUDIT_KEPT);
        let run = kit.run();
        kit.clock.advance(Duration::from_secs(42));
        let now = kit.clock.now();
        assert_eq!(delete_old(run, AuditRoom::MOST, now).await.unwrap(), 0);
        assert_eq!(left(&kit).len(), 1);
    }
}
