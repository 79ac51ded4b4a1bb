//! The folders of held objects, one for each subscription. A run finds them by a list that skips
//! most of the objects in each, so that a backlog of one subscription costs one request and not one
//! for every thousand objects.

use std::collections::VecDeque;

use crate::model::Timestamp;
use crate::stored::layout;

/// Most keys of a folder that are kept until its turn comes; the others are listed then.
const KEYS_KEPT_MAX: usize = 50;

/// The held objects of one subscription.
#[derive(Debug)]
pub struct HeldFolder {
    /// Name of the folder, `topic.subscription`.
    pub name: String,
    /// The next keys, in order.
    pub keys: VecDeque<String>,
    /// Deliveries that were sent in this run because they may, and not because they have expired.
    pub released: usize,
    /// The key after which there may be more.
    pub more_after: Option<String>,
}

impl HeldFolder {
    fn new(name: &str, key: String) -> Self {
        Self {
            name: name.to_owned(),
            keys: VecDeque::from([key]),
            released: 0,
            more_after: None,
        }
    }

    /// Sorts a page of keys into folders. Answers the name of the last folder where the list goes
    /// on, for more of that may follow. Keys of no folder are passed over.
    pub fn sort_page(keys: Vec<String>, has_more: bool, folders: &mut Vec<Self>) -> Option<String> {
        let last_key = keys.last().cloned().filter(|_| has_more);
        for key in keys {
            let Some(name) = layout::held_folder(&key) else {
                continue;
            };
            match folders.last_mut().filter(|folder| folder.name == name) {
                Some(folder) => folder.add_key(key),
                None => folders.push(Self::new(name, key.clone())),
            }
        }
        let last_key = last_key?;
        let name = layout::held_folder(&last_key)?.to_owned();
        let folder = folders.last_mut()?;
        if folder.more_after.is_none() {
            folder.more_after = Some(last_key);
        }
        Some(name)
    }

    /// Tells whether nothing is left in it, as far as is known.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.more_after.is_none()
    }

    /// Tells whether something in it has expired, as far as is known.
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.keys
            .front()
            .map_or(self.more_after.is_some(), |key| is_expired(key, now))
    }

    /// Takes the wanted keys out: all, or those whose first event has expired by a time.
    pub fn take_wanted(&mut self, expired_by: Option<Timestamp>) -> VecDeque<String> {
        let wanted = self
            .keys
            .iter()
            .take_while(|key| expired_by.is_none_or(|now| is_expired(key, now)));
        let end = wanted.count();
        self.keys.drain(..end).collect()
    }

    /// Puts back wanted keys whose objects were not used up.
    pub fn give_back(&mut self, keys: VecDeque<String>) {
        keys.into_iter()
            .rev()
            .for_each(|key| self.keys.push_front(key));
    }

    /// Puts one of the next keys in front, by a number that was drawn.
    pub fn put_drawn_first(&mut self, drawn: u16) {
        let index = usize::from(drawn) % self.keys.len().max(1);
        if let Some(key) = self.keys.remove(index) {
            self.keys.push_front(key);
        }
    }

    /// Puts the next keys in order again.
    pub fn sort_keys(&mut self) {
        self.keys.make_contiguous().sort_unstable();
    }

    fn add_key(&mut self, key: String) {
        if self.keys.len() < KEYS_KEPT_MAX {
            self.keys.push_back(key);
        } else if self.more_after.is_none() {
            self.more_after = self.keys.back().cloned();
        }
    }
}

/// Rotates folders, so that in every turn another one comes first and none has all the room there
/// is.
pub fn rotate_folders(folders: &mut VecDeque<HeldFolder>, turn: u64) {
    let count = u64::try_from(folders.len().max(1)).unwrap_or(u64::MAX);
    folders.rotate_left(usize::try_from(turn % count).unwrap_or(0));
}

/// Tells whether the first event of a held object has expired. A key that is none of ours counts as
/// expired, so that its object is looked at and reported.
fn is_expired(key: &str, now: Timestamp) -> bool {
    layout::held_expiry_minute(key).is_none_or(|minute| minute <= now.minute_rounded_down())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn owned(keys: &[&str]) -> Vec<String> {
        keys.iter().map(|key| (*key).to_owned()).collect()
    }

    #[test]
    fn page_is_sorted_into_folders_and_the_last_may_have_more() {
        let mut folders = Vec::new();
        let keys = owned(&[
            "held/a.b/1/x",
            "held/a.b/1/y",
            "held/foreign",
            "held/a.c/1/x",
        ]);
        assert_eq!(
            HeldFolder::sort_page(keys, true, &mut folders).as_deref(),
            Some("a.c")
        );
        let shape = |folder: &HeldFolder| {
            (
                folder.name.clone(),
                folder.keys.len(),
                folder.more_after.clone(),
            )
        };
        let shapes: Vec<_> = folders.iter().map(shape).collect();
        assert_eq!(
            shapes,
            [
                ("a.b".into(), 2, None),
                ("a.c".into(), 1, Some("held/a.c/1/x".into()))
            ]
        );
    }

    #[test]
    fn long_folder_keeps_a_few_keys_and_lists_the_others_later() {
        let keys: Vec<_> = (0..2 * KEYS_KEPT_MAX)
            .map(|n| format!("held/a.b/{n:04}/x"))
            .collect();
        for has_more in [false, true] {
            let mut folders = Vec::new();
            HeldFolder::sort_page(keys.clone(), has_more, &mut folders);
            let last = keys[KEYS_KEPT_MAX - 1].clone();
            assert_eq!(
                (folders[0].keys.len(), folders[0].more_after.clone()),
                (KEYS_KEPT_MAX, Some(last))
            );
        }
    }

    #[test]
    fn keys_that_have_expired_are_in_front_and_go_by_themselves() {
        let keys = owned(&[
            "held/a.b/20260307T0404Z/x",
            "held/a.b/20260307T0405Z/x",
            "held/a.b/20260307T0406Z/x",
        ]);
        let mut folders = Vec::new();
        HeldFolder::sort_page(keys.clone(), false, &mut folders);
        let mut folder = folders.remove(0);
        let now = Timestamp::parse("2026-03-07T04:05:30Z").unwrap();
        assert!(folder.has_expired(now));
        let expired = folder.take_wanted(Some(now));
        assert_eq!((expired.len(), folder.has_expired(now)), (2, false));
        folder.give_back(expired);
        assert_eq!(folder.take_wanted(None), keys);
        assert!(folder.is_empty());
    }

    proptest! {
        #[test]
        fn every_key_of_every_page_is_kept_or_listed_later(
            keys in prop::collection::btree_set((0_u8..4, 0_u16..400), 0..300),
            page in 1_usize..120,
        ) {
            let all: Vec<_> = keys.iter().map(|(folder, n)| format!("held/a.s{folder}/{n:04}/x")).collect();
            let (mut folders, mut after) = (Vec::new(), None::<String>);
            loop {
                let rest: Vec<_> = all.iter().filter(|key| Some(*key) > after.as_ref()).cloned().collect();
                let (next, has_more) = (rest.iter().take(page).cloned().collect(), rest.len() > page);
                let last = HeldFolder::sort_page(next, has_more, &mut folders);
                let Some(last) = last else { break };
                after = Some(layout::held_past(&last));
            }
            let names: BTreeSet<_> = folders.iter().map(|folder| &folder.name).collect();
            prop_assert_eq!(names.len(), folders.len());
            for key in &all {
                let is_of = |folder: &&HeldFolder| layout::held_folder(key) == Some(&folder.name);
                let folder = folders.iter().find(is_of).unwrap();
                let is_later = folder.more_after.as_ref().is_some_and(|after| key > after);
                prop_assert!(folder.keys.contains(key) != is_later, "{}", key);
            }
        }

        #[test]
        fn every_folder_comes_first_in_its_turn(count in 1_u64..20, turn in 0_u64..1_000) {
            let names = |turn| {
                let mut folders: VecDeque<_> =
                    (0..count).map(|n| HeldFolder::new(&n.to_string(), String::new())).collect();
                rotate_folders(&mut folders, turn);
                folders.into_iter().map(|folder| folder.name).collect::<Vec<_>>()
            };
            let first: BTreeSet<_> = (turn..turn + count).map(|turn| names(turn)[0].clone()).collect();
            prop_assert_eq!(first.len(), names(turn).len());
        }
    }
}
