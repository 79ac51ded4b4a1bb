//! Parts of keys: names, minutes, hours and days.

use crate::model::{SubscriptionName, Timestamp, TopicName};

/// A subscription as keys name it, `topic.subscription`. Names have no dots.
pub fn subscription_folder(topic: &TopicName, subscription: &SubscriptionName) -> String {
    format!("{}.{}", topic.folded(), subscription.folded())
}

/// The topic and the subscription of a folder, as they are in keys: in lower case. `None` if it is
/// not such a folder.
pub fn folder_owner(folder: &str) -> Option<(TopicName, SubscriptionName)> {
    let (topic, subscription) = folder.split_once('.')?;
    Some((
        TopicName::parse(topic).ok()?,
        SubscriptionName::parse(subscription).ok()?,
    ))
}

/// An hour of a key, in UTC and unpadded.
pub(super) fn hour_key(at: Timestamp) -> String {
    at.strftime("%-Y/%-m/%-d/%-H")
}

/// A day of a key, in UTC.
pub(super) fn day_key(at: Timestamp) -> String {
    at.strftime("%Y%m%d")
}

/// A minute of a key, in UTC; `minute` counts from the epoch.
pub(super) fn minute_key(minute: u64) -> String {
    start_of_minute(minute).strftime("%Y%m%dT%H%MZ")
}

/// The beginning of a minute, counted from the epoch.
pub fn start_of_minute(minute: u64) -> Timestamp {
    Timestamp::from_millis(minute.saturating_mul(60_000))
}

/// The minute that such a part of a key tells.
pub(super) fn minute_of(minute: &str) -> Option<u64> {
    let digits = minute.strip_suffix('Z')?;
    let (date, time) = digits.split_once('T')?;
    if date.len() != 8
        || time.len() != 4
        || !digits.bytes().all(|b| b.is_ascii_digit() || b == b'T')
    {
        return None;
    }
    let text = format!(
        "{}-{}-{}T{}:{}:00Z",
        &date[..4],
        &date[4..6],
        &date[6..],
        &time[..2],
        &time[2..]
    );
    Timestamp::parse(&text)
        .ok()
        .map(Timestamp::minute_rounded_down)
}
