//! What each key means: the one list of them. The keys of a resource come from the resource itself.

use std::time::Duration;

use super::super::Resource;
use super::super::keys::{self, ResourceKeys};
use super::change::{Border, Meaning};
use super::key_error::KeyError;

/// What the documents give a message of a batch until it expires.
const ITEM_EXPIRY: Duration = Duration::from_mins(5);

/// Why it can be nothing else.
const ITEM_EXPIRY_EXPECTED: &str = "00:05:00, as the documents have it, because nothing here corresponds to it: a batch \
    ends with its commit, so that no message is ever left in it to expire";

/// The keys that belong to no resource.
pub(super) const GENERAL: [(&str, Meaning); 15] = [
    (keys::ENABLED, Meaning::Flag(|settings, on| settings.enable_resource_monitoring = on)),
    (keys::INTERVAL, Meaning::Length(|settings, length| settings.interval = length)),
    (keys::TARPIT_BASE, Meaning::Length(|settings, length| settings.tarpit.base = length)),
    (keys::TARPIT_START, Meaning::Length(|settings, length| settings.tarpit.start = length)),
    (keys::TARPIT_STEP, Meaning::Length(|settings, length| settings.tarpit.step = length)),
    (keys::TARPIT_MAX, Meaning::Length(|settings, length| settings.tarpit.max = length)),
    (keys::CHECKPOINT_DEPTH, Meaning::Size(|settings, bytes| settings.disk.checkpoint_depth_bytes = bytes)),
    (keys::DATABASE_RESERVE, Meaning::Size(|settings, bytes| settings.disk.database_bytes = bytes)),
    (keys::LOG_RESERVE_MAX, Meaning::Size(|settings, bytes| settings.disk.log_bytes_max = bytes)),
    (keys::DEHYDRATES, Meaning::Flag(|settings, on| settings.dehydrates_for_memory = on)),
    (keys::BATCH_COST, Meaning::Flag(|settings, on| settings.batch_points.uses_cost = on)),
    (keys::BATCH_SIZE, Meaning::Count(|settings, count| settings.batch_points.batch_size = count)),
    (keys::BATCH_TIMEOUT, Meaning::Length(|settings, length| settings.batch_points.batch_timeout = length)),
    (keys::BATCH_ITEM_EXPIRY, Meaning::NoLengthBut(ITEM_EXPIRY, ITEM_EXPIRY_EXPECTED)),
    (keys::MEMORY_LIMIT, Meaning::MemoryLimit),
];

/// What a key means.
pub(super) fn meaning(key: &str) -> Result<Meaning, KeyError> {
    let general = GENERAL.iter().find(|(name, _)| *name == key).map(|(_, meaning)| *meaning);
    let in_flight = || border(keys::IN_FLIGHT, key).map(Meaning::InFlight);
    let of_resource = || Resource::ALL.into_iter().find_map(|resource| of_resource(resource, key));
    general.or_else(in_flight).or_else(of_resource).ok_or_else(|| KeyError::Unknown(key.to_owned()))
}

fn of_resource(resource: Resource, key: &str) -> Option<Meaning> {
    let keys = resource.keys();
    if keys.history_depth == Some(key) {
        return Some(Meaning::HistoryDepth(resource));
    }
    border(keys, key).map(|border| Meaning::Threshold(resource, border))
}

fn border(keys: ResourceKeys, key: &str) -> Option<Border> {
    let borders = [(keys.normal, Border::Normal), (keys.medium, Border::Medium), (keys.high, Border::High)];
    borders.into_iter().find_map(|(name, border)| (name == key).then_some(border))
}
