//! Deletion of lists of resolved dead letters whose dead letters are gone: an operator deleted them
//! with another tool, or a process ended between the two.

use std::collections::HashSet;

use parking_lot::Mutex;
use posthaste_core::stored::layout;
use posthaste_ports::validate::LIST_PAGE_MAX;
use posthaste_ports::{ObjectMeta, ObjectStore, PortError, Ports};

use crate::run::WakeRun;

/// The minute of the hour in which they are looked for: one in which a run is due anyway.
pub(super) const MINUTE: u64 = 30;

/// The key after which the next run goes on, where one had no time to look at all lists.
#[derive(Debug, Default)]
pub(crate) struct ResolvedWalk(Mutex<Option<String>>);

/// Deletes the lists of objects that are gone, while there is time. Returns their number.
pub(super) async fn delete_orphans<P: Ports>(
    run: WakeRun<'_, P>,
    walk: &ResolvedWalk,
) -> Result<usize, PortError> {
    let bucket = &run.ports.dead_letters;
    let mut deleted = 0;
    loop {
        let after = walk.0.lock().clone();
        let page = bucket
            .list(layout::RESOLVED, after.as_deref(), LIST_PAGE_MAX)
            .await?;
        for lists in page.objects.chunk_by(are_of_one_folder) {
            let Some(more) = delete_orphans_of(run, lists, walk).await? else {
                return Ok(deleted);
            };
            deleted += more;
        }
        let is_last = page.next_after.is_none();
        *walk.0.lock() = page.next_after;
        if is_last {
            return Ok(deleted);
        }
    }
}

fn are_of_one_folder(one: &ObjectMeta, other: &ObjectMeta) -> bool {
    folder_of_key(&one.key) == folder_of_key(&other.key)
}

/// The same of lists whose dead letters lie in one folder. Of that only what is about the lists is
/// listed: a page decides on each list that it reaches, and the next begins at the one behind. `None`
/// once there is no time.
async fn delete_orphans_of<P: Ports>(
    run: WakeRun<'_, P>,
    lists: &[ObjectMeta],
    walk: &ResolvedWalk,
) -> Result<Option<usize>, PortError> {
    let bucket = &run.ports.dead_letters;
    let keys = lists
        .iter()
        .filter_map(|list| list.key.strip_prefix(layout::RESOLVED));
    let keys: Vec<_> = keys.map(str::to_owned).collect();
    let mut rest = &*keys;
    let mut deleted = 0;
    while let Some(first) = rest.first() {
        if !run.has_time() {
            return Ok(None);
        }
        let page = bucket
            .list(
                folder_of_key(first),
                Some(just_before(first)),
                LIST_PAGE_MAX,
            )
            .await?;
        let there: HashSet<_> = page.objects.iter().map(|object| &*object.key).collect();
        let reached = match &page.next_after {
            Some(end) => rest.partition_point(|key| key <= end),
            None => rest.len(),
        };
        let (reached, behind) = rest.split_at(reached);
        for key in reached.iter().filter(|key| !there.contains(&***key)) {
            bucket.delete(&layout::resolved_letters_key(key)).await?;
            deleted += 1;
        }
        // A page that does not even reach the first is full of its neighbours: that list stays.
        rest = if reached.is_empty() {
            &rest[1..]
        } else {
            behind
        };
        let last = keys.len() - rest.len();
        *walk.0.lock() = Some(layout::resolved_letters_key(&keys[last - 1]));
    }
    Ok(Some(deleted))
}

/// A text that sorts before a key, with little between the two.
fn just_before(key: &str) -> &str {
    let end = key.char_indices().next_back().map_or(0, |(at, _)| at);
    &key[..end]
}

/// The part of a key up to its last slash.
fn folder_of_key(key: &str) -> &str {
    key.rfind('/').map_or("", |end| &key[..=end])
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use posthaste_testkit::{FaultPlan, PortOperation};

    use super::super::clean_up_resolved;
    use super::*;
    use crate::testing::{Kit, PAGE};

    /// The letters of these keys, and a list about each of the others too.
    fn kit(letters: &[&str], others: &[&str]) -> Kit {
        let kit = Kit::new();
        kit.clock.advance(Duration::from_mins(25));
        for key in letters {
            kit.store.write(key, "[]");
        }
        for key in letters.iter().chain(others) {
            kit.store.write(&layout::resolved_letters_key(key), "{}");
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
        let left = there.map(layout::resolved_letters_key);
        assert_eq!(kit.store.keys(layout::RESOLVED), left);
        assert_eq!(kit.store.keys("ORDERS/").len(), there.len());
    }

    #[tokio::test]
    async fn list_beside_many_letters_of_others_is_decided_by_one_page() {
        let listed = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&listed);
        let counting = FaultPlan::by(move |effect| {
            let is_of_letters =
                effect.operation == PortOperation::List && effect.key == "ORDERS/A/";
            count.fetch_add(usize::from(is_of_letters), Ordering::Relaxed);
            None
        });
        let kit = Kit::with(&counting, &FaultPlan::none());
        kit.clock.advance(Duration::from_mins(25));
        for number in 0..20 * PAGE {
            let key = format!("ORDERS/A/2026/3/7/4/{number:05}.json");
            kit.store.write(&key, "[]");
        }
        kit.store.write("ORDERS/A/copied.json", "[]");
        for key in ["ORDERS/A/copied.json", "ORDERS/A/gone.json"] {
            kit.store.write(&layout::resolved_letters_key(key), "{}");
        }
        clean_up_resolved(kit.run(), &ResolvedWalk::default()).await;
        let left = [layout::resolved_letters_key("ORDERS/A/copied.json")];
        assert_eq!(kit.store.keys(layout::RESOLVED), left);
        assert_eq!(listed.load(Ordering::Relaxed), 1);
    }

    /// Orphaned lists are looked for in one minute of the hour only, and only while there is time.
    #[tokio::test]
    async fn resolved_lists_stay_in_other_minutes_and_without_time() {
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
