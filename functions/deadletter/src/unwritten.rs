//! Dead letters that their bucket refuses: a gauge says how long the oldest of them has waited, and
//! a counter how often a write was refused. Each try makes a fresh message, so the queue's own age
//! of its oldest message shows nothing.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use posthaste_core::model::{DeadLetter, StorageTrouble, Timestamp};
use posthaste_core::stored::RefusedLetters;

use crate::letter::LoadedLetter;
use crate::retry_wait::wait_after_refusal;

/// Most letters that are remembered. The oldest is among them.
const REMEMBERED_MAX: usize = 10_000;

/// Time after which a letter that is not seen again is forgotten: longer than the queue delays it
/// (15 min) and gathers it with others (5 min). By then another process has written it.
const REMEMBERED_FOR: Duration = Duration::from_mins(30);

/// The least time between two reports to the monitor.
const TOLD_INTERVAL: Duration = Duration::from_secs(10);

/// The letters that this process saw refused and not yet written.
#[derive(Debug, Default)]
pub(crate) struct UnwrittenLetters {
    refused: Mutex<RefusedWrites>,
}

#[derive(Debug, Default)]
struct RefusedWrites {
    letters: HashMap<String, RefusedLetter>,
    /// True while the gauge shows anything but zero.
    is_shown: bool,
    /// True once the monitor was told of all of them.
    is_told: bool,
    /// The time of the last report to the monitor.
    told_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy)]
struct RefusedLetter {
    since: Timestamp,
    seen_at: Timestamp,
    /// The time at which it is tried again.
    due: Timestamp,
}

impl UnwrittenLetters {
    /// Counts a refused write of these letters.
    pub(crate) fn note_refused(&self, letters: &[LoadedLetter], now: Timestamp) {
        metrics::counter!("DeadLetterWriteRefusedCount").increment(1);
        for read in letters {
            self.note_letter(&read.letter.dead, now);
        }
    }

    fn note_letter(&self, dead: &DeadLetter, now: Timestamp) {
        let mut refused = self.refused.lock();
        let key = letter_key(dead);
        if refused.letters.len() < REMEMBERED_MAX || refused.letters.contains_key(&key) {
            let since = dead.storage.map_or(now, |trouble| trouble.since);
            let wait = wait_after_refusal(StorageTrouble::once_more(dead.storage, now));
            let letter = RefusedLetter {
                since,
                seen_at: now,
                due: now + wait,
            };
            refused.letters.insert(key, letter);
            refused.is_told = false;
        }
    }

    /// Forgets a letter that was written or given up.
    pub(crate) fn forget_letter(&self, dead: &DeadLetter) {
        let mut refused = self.refused.lock();
        if !refused.letters.is_empty() {
            refused.letters.remove(&letter_key(dead));
        }
    }

    /// The letters of which the monitor is to be told now: none if it knows all, or was told a
    /// moment ago.
    pub(crate) fn untold_letters(&self, now: Timestamp) -> Option<RefusedLetters> {
        let mut refused = self.refused.lock();
        let was_just_told = refused
            .told_at
            .is_some_and(|at| now.since(at) < TOLD_INTERVAL);
        if refused.letters.is_empty() || refused.is_told || was_just_told {
            return None;
        }
        refused.is_told = true;
        refused.told_at = Some(now);
        let mut letters = RefusedLetters::default();
        refused
            .letters
            .values()
            .for_each(|letter| letters.add_letter(letter.due));
        Some(letters)
    }

    /// Sets the gauge, and once to zero when the trouble ends: CloudWatch bills each metric that is
    /// sent.
    pub(crate) fn set_gauge(&self, now: Timestamp) {
        let mut refused = self.refused.lock();
        let oldest = refused.oldest_since(now);
        if oldest.is_some() || refused.is_shown {
            let age = oldest.map_or(Duration::ZERO, |since| now.since(since));
            metrics::gauge!("OldestUnwrittenDeadLetterInSeconds").set(age.as_secs_f64());
        }
        refused.is_shown = oldest.is_some();
    }
}

impl RefusedWrites {
    /// The time since which the oldest waits.
    fn oldest_since(&mut self, now: Timestamp) -> Option<Timestamp> {
        self.letters
            .retain(|_, letter| now.since(letter.seen_at) < REMEMBERED_FOR);
        self.letters.values().map(|letter| letter.since).min()
    }
}

/// The name of a letter over all its messages: the key of its first event, and its subscription.
fn letter_key(dead: &DeadLetter) -> String {
    let event = dead
        .delivery
        .events
        .first()
        .map_or("", |entry| entry.key.as_str());
    format!("{}/{event}", dead.delivery.message_group_id())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::letter;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000_000);
    const MINUTE: Duration = Duration::from_mins(1);

    fn dead(event: &str, since: Option<Timestamp>) -> DeadLetter {
        let mut dead = letter("a", vec![crate::tests::stored("payloads/x", 1)]).dead;
        dead.delivery.events[0].key = event.to_owned();
        dead.storage = since.map(|since| StorageTrouble { since, failures: 1 });
        dead
    }

    fn oldest(unwritten: &UnwrittenLetters, now: Timestamp) -> Option<Timestamp> {
        unwritten.refused.lock().oldest_since(now)
    }

    #[test]
    fn the_oldest_counts_until_it_is_written() {
        let unwritten = UnwrittenLetters::default();
        let old = dead("old", Some(Timestamp::EPOCH));
        let young = dead("young", None);
        assert_eq!(oldest(&unwritten, NOW), None);
        unwritten.note_letter(&young, NOW);
        unwritten.note_letter(&old, NOW);
        assert_eq!(oldest(&unwritten, NOW + MINUTE), Some(Timestamp::EPOCH));
        unwritten.forget_letter(&old);
        assert_eq!(oldest(&unwritten, NOW + MINUTE), Some(NOW));
        unwritten.forget_letter(&young);
        assert_eq!(oldest(&unwritten, NOW + MINUTE), None);
    }

    #[test]
    fn monitor_is_told_of_refused_letters_that_wait() {
        let unwritten = UnwrittenLetters::default();
        assert_eq!(unwritten.untold_letters(NOW), None);
        // The first wait is 10 s, and the second 20 s.
        unwritten.note_letter(&dead("young", None), NOW);
        unwritten.note_letter(&dead("old", Some(NOW)), NOW);
        let told = unwritten.untold_letters(NOW).unwrap();
        let waiting =
            [0, 10, 20, 30].map(|secs| told.count_waiting(NOW + Duration::from_secs(secs)));
        // They are counted together by ten seconds.
        assert_eq!(waiting, [2, 2, 1, 0]);
        assert_eq!(unwritten.untold_letters(NOW + MINUTE), None);
        unwritten.note_letter(&dead("another", None), NOW);
        assert_eq!(unwritten.untold_letters(NOW + Duration::from_secs(9)), None);
        let told = unwritten
            .untold_letters(NOW + Duration::from_secs(10))
            .unwrap();
        assert_eq!(told.count_waiting(NOW), 3);
    }

    #[test]
    fn letter_not_seen_again_counts_as_written_by_another() {
        let unwritten = UnwrittenLetters::default();
        unwritten.note_letter(&dead("a", None), NOW);
        assert_eq!(oldest(&unwritten, NOW + 29 * MINUTE), Some(NOW));
        assert_eq!(oldest(&unwritten, NOW + 30 * MINUTE), None);
    }
}
