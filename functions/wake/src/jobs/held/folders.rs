//! The list of held objects: the folders of a run, and more of a folder when its turn comes.

use std::collections::{BTreeSet, VecDeque};
use std::error::Error;

use posthaste_core::release::HeldFolder;
use posthaste_core::stored::layout;
use posthaste_ports::{ListPage, Ports};

use crate::run::WakeRun;

/// Most folders of one run; the next goes on after them.
const FOLDERS_MAX: usize = 1000;

/// Most requests with which one run looks for folders.
const LISTS_MAX: usize = 200;

/// Finds the folders after `held_to`, which becomes the key after which the next run goes on. It
/// takes half of the time at most. If a page cannot be listed, the folders before it have their
/// turn in this run, and the next run begins with that page.
///
/// A list that begins or ends in the middle says nothing about the folders that it leaves out, so
/// that it counts as work even if it finds none.
pub(super) async fn find_next<P: Ports>(
    run: WakeRun<'_, P>,
    held_to: &mut Option<String>,
) -> VecDeque<HeldFolder> {
    let begins_in_middle = held_to.is_some();
    let mut folders = Vec::new();
    for _ in 0..LISTS_MAX {
        match run
            .ports
            .list_until(run.with_half_time().begin, layout::HELD, held_to.as_deref())
            .await
        {
            Ok(page) => *held_to = sort_page(page, &mut folders),
            Err(error) => {
                run.note_work();
                let error = &error as &dyn Error;
                tracing::error!(error, "held deliveries not listed, the next run goes on");
                break;
            }
        }
        if held_to.is_none() || folders.len() >= FOLDERS_MAX {
            break;
        }
    }
    if begins_in_middle || held_to.is_some() || !folders.is_empty() {
        run.note_work();
    }
    folders.into()
}

/// Sorts a page into `folders`. Answers the key after which the next page begins, past the last
/// folder of this one.
fn sort_page(page: ListPage, folders: &mut Vec<HeldFolder>) -> Option<String> {
    let ListPage {
        objects,
        next_after,
    } = page;
    let keys: Vec<_> = objects.into_iter().map(|object| object.key).collect();
    for key in keys.iter().filter(|key| layout::held_folder(key).is_none()) {
        tracing::warn!(%key, "not the key of something held");
    }
    let last_name = HeldFolder::sort_page(keys, next_after.is_some(), folders);
    next_after.map(|after| last_name.map_or(after, |name| layout::held_past(&name)))
}

/// Lists more of a folder. Answers whether there is something to take.
pub(super) async fn list_more<P: Ports>(run: WakeRun<'_, P>, folder: &mut HeldFolder) -> bool {
    let prefix = format!("{}{}/", layout::HELD, folder.name);
    while let Some(after) = folder.more_after.take() {
        match run.ports.list_until(run.begin, &prefix, Some(&after)).await {
            Ok(ListPage {
                objects,
                next_after,
            }) => {
                folder
                    .keys
                    .extend(objects.into_iter().map(|object| object.key));
                // The rest of an object that was just taken may come again behind it.
                let listed: BTreeSet<_> = folder.keys.drain(..).collect();
                folder.keys.extend(listed);
                folder.more_after = next_after;
            }
            Err(error) => {
                let folder = &folder.name;
                let error = &error as &dyn Error;
                tracing::error!(%folder, error, "held deliveries not listed, the next run goes on");
            }
        }
        if !folder.keys.is_empty() {
            return true;
        }
    }
    false
}
