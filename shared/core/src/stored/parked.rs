//! Deliveries that wait outside the queue: the messages of one subscription, parked or held.
//!
//! Parked ones are due in the same minute, further ahead than the queue delays. Key `parked/{due
//! minute}/{topic}.{subscription}/{parked minute}-{uuid}.{events}.{second}.json`. Version 1;
//! written by deliver, and by wake where a clock was set back; read and deleted by wake. The
//! messages in it have versions of their own ([`delivery`](super::delivery)).
//!
//! Held ones wait until their endpoint recovers or an operator resumes their subscription. Key
//! `held/{topic}.{subscription}/{minute of the first expiry}/{uuid}.{events}.{second}.json`, so
//! that the deliveries of a subscription lie together and those that expire first are listed first.
//! They have the same content. Written by deliver; read, shortened and deleted by wake.
//!
//! Deliveries of events that were published for later are parked too, by publish. Their file is
//! named `scheduled-{id of the request}.{events}.{second}.json`, so that the same request
//! writes the same objects again, and has no age: as its second it has the last that there is.
//! 0.1.0 releases them like any other, and where they are due later than in a day, in a day.
//!
//! The end of a key says what the object carries: its number of events, and the second in which the
//! oldest was accepted, from the epoch. So what waits is counted by a list alone. 0.1.0 wrote keys
//! without it, and reads those with it.

use bytes::{BufMut, Bytes, BytesMut};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::delivery::WIRE_VERSION;
use super::delivery::carried_by_message;
use super::keys::{minute_key, minute_of, subscription_folder};
use crate::model::{
    CarriedEvents, FormatError, StoredFormat, SubscriptionName, Timestamp, TopicName,
};

/// The prefix of all parked deliveries.
pub const PARKED: &str = "parked/";

/// The beginning of the names of objects that publish parks.
const SCHEDULED: &str = "scheduled-";

/// An object of deliveries of one subscription that are due in the same minute. `id` is a
/// [`parked_id`].
pub fn parked_key(
    due: Timestamp,
    topic: &TopicName,
    subscription: &SubscriptionName,
    id: &str,
) -> String {
    let minute = minute_key(due.minute_rounded_up());
    format!(
        "{PARKED}{minute}/{}/{id}.json",
        subscription_folder(topic, subscription)
    )
}

/// The id of an object that is parked at `at`: the minute of that, so that its key tells how long
/// it waits, and a UUID. Older programs wrote the UUID alone.
pub fn parked_id(at: Timestamp, uuid: &str) -> String {
    format!("{}-{uuid}", minute_key(at.minute_rounded_down()))
}

/// The object of what a request schedules for this subscription and this time. `messages` are as
/// [`render_parked`] takes them.
pub fn scheduled_key(
    not_before: Timestamp,
    topic: &TopicName,
    subscription: &SubscriptionName,
    request_id: &str,
    messages: &[Bytes],
) -> String {
    let begin = format!("{SCHEDULED}{request_id}");
    parked_key(
        not_before,
        topic,
        subscription,
        &id_without_age(&begin, messages),
    )
}

/// Whether an object has deliveries of events that were published for later.
pub fn is_scheduled(key: &str) -> bool {
    let file = key
        .strip_prefix(PARKED)
        .and_then(|rest| rest.rsplit('/').next());
    file.is_some_and(|file| file.starts_with(SCHEDULED))
}

/// The id of an object with these messages, each as [`render_parked`] takes it. `id` begins it.
pub fn id_with_carried(id: &str, messages: &[Bytes]) -> String {
    id_carrying(id, carried_by(messages))
}

/// The same of an object of what was published for later.
fn id_without_age(id: &str, messages: &[Bytes]) -> String {
    id_carrying(id, CarriedEvents::without_age(carried_by(messages).events))
}

fn id_carrying(id: &str, carried: CarriedEvents) -> String {
    let CarriedEvents {
        events,
        accepted_secs,
    } = carried;
    format!("{id}.{events}.{accepted_secs}")
}

/// Reads from a key what its object carries. `None` if its key does not tell, as those of 0.1.0.
pub fn carried_of_key(key: &str) -> Option<CarriedEvents> {
    let (_, events, accepted_secs) = carried_parts(key)?;
    Some(CarriedEvents {
        events: events.parse().ok()?,
        accepted_secs: accepted_secs.parse().ok()?,
    })
}

/// The key of an object of which these messages are left. It is the same where the key does not say
/// what the object carries.
pub fn key_of_rest(key: &str, left: &[Bytes]) -> String {
    match (carried_parts(key), carried_of_key(key)) {
        (Some((begin, ..)), Some(_)) if is_scheduled(key) => {
            format!("{}.json", id_without_age(begin, left))
        }
        (Some((begin, ..)), Some(_)) => format!("{}.json", id_with_carried(begin, left)),
        _ => key.to_owned(),
    }
}

/// A key up to what it says that its object carries, and the two parts of that.
fn carried_parts(key: &str) -> Option<(&str, &str, &str)> {
    let (rest, accepted_secs) = key.strip_suffix(".json")?.rsplit_once('.')?;
    let (begin, events) = rest.rsplit_once('.')?;
    // A folder has a dot as well.
    let are_numbers = [events, accepted_secs]
        .iter()
        .all(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    are_numbers.then_some((begin, events, accepted_secs))
}

/// Counts the events that messages carry. One that is not understood has one event, of an unknown
/// age.
fn carried_by(messages: &[Bytes]) -> CarriedEvents {
    let unknown = CarriedEvents::without_age(1);
    messages
        .iter()
        .map(|message| carried_by_message(message).unwrap_or(unknown))
        .fold(CarriedEvents::default(), CarriedEvents::plus)
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
    let folder = parked_folder(key)?;
    let file = key.rsplit('/').next()?;
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
pub fn held_key(
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
    format!("{HELD}{}/", subscription_folder(topic, subscription))
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
const FORMAT: StoredFormat = StoredFormat {
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
    use crate::stored::delivery::tests::delivery;
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
    fn foreign_object_is_told_from_a_newer_one() {
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
    fn a_key_says_what_its_object_carries() {
        let (topic, subscription) = names();
        let body = crate::stored::delivery::render_delivery(&delivery());
        let messages = [body.clone(), body.clone(), Bytes::from_static(b"?")];
        let at = Timestamp::parse("2026-03-07T04:05:01Z").unwrap();
        let expected = CarriedEvents {
            events: 5,
            accepted_secs: 1_700_000_000,
        };
        for id in ["1b4e28ba-2fa1-41d2-883f-0016d3cca427", &parked_id(at, "x")] {
            let id = id_with_carried(id, &messages);
            let keys = [
                parked_key(at, &topic, &subscription, &id),
                held_key(&topic, &subscription, at, &id),
            ];
            for key in keys {
                assert_eq!(carried_of_key(&key), Some(expected), "{key}");
                assert!(key.ends_with(".5.1700000000.json"), "{key}");
                let rest = key_of_rest(&key, &messages[..1]);
                assert_eq!(rest, key.replace(".5.1700", ".2.1700"));
                assert_eq!(
                    carried_of_key(&rest),
                    Some(CarriedEvents::from_delivery(&delivery()))
                );
            }
        }
    }

    #[test]
    fn a_key_of_0_1_0_does_not_say_what_its_object_carries() {
        for key in [
            "held/orders.billing/20260307T0406Z/1b4e28ba-2fa1-41d2-883f-0016d3cca427.json",
            "parked/20260307T0406Z/orders.billing/20260307T0336Z-1b4e28ba.json",
            "held/1.2/20260307T0406Z/x.json",
            "held/orders.billing/20260307T0406Z/x.2.json",
            "held/orders.billing/20260307T0406Z/x.2.99999999999.json",
            "held/orders.billing/20260307T0406Z/x.2.y.json",
            "held/x",
        ] {
            assert_eq!(carried_of_key(key), None, "{key}");
            assert_eq!(key_of_rest(key, &[]), key);
        }
    }

    /// The events that a key tells stay when it is moved to another minute.
    #[test]
    fn carried_events_of_a_key_stay_when_it_is_moved() {
        let (topic, subscription) = names();
        let at = Timestamp::parse("2026-03-07T04:05:01Z").unwrap();
        let body = crate::stored::delivery::render_delivery(&delivery());
        let id = id_with_carried(&parked_id(at, "1b4e28ba-2fa1"), &[body]);
        let key = parked_key(at, &topic, &subscription, &id);
        let moved = parked_instead(&key, at.minute_rounded_down() + 9, at).unwrap();
        assert_eq!(
            carried_of_key(&moved),
            Some(CarriedEvents::from_delivery(&delivery()))
        );
        assert_eq!(
            parked_due_minute(&moved),
            Some(at.minute_rounded_down() + 9)
        );
    }

    /// A parked key tells when it was parked and is moved to another minute.
    #[test]
    fn parked_key_tells_its_minute_and_moves_to_another() {
        let (topic, subscription) = names();
        let at = |text: &str| Timestamp::parse(text).unwrap();
        let id = parked_id(
            at("2026-03-07T03:35:59Z"),
            "1b4e28ba-2fa1-41d2-883f-0016d3cca427",
        );
        let key = parked_key(at("2026-03-07T04:05:01Z"), &topic, &subscription, &id);
        assert_eq!(
            parked_at_minute(&key),
            Some(at("2026-03-07T03:35:00Z").minute_rounded_down())
        );
        let due = at("2026-03-06T23:00:00Z").minute_rounded_down();
        let parked_at = at("2026-03-06T22:30:00Z");
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
            let key = parked_key(at("2026-03-07T04:05:01Z"), &topic, &subscription, older);
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
    fn keys_listed_past_a_folder_are_in_another_one() {
        let at = Timestamp::parse("2026-03-07T04:05:01Z").unwrap();
        let key = |topic: &str, subscription: &str| {
            held_key(
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
            let key = |ms| parked_key(Timestamp::from_millis(ms), &topic, &subscription, "x");
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
