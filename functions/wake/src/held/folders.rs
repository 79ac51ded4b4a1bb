//! The folders of what is held: found by a list that skips what lies in each, so that a backlog of one subscription costs
//! one request and not one for every thousand objects.

use std::collections::VecDeque;
use std::error::Error;

use posthaste_core::model::time::Timestamp;
use posthaste_core::stored::layout;
use posthaste_ports::{Clock, Entropy, ListPage, ObjectStore, PortError, QueueSender};

use super::Holding;
use crate::limits::{Limits, within};
use crate::list::late;
use crate::{PAGE_MAX, Wake};

/// Most folders of one run; the next goes on after them.
const FOLDERS_MAX: usize = 1000;

/// Most requests that one run looks for folders with.
const LISTS_MAX: usize = 200;

/// Most keys of a folder that are kept until its turn comes; the others are listed then.
const KEYS_KEPT_MAX: usize = 50;

/// What is held for one subscription.
#[derive(Debug)]
pub(crate) struct Folder {
    /// Its name, `topic.subscription`.
    pub(crate) name: String,
    /// The next keys, in order.
    pub(crate) keys: VecDeque<String>,
    /// Deliveries that went in this run because they may, and not because they have expired.
    pub(crate) released: usize,
    /// The key after which there may be more.
    more_after: Option<String>,
}

impl Folder {
    /// Whether nothing is left in it, as far as is known.
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.more_after.is_none()
    }

    /// Whether all of its keys that there are, as far as is known, are in it.
    pub(crate) fn is_listed(&self) -> bool {
        self.more_after.is_none()
    }

    /// Whether something in it has expired, as far as is known.
    pub(crate) fn has_expired(&self, now: Timestamp) -> bool {
        self.keys.front().map_or(self.more_after.is_some(), |key| is_expired(key, now))
    }

    /// Takes the keys out that are wanted: all, or those that have expired.
    pub(crate) fn take_wanted(&mut self, expired_by: Option<Timestamp>) -> VecDeque<String> {
        let is_wanted = |key: &String| expired_by.is_none_or(|now| is_expired(key, now));
        let end = self.keys.iter().take_while(|key| is_wanted(key)).count();
        self.keys.drain(..end).collect()
    }

    /// Puts back what was wanted and has not gone.
    pub(crate) fn give_back(&mut self, keys: VecDeque<String>) {
        keys.into_iter().rev().for_each(|key| self.keys.push_front(key));
    }

    /// Puts one of the next keys in front, by a number that was drawn.
    pub(crate) fn draw(&mut self, drawn: u16) {
        let index = usize::from(drawn) % self.keys.len().max(1);
        if let Some(key) = self.keys.remove(index) {
            self.keys.push_front(key);
        }
    }

    /// Puts the next keys in order again.
    pub(crate) fn sort(&mut self) {
        self.keys.make_contiguous().sort_unstable();
    }

    fn add(&mut self, key: String) {
        if self.keys.len() < KEYS_KEPT_MAX {
            self.keys.push_back(key);
        } else if self.more_after.is_none() {
            self.more_after = self.keys.back().cloned();
        }
    }
}

impl<Q, S, D, C, E> Wake<Q, S, D, C, E>
where
    Q: QueueSender,
    S: ObjectStore,
    D: ObjectStore,
    C: Clock,
    E: Entropy,
{
    /// Finds the folders, from where the last run ended.
    pub(super) async fn folders(
        &self,
        limits: Limits,
        holding: &mut Holding,
    ) -> Result<VecDeque<Folder>, PortError> {
        let mut folders = Vec::new();
        for _ in 0..LISTS_MAX {
            let list = self.ports.state.list(layout::HELD, holding.after.as_deref(), PAGE_MAX);
            let page = within(&self.ports.clock, limits.begin, list).await.unwrap_or_else(late)?;
            let next_after = page.next_after.clone();
            let last_name = sort(page, &mut folders);
            holding.after = next_after.map(|next_after| match last_name {
                Some(name) => layout::held_past(&name),
                None => next_after,
            });
            if holding.after.is_none() || folders.len() >= FOLDERS_MAX {
                break;
            }
        }
        Ok(folders.into())
    }

    /// Lists more of a folder. Answers whether there is something to take.
    pub(super) async fn list_more(&self, folder: &mut Folder, limits: Limits) -> bool {
        let prefix = format!("{}{}/", layout::HELD, folder.name);
        while let Some(after) = folder.more_after.take() {
            let list = self.ports.state.list(&prefix, Some(&after), PAGE_MAX);
            match within(&self.ports.clock, limits.begin, list).await.unwrap_or_else(late) {
                Ok(ListPage { objects, next_after }) => {
                    folder.keys.extend(objects.into_iter().map(|object| object.key));
                    folder.more_after = next_after;
                }
                Err(error) => {
                    tracing::error!(folder = %folder.name, error = &error as &dyn Error, "held deliveries not listed, the next run goes on");
                }
            }
            if !folder.keys.is_empty() {
                return true;
            }
        }
        false
    }
}

/// Puts another folder first in every turn, so that none has all the room there is.
pub(super) fn rotate(folders: &mut VecDeque<Folder>, turn: u64) {
    let count = u64::try_from(folders.len().max(1)).unwrap_or(u64::MAX);
    folders.rotate_left(usize::try_from(turn % count).unwrap_or(0));
}

/// Sorts a page of keys into folders, and answers the last folder's name. More of that may follow.
fn sort(page: ListPage, folders: &mut Vec<Folder>) -> Option<String> {
    let has_more = page.next_after.is_some();
    let last_key = page.objects.last().map(|object| object.key.clone());
    for object in page.objects {
        let Some(name) = layout::held_folder(&object.key) else {
            tracing::warn!(key = %object.key, "not the key of something held");
            continue;
        };
        match folders.last_mut().filter(|folder| folder.name == name) {
            Some(folder) => folder.add(object.key),
            None => folders.push(Folder {
                name: name.to_owned(),
                keys: VecDeque::from([object.key]),
                released: 0,
                more_after: None,
            }),
        }
    }
    let last_key = last_key.filter(|_| has_more)?;
    let name = layout::held_folder(&last_key)?.to_owned();
    let folder = folders.last_mut()?;
    if folder.more_after.is_none() {
        folder.more_after = Some(last_key);
    }
    Some(name)
}

/// Whether the first event of a held object has expired. A key that is none of ours counts as expired, so that its object
/// is looked at and reported.
fn is_expired(key: &str, now: Timestamp) -> bool {
    layout::held_expiry_minute(key).is_none_or(|minute| minute <= now.minute())
}

#[cfg(test)]
mod tests {
    use super::*;
    use posthaste_ports::ObjectMeta;

    fn page(keys: &[&str], has_more: bool) -> ListPage {
        let meta = |key: &&str| ObjectMeta { key: (*key).to_owned(), size: 1, modified_at: Timestamp::EPOCH };
        let objects: Vec<_> = keys.iter().map(meta).collect();
        let next_after = objects.last().filter(|_| has_more).map(|last| last.key.clone());
        ListPage { objects, next_after }
    }

    #[test]
    fn a_page_is_sorted_into_folders_of_which_the_last_may_have_more() {
        let mut folders = Vec::new();
        let keys = ["held/a.b/1/x", "held/a.b/1/y", "held/foreign", "held/a.c/1/x"];
        assert_eq!(sort(page(&keys, true), &mut folders).as_deref(), Some("a.c"));
        let shape = |folder: &Folder| (folder.name.clone(), folder.keys.len(), folder.more_after.clone());
        let shapes: Vec<_> = folders.iter().map(shape).collect();
        assert_eq!(shapes, [("a.b".into(), 2, None), ("a.c".into(), 1, Some("held/a.c/1/x".into()))]);
    }

    #[test]
    fn of_a_long_folder_a_few_keys_are_kept_and_the_others_listed_later() {
        let keys: Vec<_> = (0..2 * KEYS_KEPT_MAX).map(|n| format!("held/a.b/{n:04}/x")).collect();
        let keys: Vec<_> = keys.iter().map(String::as_str).collect();
        for has_more in [false, true] {
            let mut folders = Vec::new();
            sort(page(&keys, has_more), &mut folders);
            let last = keys[KEYS_KEPT_MAX - 1].to_owned();
            assert_eq!((folders[0].keys.len(), folders[0].more_after.clone()), (KEYS_KEPT_MAX, Some(last)));
        }
    }
}
