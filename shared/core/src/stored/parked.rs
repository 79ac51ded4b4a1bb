//! Deliveries that wait outside the queue: the messages of one subscription, parked or held.
//!
//! Parked ones are due in the same minute, further ahead than the queue delays. Key `parked/{due
//! minute}/{topic}.{subscription}/{parked minute}-{uuid}.json`. Version 1; written by deliver, and
//! by wake where a clock was set back; read and deleted by wake. The messages in it have versions
//! of their own ([`delivery`](super::delivery)).
//!
//! Held ones wait until their endpoint recovers or an operator resumes their subscription. Key
//! `held/{topic}.{subscription}/{minute of the first expiry}/{uuid}.json`, so that the deliveries
//! of a subscription lie together and those that expire first are listed first. They have the same
//! content. Written by deliver; read, shortened and deleted by wake; counted by manage.

use bytes::{BufMut, Bytes, BytesMut};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::delivery::WIRE_VERSION;
use super::format::{Format, FormatError};
use super::keys::{folder, minute_key, minute_of};
use crate::model::{SubscriptionName, Timestamp, TopicName};

/// The prefix of all parked deliveries.
pub const PARKED: &str = "parked/";

/// An object of deliveries of one subscription that are due in the same minute. `id` is a
/// [`parked_id`].
pub fn parked(
    due: Timestamp,
    topic: &TopicName,
    subscription: &SubscriptionName,
    id: &str,
) -> String {
    let minute = minute_key(due.minute_rounded_up());
    format!("{PARKED}{minute}/{}/{id}.json", folder(topic, subscription))
}

/// The id of an object that is parked at `at`: the minute of that, so that its key tells how long
/// it waits, and a UUID. Older programs wrote the UUID alone.
pub fn parked_id(at: Timestamp, uuid: &str) -> String {
    format!("{}-{uuid}", minute_key(at.minute()))
}

/// The minute in which an object was parked, in minutes since the epoch. `None` if its key does not
/// tell.
pub fn parked_at_minute(key: &str) -> Option<u64> {
    minute_of(
        key.strip_prefix(PARKED)?
            .rsplit('/')
            .next()?
            .split_once('-')?
            .0,
    )
}

/// The key of a parked object, with the same UUID, as if it were parked at `at` and due in this
/// minute, since the epoch. `None` if the key is not such a key.
pub fn parked_instead(key: &str, due_minute: u64, at: Timestamp) -> Option<String> {
    let (folder, file) = (parked_folder(key)?, key.rsplit('/').next()?);
    let uuid = match (parked_at_minute(key), file.split_once('-')) {
        (Some(_), Some((_, uuid))) => uuid,
        // Of an older program: the file is named by the UUID alone.
        _ => file,
    };
    Some(format!(
        "{PARKED}{}/{folder}/{}",
        minute_key(due_minute),
        parked_id(at, uuid)
    ))
}

/// A key greater than that of every object parked for an earlier minute, and less than those of
/// this one, for listing from there. `minute` counts from the epoch.
pub fn parked_before(minute: u64) -> String {
    format!("{PARKED}{}", minute_key(minute))
}

/// The due minute of a parked object's key, in minutes since the epoch. `None` if it is not such a
/// key.
pub fn parked_due_minute(key: &str) -> Option<u64> {
    minute_of(key.strip_prefix(PARKED)?.split('/').next()?)
}

/// The folder of the subscription whose deliveries a parked object holds, `topic.subscription`.
/// `None` if the key is not such a key.
pub fn parked_folder(key: &str) -> Option<&str> {
    let (_, rest) = key.strip_prefix(PARKED)?.split_once('/')?;
    rest.split_once('/').map(|(folder, _)| folder)
}

/// The prefix of all deliveries that wait until an endpoint recovers or an operator resumes.
pub const HELD: &str = "held/";

/// An object of deliveries of one subscription that wait for it, the first event of which expires
/// at `expires_at`. Those that expire first are listed first. `id` is a UUID.
pub fn held(
    topic: &TopicName,
    subscription: &SubscriptionName,
    expires_at: Timestamp,
    id: &str,
) -> String {
    let minute = minute_key(expires_at.minute_rounded_up());
    format!("{}{minute}/{id}.json", held_of(topic, subscription))
}

/// The prefix of what is held for a subscription.
pub fn held_of(topic: &TopicName, subscription: &SubscriptionName) -> String {
    format!("{HELD}{}/", folder(topic, subscription))
}

/// The prefix of what is held for all subscriptions of a topic.
pub fn held_of_topic(topic: &TopicName) -> String {
    format!("{HELD}{}.", topic.folded())
}

/// The folder that a held object lies in, `topic.subscription`. `None` if the key is not such a
/// key.
pub fn held_folder(key: &str) -> Option<&str> {
    key.strip_prefix(HELD)?
        .split_once('/')
        .map(|(folder, _)| folder)
}

/// A key greater than that of every object in this folder, and less than those of every later one,
/// for listing from there.
pub fn held_past(folder: &str) -> String {
    // The character after the slash.
    format!("{HELD}{folder}0")
}

/// The minute in which the first event of a held object has expired, in minutes since the epoch.
/// `None` if it is not such a key.
pub fn held_expiry_minute(key: &str) -> Option<u64> {
    minute_of(key.strip_prefix(HELD)?.split('/').nth(1)?)
}

/// Objects of newer versions than the messages in them do not exist.
const FORMAT: Format = Format {
    name: "a parked object",
    newest: WIRE_VERSION,
};

#[derive(Deserialize)]
struct ParkedWire<'a> {
    v: u32,
    #[serde(borrow)]
    deliveries: Vec<&'a RawValue>,
}

/// Renders an object of delivery messages.
pub fn render_parked(messages: &[Bytes]) -> Bytes {
    let mut object =
        BytesMut::with_capacity(messages.iter().map(|m| m.len() + 1).sum::<usize>() + 32);
    object.put_slice(b"{\"v\":1,\"deliveries\":[");
    for (index, message) in messages.iter().enumerate() {
        if index > 0 {
            object.put_u8(b',');
        }
        object.put_slice(message);
    }
    object.put_slice(b"]}");
    object.freeze()
}

/// Reads an object's messages, each a slice of it, not yet looked into.
pub fn parse_parked(object: &Bytes) -> Result<Vec<Bytes>, FormatError> {
    let wire: ParkedWire<'_> = FORMAT.parse(object, |wire: &ParkedWire<'_>| wire.v)?;
    Ok(wire
        .deliveries
        .into_iter()
        .map(|raw| object.slice_ref(raw.get().as_bytes()))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn messages_are_parked_and_read_as_they_were() {
        let messages = [
            Bytes::from_static(b"{\"v\":1}"),
            Bytes::from_static(b"{\"v\": 1.0 }"),
        ];
        let object = render_parked(&messages);
        assert_eq!(object, r#"{"v":1,"deliveries":[{"v":1},{"v": 1.0 }]}"#);
        assert_eq!(parse_parked(&object).unwrap(), messages);
    }

    #[test]
    fn what_is_not_ours_is_told_from_what_is_newer() {
        let parse = |text: &'static str| parse_parked(&Bytes::from_static(text.as_bytes()));
        assert!(matches!(parse("{}"), Err(FormatError::Malformed(..))));
        assert!(matches!(
            parse(r#"{"v":4,"deliveries":[]}"#),
            Err(FormatError::Newer(4))
        ));
    }

    fn names() -> (TopicName, SubscriptionName) {
        (
            TopicName::parse("Orders").unwrap(),
            SubscriptionName::parse("Billing").unwrap(),
        )
    }

    #[test]
    fn a_parked_key_tells_when_it_was_parked_and_is_moved_to_another_minute() {
        let (topic, subscription) = names();
        let at = |text: &str| Timestamp::parse(text).unwrap();
        let id = parked_id(
            at("2026-03-07T03:35:59Z"),
            "1b4e28ba-2fa1-41d2-883f-0016d3cca427",
        );
        let key = parked(at("2026-03-07T04:05:01Z"), &topic, &subscription, &id);
        assert_eq!(
            parked_at_minute(&key),
            Some(at("2026-03-07T03:35:00Z").minute())
        );
        let (due, parked_at) = (
            at("2026-03-06T23:00:00Z").minute(),
            at("2026-03-06T22:30:00Z"),
        );
        let moved = |key: &str| parked_instead(key, due, parked_at);
        let expected = |uuid| {
            Some(format!(
                "parked/20260306T2300Z/orders.billing/20260306T2230Z-{uuid}.json"
            ))
        };
        assert_eq!(
            moved(&key),
            expected("1b4e28ba-2fa1-41d2-883f-0016d3cca427")
        );
        for older in ["1b4e28ba-2fa1-41d2-883f-0016d3cca427", "x"] {
            let key = parked(at("2026-03-07T04:05:01Z"), &topic, &subscription, older);
            assert_eq!(
                (parked_at_minute(&key), moved(&key)),
                (None, expected(older))
            );
        }
        assert_eq!((parked_at_minute("held/x"), moved("held/x")), (None, None));
    }

    #[test]
    fn a_foreign_key_has_no_due_minute() {
        for key in [
            "parked/",
            "parked/x/y",
            "topics/a.json",
            "parked/2026T12Z/a.b/x",
            "parked/20269999T0406Z/a",
        ] {
            assert_eq!(parked_due_minute(key), None, "{key}");
        }
    }

    #[test]
    fn what_is_listed_past_a_folder_is_in_another_one() {
        let at = Timestamp::parse("2026-03-07T04:05:01Z").unwrap();
        let key = |topic: &str, subscription: &str| {
            held(
                &TopicName::parse(topic).unwrap(),
                &SubscriptionName::parse(subscription).unwrap(),
                at,
                "x",
            )
        };
        let mut keys = [
            key("a", "b-c"),
            key("a", "b"),
            key("a", "b0"),
            key("a", "bb"),
            key("a-b", "c"),
        ];
        keys.sort_unstable();
        for (index, one) in keys.iter().enumerate() {
            let past = held_past(held_folder(one).unwrap());
            assert!(
                *one < past && keys[index + 1..].iter().all(|later| *later > past),
                "{one}"
            );
        }
    }

    proptest! {
        #[test]
        fn parked_keys_sort_by_due_minute_and_tell_it(
            a in 0_u64..4_000_000_000_000,
            b in 0_u64..4_000_000_000_000,
        ) {
            let (topic, subscription) = names();
            let key = |ms| parked(Timestamp::from_millis(ms), &topic, &subscription, "x");
            let (a, b) = (a.min(b), a.max(b));
            prop_assert!(key(a) <= key(b));
            let minute_of_a = Timestamp::from_millis(a).minute_rounded_up();
            prop_assert_eq!(parked_due_minute(&key(a)), Some(minute_of_a));
            let minute = Timestamp::from_millis(b).minute_rounded_up();
            prop_assert!(parked_before(minute) < key(b));
            prop_assert_eq!(parked_before(minute) > key(a), minute_of_a < minute);
        }
    }
}
