//! The events in parked and held objects, counted by subscription. The counts change with the
//! commits that write and delete the objects, so no caller has to list them.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use posthaste_core::api::WaitingCount;
use posthaste_core::model::CarriedEvents;
use posthaste_core::stored::layout;

use super::index::EventAges;

/// The counts, by the folder of a subscription.
#[derive(Debug, Default)]
pub(super) struct WaitingObjects(Mutex<BTreeMap<Arc<str>, WaitingFolder>>);

/// The objects of one subscription.
#[derive(Debug, Default)]
struct WaitingFolder {
    parked: WaitingTally,
    held: WaitingTally,
    ages: EventAges,
    /// The number of parked objects by the minute in which they are due.
    due: BTreeMap<u64, u64>,
}

#[derive(Debug, Default)]
struct WaitingTally {
    events: u64,
    /// Objects whose keys do not tell their number of events: each has one event or more.
    unknown: u64,
}

/// An object that waits, as its key tells.
struct WaitingObject<'a> {
    folder: &'a str,
    carried: Option<CarriedEvents>,
    /// The minute in which it is due. `None` of a held one.
    due: Option<u64>,
}

impl WaitingObject<'_> {
    /// `None` if the key is not that of a parked or held object.
    fn from_key(key: &str) -> Option<WaitingObject<'_>> {
        let carried = layout::carried_of_key(key);
        if let Some(folder) = layout::held_folder(key) {
            let due = None;
            return Some(WaitingObject {
                folder,
                carried,
                due,
            });
        }
        let folder = layout::parked_folder(key)?;
        let due = Some(layout::parked_due_minute(key).unwrap_or_default());
        Some(WaitingObject {
            folder,
            carried,
            due,
        })
    }
}

impl WaitingObjects {
    /// Counts an object that is new.
    pub(super) fn add(&self, key: &str) {
        let Some(object) = WaitingObject::from_key(key) else {
            return;
        };
        let mut folders = self.0.lock();
        if let Some(folder) = folders.get_mut(object.folder) {
            folder.add(&object);
        } else {
            let mut folder = WaitingFolder::default();
            folder.add(&object);
            folders.insert(object.folder.into(), folder);
        }
    }

    /// Removes a deleted object from the counts.
    pub(super) fn remove(&self, key: &str) {
        let Some(object) = WaitingObject::from_key(key) else {
            return;
        };
        let mut folders = self.0.lock();
        let Some(folder) = folders.get_mut(object.folder) else {
            return;
        };
        folder.remove(&object);
        if folder.is_empty() {
            folders.remove(object.folder);
        }
    }

    /// The counts of these folders, or of all.
    pub(super) fn counts(&self, of: Option<&[String]>) -> Vec<(Arc<str>, WaitingCount)> {
        let folders = self.0.lock();
        match of {
            None => folders
                .iter()
                .map(|(name, folder)| (Arc::clone(name), folder.waiting_count()))
                .collect(),
            Some(names) => names
                .iter()
                .filter_map(|name| folders.get_key_value(name.as_str()))
                .map(|(name, folder)| (Arc::clone(name), folder.waiting_count()))
                .collect(),
        }
    }
}

impl WaitingFolder {
    fn events_for(&mut self, object: &WaitingObject<'_>) -> &mut WaitingTally {
        match object.due {
            Some(_) => &mut self.parked,
            None => &mut self.held,
        }
    }

    fn add(&mut self, object: &WaitingObject<'_>) {
        let place = self.events_for(object);
        match object.carried {
            Some(carried) => {
                place.events += u64::from(carried.events);
                self.ages.add(carried);
            }
            None => place.unknown += 1,
        }
        if let Some(minute) = object.due {
            *self.due.entry(minute).or_default() += 1;
        }
    }

    fn remove(&mut self, object: &WaitingObject<'_>) {
        let place = self.events_for(object);
        match object.carried {
            Some(carried) => {
                place.events = place.events.saturating_sub(u64::from(carried.events));
                self.ages.remove(carried);
            }
            None => place.unknown = place.unknown.saturating_sub(1),
        }
        if let Some(minute) = object.due
            && let Some(objects) = self.due.get_mut(&minute)
        {
            *objects -= 1;
            if *objects == 0 {
                self.due.remove(&minute);
            }
        }
    }

    fn is_empty(&self) -> bool {
        let Self {
            parked, held, due, ..
        } = self;
        due.is_empty() && [parked, held].iter().all(|it| it.events + it.unknown == 0)
    }

    fn waiting_count(&self) -> WaitingCount {
        WaitingCount {
            parked: self.parked.events + self.parked.unknown,
            held: self.held.events + self.held.unknown,
            oldest: self.ages.oldest(),
            next_due: self
                .due
                .first_key_value()
                .map(|(minute, _)| layout::start_of_minute(*minute)),
            is_partial: self.parked.unknown + self.held.unknown > 0,
            ..WaitingCount::default()
        }
    }
}
