//! Held deliveries: the messages of one subscription that wait until its endpoint recovers or an operator
//! resumes it.
//!
//! Key `held/{topic}.{subscription}/{minute of the first expiry}/{uuid}.json`, so that the deliveries of a
//! subscription lie together and those that expire first are listed first. The content is that of
//! [`parked`](super::parked) deliveries. Written by deliver, read, shortened and deleted by wake, counted by
//! manage.

use super::keys::{folder, minute_key, minute_of};
use crate::model::{SubscriptionName, Timestamp, TopicName};

/// The prefix of all deliveries that wait until an endpoint recovers or an operator resumes.
pub const HELD: &str = "held/";

/// An object of deliveries of one subscription that wait for it, the first event of which expires at
/// `expires_at`. Those that expire first are listed first. `id` is a UUID.
pub fn held(topic: &TopicName, subscription: &SubscriptionName, expires_at: Timestamp, id: &str) -> String {
    let minute = minute_key(expires_at.minute_rounded_up());
    format!("{}{minute}/{id}.json", held_of(topic, subscription))
}

/// The prefix of what is held for a subscription.
pub fn held_of(topic: &TopicName, subscription: &SubscriptionName) -> String {
    format!("{HELD}{}/", folder(topic, subscription))
}

/// The folder that a held object lies in, `topic.subscription`. `None` if the key is not such a key.
pub fn held_folder(key: &str) -> Option<&str> {
    key.strip_prefix(HELD)?.split_once('/').map(|(folder, _)| folder)
}

/// A key greater than that of every object in this folder, and less than those of every later one, for
/// listing from there.
pub fn held_past(folder: &str) -> String {
    // The character after the slash.
    format!("{HELD}{folder}0")
}

/// The minute in which the first event of a held object has expired, in minutes since the epoch. `None` if it
/// is not such a key.
pub fn held_expiry_minute(key: &str) -> Option<u64> {
    minute_of(key.strip_prefix(HELD)?.split('/').nth(1)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_listed_past_a_folder_is_in_another_one() {
        let at = Timestamp::parse("2026-03-07T04:05:01Z").unwrap();
        let key = |topic: &str, subscription: &str| {
            held(&TopicName::parse(topic).unwrap(), &SubscriptionName::parse(subscription).unwrap(), at, "x")
        };
        let mut keys = [key("a", "b-c"), key("a", "b"), key("a", "b0"), key("a", "bb"), key("a-b", "c")];
        keys.sort_unstable();
        for (index, one) in keys.iter().enumerate() {
            let past = held_past(held_folder(one).unwrap());
            assert!(*one < past && keys[index + 1..].iter().all(|later| *later > past), "{one}");
        }
    }
}
