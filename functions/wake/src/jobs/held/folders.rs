//! The list of held objects: the folders of a run, and more of a folder when its turn comes.

use std::collections::VecDeque;
use std::error::Error;

use posthaste_core::release::HeldFolder;
use posthaste_core::stored::layout;
use posthaste_ports::{ListPage, PortError, Ports};

use crate::budget::Budget;
use crate::listing::list_until;

/// Most folders of one run; the next goes on after them.
const FOLDERS_MAX: usize = 1000;

/// Most requests that one run looks for folders with.
const LISTS_MAX: usize = 200;

/// Lists what is held.
pub(super) struct Folders<'a, P: Ports> {
    pub(super) store: &'a P::Store,
    pub(super) clock: &'a P::Clock,
}

impl<P: Ports> Folders<'_, P> {
    /// Finds the folders after `held_to`, which becomes the key after which the next run goes on.
    pub(super) async fn find(
        &self,
        held_to: &mut Option<String>,
        budget: Budget<'_>,
    ) -> Result<VecDeque<HeldFolder>, PortError> {
        let mut folders = Vec::new();
        for _ in 0..LISTS_MAX {
            let ListPage { objects, next_after } =
                list_until(self.store, self.clock, budget.begin, layout::HELD, held_to.as_deref()).await?;
            let keys: Vec<_> = objects.into_iter().map(|object| object.key).collect();
            keys.iter().filter(|key| layout::held_folder(key).is_none()).for_each(warn);
            let last_name = HeldFolder::sort_page(keys, next_after.is_some(), &mut folders);
            *held_to = next_after.map(|after| last_name.map_or(after, |name| layout::held_past(&name)));
            if held_to.is_none() || folders.len() >= FOLDERS_MAX {
                break;
            }
        }
        Ok(folders.into())
    }

    /// Lists more of a folder. Answers whether there is something to take.
    pub(super) async fn list_more(&self, folder: &mut HeldFolder, budget: Budget<'_>) -> bool {
        let prefix = format!("{}{}/", layout::HELD, folder.name);
        while let Some(after) = folder.more_after.take() {
            match list_until(self.store, self.clock, budget.begin, &prefix, Some(&after)).await {
                Ok(ListPage { objects, next_after }) => {
                    folder.keys.extend(objects.into_iter().map(|object| object.key));
                    folder.more_after = next_after;
                }
                Err(error) => {
                    let error = &error as &dyn Error;
                    let folder = &folder.name;
                    tracing::error!(%folder, error, "held deliveries not listed, the next run goes on");
                }
            }
            if !folder.keys.is_empty() {
                return true;
            }
        }
        false
    }
}

fn warn(key: &String) {
    tracing::warn!(%key, "not the key of something held");
}
