//! Deletion of objects in the state bucket whose time is over. On AWS lifecycle rules of the bucket
//! do the same instead.

mod audit;
mod dead_letters;
mod kinds;
mod resolved;

use std::error::Error;
use std::time::Duration;

use futures_util::future::try_join_all;
use posthaste_core::model::Timestamp;
use posthaste_ports::validate::LIST_PAGE_MAX;
use posthaste_ports::{Clock, ObjectStore, PortError, Ports};

use crate::run::WakeRun;
pub(crate) use dead_letters::DeadLetterWalk;
use kinds::{DELETES_AT_ONCE, KINDS, ObjectKind};
pub(crate) use resolved::ResolvedWalk;

/// Each kind is looked for once an hour: objects are kept for a day or longer.
const MINUTES_BETWEEN: u64 = 60;

/// The next minute in which a kind is looked for, dead letters only if some may be deleted.
pub(crate) fn next_minute(now: Timestamp, deletes_dead_letters: bool) -> u64 {
    let mut later = (1..=MINUTES_BETWEEN).map(|minutes| now.minute_rounded_down() + minutes);
    later
        .find(|minute| {
            let of_hour = minute % MINUTES_BETWEEN;
            KINDS.iter().any(|kind| of_hour == kind.minute)
                || deletes_dead_letters && of_hour == dead_letters::MINUTE
        })
        .unwrap_or(now.minute_rounded_down())
}

/// Deletes old objects of the kinds whose minute this is, while there is time. An object that is
/// not deleted is found again an hour later, and holds up no other kind.
pub(crate) async fn clean_up<P: Ports>(run: WakeRun<'_, P>) {
    let now = run.ports.clock.now();
    for kind in KINDS
        .iter()
        .filter(|kind| now.minute_rounded_down() % MINUTES_BETWEEN == kind.minute)
    {
        log_deleted(kind.name, run.in_time(delete_old(run, kind, now)).await);
    }
    if now.minute_rounded_down() % MINUTES_BETWEEN == audit::MINUTE {
        let deleted = run.in_time(audit::delete_old(run, audit::AuditRoom::MOST, now));
        log_deleted("entries of the audit trail", deleted.await);
    }
}

/// Deletes dead letters that were kept for this long, in the minute of the hour that is theirs.
pub(crate) async fn clean_up_dead_letters<P: Ports>(
    run: WakeRun<'_, P>,
    walk: &DeadLetterWalk,
    kept: Duration,
) {
    let now = run.ports.clock.now();
    if now.minute_rounded_down() % MINUTES_BETWEEN == dead_letters::MINUTE {
        let deleted = run.in_time(dead_letters::delete_old(run, walk, kept, now));
        log_deleted("dead letters", deleted.await);
    }
}

/// Deletes lists of resolved dead letters that are gone, in the minute of the hour that is theirs.
pub(crate) async fn clean_up_resolved<P: Ports>(run: WakeRun<'_, P>, walk: &ResolvedWalk) {
    if run.ports.clock.now().minute_rounded_down() % MINUTES_BETWEEN == resolved::MINUTE {
        let deleted = run.in_time(resolved::delete_orphans(run, walk));
        log_deleted("lists of resolved dead letters", deleted.await);
    }
}

/// Logs what came of one kind; `None` where it was not done in time.
fn log_deleted(name: &'static str, deleted: Option<Result<usize, PortError>>) {
    match deleted {
        Some(Ok(0)) => {}
        Some(Ok(deleted)) => {
            tracing::info!(kind = name, objects = deleted, "old objects deleted");
        }
        Some(Err(error)) => {
            tracing::warn!(
                kind = name,
                error = &error as &dyn Error,
                "old objects not deleted"
            );
        }
        None => tracing::warn!(kind = name, "old objects not deleted in time"),
    }
}

async fn delete_old<P: Ports>(
    run: WakeRun<'_, P>,
    kind: &ObjectKind,
    now: Timestamp,
) -> Result<usize, PortError> {
    let store = &run.ports.state;
    let is_old = kind.is_old(now);
    let mut deleted = 0;
    let mut after = None;
    for _ in 0..kind.pages_max {
        let page = store
            .list(kind.prefix, after.as_deref(), LIST_PAGE_MAX)
            .await?;
        let old: Vec<_> = page
            .objects
            .iter()
            .filter(|object| is_old(object))
            .collect();
        for some in old.chunks(DELETES_AT_ONCE) {
            if !run.has_time() {
                return Ok(deleted);
            }
            let gone = try_join_all(
                some.iter()
                    .map(|object| delete_one(store, kind, &object.key, now)),
            );
            deleted += gone.await?.into_iter().filter(|is_gone| *is_gone).count();
        }
        // A page may be short and yet not the last.
        after = page.next_after;
        if after.is_none() || (kind.is_in_order() && old.len() < page.objects.len()) {
            break;
        }
    }
    Ok(deleted)
}

/// Deletes an object that was listed as old, unless its content shows that it is in use again.
async fn delete_one(
    store: &impl ObjectStore,
    kind: &ObjectKind,
    key: &str,
    now: Timestamp,
) -> Result<bool, PortError> {
    if let Some(is_over) = kind.is_over {
        let Some(found) = store.get(key).await? else {
            return Ok(false);
        };
        if !is_over(&found.bytes, now) {
            return Ok(false);
        }
    }
    store.delete(key).await.map(|()| true)
}

#[cfg(test)]
mod tests {
    use posthaste_core::stored::{IdempotencyRecord, RequestDigest, layout};

    use serde_json::json;

    use super::*;
    use crate::testing::{Kit, subscription};

    const YEAR: Duration = Duration::from_hours(365 * 24);
    const DAY: Duration = Duration::from_hours(24);

    /// A kit in which it is this minute past five, and the time a year ago.
    fn at(minute: u64) -> (Kit, Timestamp) {
        let kit = Kit::new();
        kit.clock.advance(Duration::from_mins(55 + minute));
        let old = kit.clock.now().as_millis() - u64::try_from(YEAR.as_millis()).unwrap();
        (kit, Timestamp::from_millis(old))
    }

    /// Old objects are deleted in the minute of their kind, and young ones stay.
    #[tokio::test]
    async fn old_objects_go_in_the_minute_of_their_kind_and_young_stay() {
        let check = async |minute, expected: [usize; 7]| {
            let (kit, old) = at(minute);
            for (name, at) in [("old", old), ("young", kit.clock.now())] {
                kit.store.write_at(
                    &layout::replay_record_key(&layout::replay_id(at, name)),
                    "",
                    at,
                );
                for prefix in [layout::CLAIMS, layout::LATE, layout::CANCELLED] {
                    kit.store.write_at(&format!("{prefix}{name}"), "", at);
                }
                let days = [layout::payloads_before, layout::scheduled_payloads_before];
                for day in days {
                    kit.store.write_at(&format!("{}{name}", day(at)), "", at);
                }
                kit.store
                    .write_at(&format!("{}{name}", layout::IDEMPOTENCY), "", at);
            }
            clean_up(kit.run()).await;
            let left = KINDS.map(|kind| kit.store.keys(kind.prefix).len());
            assert_eq!(left, expected, "{minute}");
        };
        check(0, [1, 1, 1, 1, 1, 1, 2]).await;
        check(30, [2, 2, 2, 2, 2, 2, 1]).await;
        check(7, [2, 2, 2, 2, 2, 2, 2]).await;
    }

    #[tokio::test]
    async fn an_old_key_that_was_claimed_again_stays() {
        let (kit, old) = at(30);
        let digest = RequestDigest::from_request([], b"");
        let claimed = IdempotencyRecord::new_claim(digest, "x".to_owned(), kit.clock.now());
        kit.store
            .write_at(&format!("{}a", layout::IDEMPOTENCY), claimed.render(), old);
        clean_up(kit.run()).await;
        assert_eq!(kit.store.keys(layout::IDEMPOTENCY).len(), 1);
    }

    /// Dead letters that were written so long ago, in a bucket whose pages have three of them.
    fn with_dead_letters(minute: u64, ages: &[Duration]) -> Kit {
        let (kit, _) = at(minute);
        for (nth, age) in ages.iter().enumerate() {
            let age_ms = u64::try_from(age.as_millis()).unwrap();
            let written = Timestamp::from_millis(kit.clock.now().as_millis() - age_ms);
            let key = format!("ORDERS/BILLING/2026/3/7/4/{nth}.json");
            kit.store.write_at(&key, "", written);
        }
        kit
    }

    fn dead_letters_left(kit: &Kit) -> usize {
        kit.store.keys("ORDERS/").len()
    }

    #[tokio::test]
    async fn dead_letters_go_when_they_are_older_than_they_are_kept() {
        let second = Duration::from_secs(1);
        let ages = [
            YEAR,
            second,
            DAY,
            DAY.saturating_sub(second),
            YEAR,
            DAY + second,
            YEAR,
        ];
        let check = async |minute, expected| {
            let kit = with_dead_letters(minute, &ages);
            clean_up_dead_letters(kit.run(), &DeadLetterWalk::default(), DAY).await;
            assert_eq!(dead_letters_left(&kit), expected, "{minute}");
        };
        check(45, 2).await;
        check(44, ages.len()).await;
        check(0, ages.len()).await;
    }

    /// A setting of the operator must not end what a subscription asks for.
    #[tokio::test]
    async fn dead_letters_that_may_be_recovered_are_kept_for_that_time() {
        let check = async |recovery: serde_json::Value, expected| {
            let kit = with_dead_letters(45, &[YEAR, 3 * DAY, 2 * DAY]);
            let settings = json!({ "recovery": recovery });
            kit.topic(json!({ "subscriptions": { "billing": subscription(settings) } }));
            clean_up_dead_letters(kit.run(), &DeadLetterWalk::default(), DAY).await;
            assert_eq!(dead_letters_left(&kit), expected, "{recovery}");
        };
        check(json!({}), 2).await;
        check(json!({ "within": "P2D" }), 0).await;
        check(json!({ "within": "P2DT1S" }), 1).await;
        check(json!({ "enabled": false }), 0).await;
    }

    #[tokio::test]
    async fn a_walk_over_dead_letters_goes_on_where_the_last_run_ended() {
        let kit = with_dead_letters(45, &[YEAR; 7]);
        let walk = DeadLetterWalk::after("ORDERS/BILLING/2026/3/7/4/2.json");
        let run = kit.run();
        kit.clock.advance(Duration::from_secs(42));
        clean_up_dead_letters(run, &walk, DAY).await;
        assert_eq!(dead_letters_left(&kit), 7, "without time");
        clean_up_dead_letters(kit.run(), &walk, DAY).await;
        assert_eq!(dead_letters_left(&kit), 3, "those before");
        clean_up_dead_letters(kit.run(), &walk, DAY).await;
        assert_eq!(dead_letters_left(&kit), 0, "from the first again");
    }

    #[test]
    fn a_run_is_due_for_dead_letters_only_if_some_may_be_deleted() {
        let kit = Kit::new();
        let now = kit.clock.now();
        let hour = now.minute_rounded_down() - 5;
        assert_eq!(next_minute(now, false), hour + 30);
        kit.clock.advance(Duration::from_mins(30));
        let later = kit.clock.now();
        assert_eq!(next_minute(later, true), hour + 45);
        assert_eq!(next_minute(later, false), hour + 60);
    }

    #[tokio::test]
    async fn without_time_nothing_is_deleted() {
        let (kit, old) = at(0);
        kit.store.write_at(&format!("{}a", layout::LATE), "", old);
        let run = kit.run();
        kit.clock.advance(Duration::from_secs(42));
        clean_up(run).await;
        assert_eq!(kit.store.keys(layout::LATE).len(), 1);
    }
}
