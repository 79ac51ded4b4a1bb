//! What each key means: the one list of them. The keys of a resource come from the resource itself.

use super::super::{Resource, keys};
use super::KeyError;
use super::change::{Border, Meaning};

/// The keys that belong to no resource.
pub(super) const GENERAL: [(&str, Meaning); 14] = [
    (keys::ENABLED, Meaning::Flag(|settings, on| settings.enable_resource_monitoring &= on)),
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
    (keys::MEMORY_LIMIT, Meaning::MemoryLimit),
];

/// The keys of the documents that nothing here corresponds to.
pub(super) const WITHOUT_COUNTERPART: [(&str, &str); 1] = [(
    keys::BATCH_ITEM_EXPIRY,
    "a message counts until its commit is answered or its caller is gone, so that none is ever left over to expire",
)];

/// What a key means.
pub(super) fn meaning(key: &str) -> Result<Meaning, KeyError> {
    if let Some((key, reason)) = WITHOUT_COUNTERPART.iter().find(|(name, _)| *name == key) {
        return Err(KeyError::NoCounterpart { key, reason });
    }
    let general = GENERAL.iter().find(|(name, _)| *name == key).map(|(_, meaning)| *meaning);
    let found = general.or_else(|| Resource::ALL.into_iter().find_map(|resource| of_resource(resource, key)));
    found.ok_or_else(|| KeyError::Unknown(key.to_owned()))
}

fn of_resource(resource: Resource, key: &str) -> Option<Meaning> {
    let keys = resource.keys();
    if keys.history_depth == Some(key) {
        return Some(Meaning::HistoryDepth(resource));
    }
    let borders = [(keys.normal, Border::Normal), (keys.medium, Border::Medium), (keys.high, Border::High)];
    let border = borders.into_iter().find_map(|(name, border)| (name == key).then_some(border))?;
    Some(Meaning::Threshold(resource, border))
}
