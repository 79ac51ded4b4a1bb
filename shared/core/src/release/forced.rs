//! The walk through all that is parked for subscriptions that an operator forced. One walk serves
//! all requests, in pages, a bounded part in each run; a request remembers how far it came.

use std::collections::VecDeque;

use crate::model::Timestamp;
use crate::stored::layout;

/// Most pages of what is parked that are walked through in one run.
const PAGES_MAX: usize = 20;

/// The minutes before an object is due in which it is left to the ordinary release, which runs
/// beside this one and would send it as well.
const LEFT_BEFORE_DUE_MINUTES: u64 = 1;

/// A subscription whose parked deliveries are to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForcedFolder {
    /// Name of the folder, `topic.subscription`.
    pub name: String,
    /// The last key that was looked at for it.
    pub after: Option<String>,
}

/// One run's walk, for all requests together.
#[derive(Debug, Default)]
pub struct ForcedWalk {
    folders: Vec<ForcedFolder>,
    /// Everything up to this key was looked at: the pages before this one.
    reached: Option<String>,
    /// The keys of this page.
    listed: Vec<String>,
    /// The keys of this page that are forced and were not released.
    pub keys: VecDeque<String>,
    /// The key after which the next page begins, if there is one.
    next_after: Option<String>,
    pages: usize,
    end: Option<WalkEnd>,
}

/// The end of a run's walk.
#[derive(Debug)]
enum WalkEnd {
    /// Everything was looked at.
    Through,
    /// Something is left for the next run: from this key on, or all that was not looked at.
    Left(Option<String>),
}

impl ForcedWalk {
    /// A walk for these subscriptions, from where the one begins that is least far.
    pub fn begin(folders: Vec<ForcedFolder>) -> Self {
        let reached = folders
            .iter()
            .map(|folder| folder.after.clone())
            .min()
            .flatten();
        let end = folders.is_empty().then_some(WalkEnd::Through);
        Self {
            folders,
            next_after: reached.clone(),
            reached,
            end,
            ..Self::default()
        }
    }

    /// Tells whether there may be more to send in this run.
    pub fn is_open(&self) -> bool {
        self.end.is_none()
    }

    /// Turns to the next page. Answers the key after which it is to be listed, `None` for the
    /// start; or nothing, where the walk has ended.
    pub fn turn_page(&mut self) -> Option<Option<String>> {
        if self.pages > 0 && self.next_after.is_none() {
            self.end = Some(WalkEnd::Through);
            return None;
        }
        self.reached.clone_from(&self.next_after);
        self.listed.clear();
        if self.pages >= PAGES_MAX {
            self.stop();
            return None;
        }
        Some(self.reached.clone())
    }

    /// The next page. Objects that are due soon are left out.
    pub fn add_page(&mut self, keys: Vec<String>, next_after: Option<String>, now: Timestamp) {
        let left_through = now.minute_rounded_down() + LEFT_BEFORE_DUE_MINUTES;
        self.keys = keys
            .iter()
            .filter(|key| layout::parked_due_minute(key).is_some_and(|due| due > left_through))
            .filter(|key| self.folders.iter().any(|folder| folder.asks_for(key)))
            .cloned()
            .collect();
        self.pages += 1;
        self.listed = keys;
        self.next_after = next_after;
    }

    /// Ends the walk of this run; the next one goes on.
    pub fn stop(&mut self) {
        self.end.get_or_insert(WalkEnd::Left(None));
    }

    /// Ends the walk of this run: of the keys from this one on, the queue did not take some.
    pub fn stop_at_refused(&mut self, key: String) {
        self.end = Some(WalkEnd::Left(Some(key)));
    }

    /// Tells whether everything was looked at.
    pub fn is_finished(&self) -> bool {
        matches!(self.end, Some(WalkEnd::Through))
    }

    /// The last key that the next run need not look at again.
    pub fn reached_key(&self) -> Option<String> {
        let refused = match &self.end {
            Some(WalkEnd::Left(key)) => key.as_ref(),
            _ => None,
        };
        let first_left = refused.or(self.keys.front());
        self.listed
            .iter()
            .take_while(|key| first_left.is_none_or(|left| *key < left))
            .last()
            .cloned()
            .or_else(|| self.reached.clone())
    }
}

impl ForcedFolder {
    /// Tells whether an object is of this subscription, and was not looked at for it. What a
    /// producer published for later goes at its time.
    fn asks_for(&self, key: &str) -> bool {
        if layout::is_scheduled(key) {
            return false;
        }
        let is_new = self.after.as_deref().is_none_or(|after| key > after);
        is_new && layout::parked_folder(key) == Some(self.name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(60_000_000);

    fn key(minute: u64, folder: &str) -> String {
        format!("{}/{folder}/x.json", layout::parked_before(minute))
    }

    fn forced(name: &str, after: Option<String>) -> ForcedFolder {
        ForcedFolder {
            name: name.to_owned(),
            after,
        }
    }

    #[test]
    fn page_sends_only_forced_objects_that_are_not_due_soon() {
        let mut walk = ForcedWalk::begin(vec![
            forced("a.b", Some(key(1_003, "a.b"))),
            forced("a.c", None),
        ]);
        assert_eq!(walk.turn_page(), Some(None));
        let keys = [
            key(1_001, "a.c"),
            key(1_002, "a.c"),
            key(1_003, "a.b"),
            key(1_003, "a.d"),
            key(1_004, "a.b"),
        ];
        walk.add_page(keys.to_vec(), None, NOW);
        assert_eq!(walk.keys, [key(1_002, "a.c"), key(1_004, "a.b")]);
    }

    #[test]
    fn a_walk_without_requests_has_ended() {
        let walk = ForcedWalk::begin(Vec::new());
        assert!(!walk.is_open() && walk.is_finished());
    }

    proptest! {
        /// Runs that are cut short anywhere: pages of some length, of which some is sent.
        #[test]
        fn nothing_that_is_forced_is_passed_over_however_often_a_walk_is_cut_short(
            objects in prop::collection::btree_set((1_010_u64..1_050, 0_u8..3), 0..60),
            page in 1_usize..9,
            cuts in prop::collection::vec((0_usize..30, any::<bool>()), 0..12),
        ) {
            let of = |(minute, n): &(u64, u8)| key(*minute, &format!("a.s{n}"));
            let mut parked: Vec<_> = objects.iter().map(of).collect();
            let is_forced = |key: &String| !key.contains("a.s0");
            let mut after = None;
            for (sends, is_refused) in cuts.into_iter().chain([(usize::MAX, false); 8]) {
                let folders = ["a.s1", "a.s2"].map(|name| forced(name, after.clone()));
                let (mut walk, mut left) = (ForcedWalk::begin(folders.to_vec()), sends);
                while walk.is_open() {
                    if let Some(first) = walk.keys.front().cloned() {
                        if left == 0 {
                            if is_refused { walk.stop_at_refused(first) } else { walk.stop() }
                            break;
                        }
                        left -= 1;
                        walk.keys.pop_front();
                        parked.retain(|key| *key != first);
                    } else if let Some(from) = walk.turn_page() {
                        let is_new = |key: &&String| Some(*key) > from.as_ref();
                        let rest: Vec<_> = parked.iter().filter(is_new).cloned().collect();
                        let listed: Vec<_> = rest.iter().take(page).cloned().collect();
                        let next = listed.last().cloned().filter(|_| rest.len() > page);
                        walk.add_page(listed, next, NOW);
                    }
                }
                if walk.is_finished() {
                    prop_assert!(!parked.iter().any(is_forced));
                    return Ok(());
                }
                after = walk.reached_key().max(after);
                let mut left = parked.iter().filter(|key| is_forced(key));
                prop_assert!(left.all(|key| Some(key) > after.as_ref()));
            }
            prop_assert!(false, "eight whole runs are enough");
        }
    }
}
