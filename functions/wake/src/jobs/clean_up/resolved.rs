//! Deletion of lists of resolved dead letters whose dead letters are gone: an operator deleted them
//! with another tool, or a process ended between the two.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use posthaste_core::stored::layout;
use posthaste_ports::validate::LIST_PAGE_MAX;
use posthaste_ports::{ObjectMeta, ObjectStore, PortError, Ports};

use crate::run::Run;

/// The minute of the hour in which they are looked for: one in which a run is due anyway.
pub(super) const MINUTE: u64 = 30;

/// The key after which the next run goes on, where one had no time to look at all lists.
#[derive(Debug, Default)]
pub(crate) struct ResolvedWalk(Mutex<Option<String>>);

/// Deletes the lists of objects that are gone, while there is time. Returns their number.
pub(super) async fn delete_orphans<P: Ports>(
    run: Run<'_, P>,
    walk: &ResolvedWalk,
) -> Result<usize, PortError> {
    let bucket = &run.ports.dead_letters;
    let mut deleted = 0;
    loop {
        let after = walk.0.lock().clone();
        let page = bucket
            .list(layout::RESOLVED, after.as_deref(), LIST_PAGE_MAX)
            .await?;
        let is_alike =
            |one: &ObjectMeta, other: &ObjectMeta| folder(&one.key) == folder(&other.key);
        for lists in page.objects.chunk_by(is_alike) {
            if !run.has_time() {
                return Ok(deleted);
            }
            deleted += delete_orphans_of(bucket, lists).await?;
            *walk.0.lock() = lists.last().map(|list| list.key.clone());
        }
        let is_last = page.next_after.is_none();
        *walk.0.lock() = page.next_after;
        if is_last {
            return Ok(deleted);
        }
    }
}

/// The same of lists whose dead letters lie in one folder, which is listed as far as they reach.
async fn delete_orphans_of(
    bucket: &impl ObjectStore,
    lists: &[ObjectMeta],
) -> Result<usize, PortError> {
    let about = |list: &ObjectMeta| list.key.strip_prefix(layout::RESOLVED).map(str::to_owned);
    let keys: BTreeSet<_> = lists.iter().filter_map(about).collect();
    let Some(last) = keys.last() else {
        return Ok(0);
    };
    let (mut there, mut after) = (BTreeSet::new(), None);
    loop {
        let page = bucket
            .list(folder(last), after.as_deref(), LIST_PAGE_MAX)
            .await?;
        there.extend(page.objects.into_iter().map(|object| object.key));
        after = page.next_after.filter(|next| next < last);
        if after.is_none() {
            break;
        }
    }
    for key in keys.difference(&there) {
        bucket.delete(&layout::resolved(key)).await?;
    }
    Ok(keys.difference(&there).count())
}

/// The part of a key up to its last slash.
fn folder(key: &str) -> &str {
    key.rfind('/').map_or("", |end| &key[..=end])
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::clean_up_resolved;
    use super::*;
    use crate::testing::Kit;

    /// The letters of these keys, and a list about each of the others too.
    fn kit(letters: &[&str], others: &[&str]) -> Kit {
        let kit = Kit::new();
        kit.clock.advance(Duration::from_mins(25));
        for key in letters {
            kit.store.write(key, "[]");
        }
        for key in letters.iter().chain(others) {
            kit.store.write(&layout::resolved(key), "{}");
        }
        kit
    }

    #[tokio::test]
    async fn list_goes_when_its_dead_letters_are_gone() {
        let there = [
            "ORDERS/A/2026/3/7/4/a.json",
            "ORDERS/A/2026/3/7/4/c.json",
            "ORDERS/B/2026/3/7/4/b.json",
        ];
        let gone = [
            "ORDERS/A/2026/3/7/4/b.json",
            "ORDERS/A/2026/3/7/4/d.json",
            "ORDERS/A/2026/3/7/5/a.json",
            "PARCELS/A/2026/3/7/4/a.json",
        ];
        let kit = kit(&there, &gone);
        let walk = ResolvedWalk::default();
        clean_up_resolved(kit.run(), &walk).await;
        let left = there.map(layout::resolved);
        assert_eq!(kit.store.keys(layout::RESOLVED), left);
        assert_eq!(kit.store.keys("ORDERS/").len(), there.len());
    }

    #[tokio::test]
    async fn nothing_is_looked_for_in_another_minute_or_without_time() {
        let kit = kit(&[], &["ORDERS/A/2026/3/7/4/b.json"]);
        let walk = ResolvedWalk::default();
        let run = kit.run();
        kit.clock.advance(Duration::from_secs(42));
        clean_up_resolved(run, &walk).await;
        kit.clock.advance(Duration::from_mins(1));
        clean_up_resolved(kit.run(), &walk).await;
        assert_eq!(kit.store.keys(layout::RESOLVED).len(), 1);
    }
}
