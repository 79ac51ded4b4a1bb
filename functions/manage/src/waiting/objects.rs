//! Parked and held objects of subscriptions: their keys, and the deliveries in them.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::TryStreamExt;
use posthaste_core::api::{WaitingCount, WaitingPlace};
use posthaste_core::model::{SubscriptionName, Timestamp, TopicName};
use posthaste_core::stored::delivery::parse_delivery;
use posthaste_core::stored::layout;
use posthaste_core::stored::parked::parse_parked;
use posthaste_ports::{Clock, ObjectStore, PortError, Ports};
use posthaste_services::{objects, pages};

use crate::manage::Manage;

/// Most objects of a subscription that are counted.
const OBJECTS_MAX: usize = 1000;

/// Most parked objects, of all subscriptions, that are listed: ten pages.
const PARKED_LISTED_MAX: usize = 10_000;

/// Most pages of held objects that are listed.
const HELD_PAGES_MAX: usize = 100;

/// Minutes before the present one from which parked objects are listed where the bucket keeps the
/// marks of deleted ones, which a list would have to pass over. What is older was slowed by
/// pressure.
const PARKED_BEFORE_MINUTES: u64 = 60;

/// The objects of a subscription.
#[derive(Debug, Clone, Default)]
pub(super) struct Objects {
    keys: Vec<(WaitingPlace, String)>,
    next_due: Option<Timestamp>,
    is_cut: bool,
}

impl<P: Ports> Manage<P> {
    /// The parked and held objects of these subscriptions, as far as they can be listed by `until`.
    /// `whole` lists what is parked from its beginning.
    pub(super) async fn waiting_objects(
        &self,
        topic: &TopicName,
        names: &[SubscriptionName],
        whole: bool,
        until: Duration,
    ) -> Result<Vec<Objects>, PortError> {
        let held: Vec<_> = names
            .iter()
            .map(|name| layout::held_of(topic, name))
            .collect();
        let folders = held
            .iter()
            .map(|prefix| layout::held_folder(prefix).unwrap_or_default());
        let places: HashMap<&str, usize> = folders.zip(0..).collect();
        let mut found = vec![Objects::default(); names.len()];
        self.add_parked(&places, whole, &mut found).await?;
        let prefix = match &held[..] {
            [only] => only.clone(),
            _ => layout::held_of_topic(topic),
        };
        self.add_held(&prefix, &places, &mut found, until).await?;
        Ok(found)
    }

    async fn add_parked(
        &self,
        places: &HashMap<&str, usize>,
        whole: bool,
        found: &mut [Objects],
    ) -> Result<(), PortError> {
        let minute = self
            .clock
            .now()
            .minute()
            .saturating_sub(PARKED_BEFORE_MINUTES);
        let after = (!whole).then(|| layout::parked_before(minute));
        let mut parked = std::pin::pin!(objects(&self.state, layout::PARKED, after));
        let mut listed = 0;
        while let Some(object) = parked.try_next().await? {
            listed += 1;
            if listed > PARKED_LISTED_MAX {
                for objects in found.iter_mut() {
                    objects.is_cut = true;
                }
                break;
            }
            let place = layout::parked_folder(&object.key).and_then(|folder| places.get(folder));
            let Some(objects) = place.map(|place| &mut found[*place]) else {
                continue;
            };
            let due = layout::parked_due_minute(&object.key).map(start_of_minute);
            objects.next_due = objects.next_due.into_iter().chain(due).min();
            objects.add(WaitingPlace::Parked, object.key);
        }
        Ok(())
    }

    async fn add_held(
        &self,
        prefix: &str,
        places: &HashMap<&str, usize>,
        found: &mut [Objects],
        until: Duration,
    ) -> Result<(), PortError> {
        let mut held = std::pin::pin!(pages(&self.state, prefix, None));
        for _ in 0..HELD_PAGES_MAX {
            let Some(page) = held.try_next().await? else {
                return Ok(());
            };
            for object in page.objects {
                let place = layout::held_folder(&object.key).and_then(|folder| places.get(folder));
                if let Some(objects) = place.map(|place| &mut found[*place]) {
                    objects.add(WaitingPlace::Held, object.key);
                }
            }
            if self.clock.monotonic() >= until || found.iter().all(|objects| objects.is_cut) {
                break;
            }
        }
        for objects in found.iter_mut() {
            objects.is_cut = true;
        }
        Ok(())
    }

    /// Adds what is in the objects of a subscription. They are read where `with_events`, until the
    /// time is over; otherwise each counts as one event.
    pub(super) async fn count_objects(
        &self,
        objects: Objects,
        with_events: bool,
        count: &mut WaitingCount,
        until: Duration,
    ) -> Result<(), PortError> {
        if objects.is_cut {
            count.cut();
        }
        objects.next_due.into_iter().for_each(|due| count.due(due));
        for (place, key) in objects.keys {
            if with_events && self.clock.monotonic() < until {
                self.count_object(place, &key, count).await?;
            } else {
                count.add_unread(place, 1);
            }
        }
        Ok(())
    }

    async fn count_object(
        &self,
        place: WaitingPlace,
        key: &str,
        count: &mut WaitingCount,
    ) -> Result<(), PortError> {
        // It may have been released since it was listed.
        let Some(object) = self.state.get(key).await? else {
            return Ok(());
        };
        let Ok(messages) = parse_parked(&object.bytes) else {
            count.add_unread(place, 1);
            return Ok(());
        };
        for message in &messages {
            match parse_delivery(message) {
                Ok(delivery) => count.add(place, &delivery),
                Err(_) => count.add_unread(place, 1),
            }
        }
        Ok(())
    }
}

impl Objects {
    fn add(&mut self, place: WaitingPlace, key: String) {
        if self.keys.len() < OBJECTS_MAX {
            self.keys.push((place, key));
        } else {
            self.is_cut = true;
        }
    }
}

/// The beginning of a minute, counted from the epoch.
fn start_of_minute(minute: u64) -> Timestamp {
    const MINUTE_MS: u64 = 60_000;
    Timestamp::from_millis(minute.saturating_mul(MINUTE_MS))
}
