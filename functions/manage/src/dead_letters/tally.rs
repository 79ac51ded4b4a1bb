//! The counted letters of dead-letter objects, kept in the process. An object never changes once it
//! is written, so that the second look at it costs no read. Which of its letters are resolved is no
//! part of this: that is read anew.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use posthaste_core::model::DeadLetterReason;
use posthaste_core::stored::dead_letter::ShownLetter;
use posthaste_ports::EvictedAmount;

/// Most objects that are remembered: their keys take some 4 MB.
const OBJECTS_MAX: usize = 20_000;

/// Most bytes that are remembered, as a process on AWS may have 256 MB for all that it does.
const BYTES_MAX: usize = 8 * 1024 * 1024;

/// Approximate bytes of an object beside its key and its letters: two entries of trees.
const ENTRY_OVERHEAD_BYTES: usize = 120;

/// A letter, as far as groups count it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LetterTally {
    /// The reason; `None` where it is none that posthaste knows.
    pub(super) reason: Option<DeadLetterReason>,
    /// The HTTP status of the last attempt.
    pub(super) status: Option<u16>,
}

impl LetterTally {
    /// The facts of a letter that groups count.
    pub(super) fn from_letter(letter: &ShownLetter) -> Self {
        let word = letter.reason.as_deref();
        let mut known = DeadLetterReason::ALL.into_iter();
        Self {
            reason: known.find(|reason| word == Some(reason.as_str())),
            status: letter.status,
        }
    }
}

/// The letters of an object, in order.
pub(super) type ObjectTally = Arc<[LetterTally]>;

/// The object whose letters are counted. One that was deleted and put in again may have other
/// letters, which its size mostly tells.
#[derive(Debug, Clone, Copy)]
pub(super) struct TalliedObject<'a> {
    pub(super) key: &'a str,
    pub(super) bytes: u64,
}

/// The objects whose letters this process has counted, as many as there is room for.
#[derive(Debug, Default)]
pub(crate) struct LetterTallies(Mutex<RecentTallies>);

#[derive(Debug, Default)]
struct RecentTallies {
    objects: BTreeMap<Arc<str>, KeptTally>,
    /// The keys by their last turn: the first one has not been asked for the longest.
    turns: BTreeMap<u64, Arc<str>>,
    last_turn: u64,
    bytes: usize,
}

#[derive(Debug)]
struct KeptTally {
    letters: ObjectTally,
    object_bytes: u64,
    turn: u64,
}

impl LetterTallies {
    /// The letters of an object, if they are remembered.
    pub(super) fn find(&self, object: TalliedObject<'_>) -> Option<ObjectTally> {
        self.0.lock().find(object)
    }

    /// Remembers the letters of an object. Those that were not asked for the longest make room.
    pub(super) fn keep(&self, object: TalliedObject<'_>, letters: &ObjectTally) {
        self.0.lock().keep(object, letters);
    }

    /// Forgets all objects.
    pub(crate) fn clear(&self) -> EvictedAmount {
        let tallies = std::mem::take(&mut *self.0.lock());
        EvictedAmount {
            entries: tallies.objects.len(),
            bytes: tallies.bytes,
        }
    }
}

impl RecentTallies {
    fn find(&mut self, object: TalliedObject<'_>) -> Option<ObjectTally> {
        let kept = self.objects.get_mut(object.key)?;
        if kept.object_bytes != object.bytes {
            self.remove(object.key);
            return None;
        }
        let key = self.turns.remove(&kept.turn)?;
        self.last_turn += 1;
        kept.turn = self.last_turn;
        self.turns.insert(kept.turn, key);
        Some(Arc::clone(&kept.letters))
    }

    fn keep(&mut self, object: TalliedObject<'_>, letters: &ObjectTally) {
        self.remove(object.key);
        let bytes = kept_bytes(object.key, letters);
        if bytes > BYTES_MAX {
            return;
        }
        while self.objects.len() == OBJECTS_MAX || self.bytes + bytes > BYTES_MAX {
            let Some((_, oldest)) = self.turns.first_key_value() else {
                break;
            };
            let oldest = Arc::clone(oldest);
            self.remove(&oldest);
        }
        let key: Arc<str> = object.key.into();
        self.last_turn += 1;
        self.bytes += bytes;
        self.turns.insert(self.last_turn, Arc::clone(&key));
        let kept = KeptTally {
            letters: Arc::clone(letters),
            object_bytes: object.bytes,
            turn: self.last_turn,
        };
        self.objects.insert(key, kept);
    }

    fn remove(&mut self, key: &str) {
        if let Some(kept) = self.objects.remove(key) {
            self.turns.remove(&kept.turn);
            self.bytes -= kept_bytes(key, &kept.letters);
        }
    }
}

fn kept_bytes(key: &str, letters: &ObjectTally) -> usize {
    key.len() + size_of_val::<[LetterTally]>(letters) + ENTRY_OVERHEAD_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(key: &str) -> TalliedObject<'_> {
        TalliedObject { key, bytes: 7 }
    }

    fn letters(count: usize) -> ObjectTally {
        let letter = LetterTally {
            reason: None,
            status: Some(503),
        };
        vec![letter; count].into()
    }

    #[test]
    fn known_reason_is_kept_and_any_other_is_none() {
        let reason = |word: &str| {
            let letter = ShownLetter {
                reason: Some(word.to_owned()),
                ..ShownLetter::default()
            };
            LetterTally::from_letter(&letter).reason
        };
        assert_eq!(reason("EndpointGone"), Some(DeadLetterReason::EndpointGone));
        assert_eq!(reason("endpointgone"), None);
        assert_eq!(
            LetterTally::from_letter(&ShownLetter::default()).reason,
            None
        );
    }

    #[test]
    fn object_of_another_size_is_counted_again() {
        let tallies = LetterTallies::default();
        tallies.keep(object("a"), &letters(2));
        let other = TalliedObject { key: "a", bytes: 8 };
        assert_eq!(tallies.find(object("a")), Some(letters(2)));
        assert_eq!(tallies.find(other), None);
        assert_eq!(tallies.find(object("a")), None);
        assert_eq!(tallies.0.lock().bytes, 0);
    }

    #[test]
    fn objects_not_asked_for_the_longest_make_room() {
        let tallies = LetterTallies::default();
        let third = BYTES_MAX / 3 / size_of::<LetterTally>() - ENTRY_OVERHEAD_BYTES;
        for key in ["a", "b", "c"] {
            tallies.keep(object(key), &letters(third));
        }
        assert!(tallies.find(object("a")).is_some());
        tallies.keep(object("d"), &letters(third));
        let kept = ["a", "b", "c", "d"].map(|key| tallies.find(object(key)).is_some());
        assert_eq!(kept, [true, false, true, true]);
        assert!(tallies.0.lock().bytes <= BYTES_MAX);
    }

    #[test]
    fn number_and_bytes_of_objects_are_bounded() {
        let tallies = LetterTallies::default();
        for number in 0..OBJECTS_MAX + 10 {
            tallies.keep(object(&number.to_string()), &letters(1));
        }
        assert_eq!(tallies.0.lock().objects.len(), OBJECTS_MAX);
        assert_eq!(tallies.0.lock().turns.len(), OBJECTS_MAX);
        assert_eq!(tallies.find(object("9")), None);
        assert!(tallies.find(object("10")).is_some());
        tallies.keep(object("huge"), &letters(BYTES_MAX));
        assert_eq!(tallies.find(object("huge")), None);
        assert_eq!(tallies.0.lock().objects.len(), OBJECTS_MAX);
        let freed = tallies.clear();
        assert!(freed.entries == OBJECTS_MAX && freed.bytes > OBJECTS_MAX);
        assert!(tallies.find(object("10")).is_none() && tallies.0.lock().bytes == 0);
    }

    #[test]
    fn object_that_is_kept_twice_counts_once() {
        let tallies = LetterTallies::default();
        tallies.keep(object("a"), &letters(5));
        let bytes = tallies.0.lock().bytes;
        tallies.keep(object("a"), &letters(5));
        assert_eq!(tallies.0.lock().bytes, bytes);
        assert_eq!(tallies.0.lock().turns.len(), 1);
    }
}
