//! Where objects lie: every key of the state bucket and of the dead-letter bucket.

use std::ops::Range;

use crate::model::name::{SubscriptionName, TopicName};
use crate::model::time::Timestamp;
use crate::pressure::PRESSURE_KEY;

/// The prefix of all topic records.
pub const TOPICS: &str = "topics/";

/// The prefix of all parked deliveries.
pub const PARKED: &str = "parked/";

/// The prefix of all deliveries that wait until an endpoint recovers or an operator resumes.
pub const HELD: &str = "held/";

/// The prefix of the marks of subscriptions whose parked deliveries are to go out at once.
pub const FORCING: &str = "forcing/";

/// The prefix of the marks of subscriptions that an operator disabled, which is to be told.
pub const TELLING: &str = "telling/";

/// The prefix of all payloads that were stored once and referenced.
pub const PAYLOADS: &str = "payloads/";

/// The prefix of the notes of when something last happened to a topic or subscription that goes when it is idle.
pub const ACTIVITY: &str = "activity/";

/// The prefix of the names of topics that are temporary, or have temporary subscriptions, so that nobody must look at
/// all topics to find them.
pub const TEMPORARY: &str = "temporary/";

/// The prefix of the notes that an endpoint answered late.
pub const LATE: &str = "late/";

/// The prefix of what the processes of `deliver` tell of how fast they drain the queue.
pub const DRAIN: &str = "drain/";

/// The prefix of the states of rates.
pub const RATES: &str = "rates/";

/// The prefix of what is known of links and subscriptions that are not well.
pub const LINKS: &str = "links/";

/// The prefix of all replays.
pub const REPLAYS: &str = "replays/";

/// The prefix of the markers of replays that have not ended, so that nobody looks at the others every minute.
pub const REPLAYING: &str = "replaying/";

/// The prefix of what is known of producers' idempotency keys.
pub const IDEMPOTENCY: &str = "idempotency/";

/// The lease that keeps `wake` from running twice at once.
pub const WAKE_LEASE: &str = "leases/wake.json";

/// Where messages that cannot be read are kept byte for byte, in the dead-letter bucket.
pub const MALFORMED: &str = "MALFORMED/";

/// The milliseconds of the hour that one folder of dead letters stands for.
const HOUR_MS: u64 = 3_600_000;

/// Hexadecimal digits of a UUID in a replay's id: enough for those of one second.
const REPLAY_ID_UNIQUE_CHARS: usize = 12;

/// The record of a topic.
pub fn topic(name: &TopicName) -> String {
    format!("{TOPICS}{}.json", name.folded())
}

/// When something last happened to a topic.
pub fn topic_activity(topic: &TopicName) -> String {
    format!("{ACTIVITY}{}", topic.folded())
}

/// When something last happened to a subscription.
pub fn subscription_activity(topic: &TopicName, subscription: &SubscriptionName) -> String {
    format!("{}{}", subscription_activities(topic), subscription.folded())
}

/// The prefix of what happened to the subscriptions of a topic. Names have no dots.
pub fn subscription_activities(topic: &TopicName) -> String {
    format!("{ACTIVITY}{}.", topic.folded())
}

/// That a topic is temporary, or has temporary subscriptions.
pub fn temporary(topic: &TopicName) -> String {
    format!("{TEMPORARY}{}", topic.folded())
}

/// The topic of such a key. `None` if it is not such a key.
pub fn temporary_topic(key: &str) -> Option<TopicName> {
    TopicName::parse(key.strip_prefix(TEMPORARY)?).ok()
}

/// That an endpoint answered the event of this key late.
pub fn late(topic: &TopicName, subscription: &SubscriptionName, event_key: &str) -> String {
    format!("{}{event_key}", late_of(topic, subscription))
}

/// The prefix of the notes that the endpoint of a subscription answered late.
pub fn late_of(topic: &TopicName, subscription: &SubscriptionName) -> String {
    format!("{LATE}{}.{}/", topic.folded(), subscription.folded())
}

/// An object of deliveries of one subscription that fall due in the same minute. `id` is a [`parked_id`].
pub fn parked(due: Timestamp, topic: &TopicName, subscription: &SubscriptionName, id: &str) -> String {
    let minute = minute_key(due.minute_rounded_up());
    format!("{PARKED}{minute}/{}.{}/{id}.json", topic.folded(), subscription.folded())
}

/// The id of an object that is parked at `at`: the minute of that, so that its key tells how long it waits,
/// and a UUID. Older programs wrote the UUID alone.
pub fn parked_id(at: Timestamp, uuid: &str) -> String {
    format!("{}-{uuid}", minute_key(at.minute()))
}

/// The minute in which an object was parked, in minutes since the epoch. `None` if its key does not tell.
pub fn parked_at_minute(key: &str) -> Option<u64> {
    minute_of(key.strip_prefix(PARKED)?.rsplit('/').next()?.split_once('-')?.0)
}

/// The key of a parked object, with the same UUID, as if it were parked at `at` and due in this minute, since
/// the epoch. `None` if the key is not such a key.
pub fn parked_instead(key: &str, due_minute: u64, at: Timestamp) -> Option<String> {
    let (folder, file) = (parked_folder(key)?, key.rsplit('/').next()?);
    let uuid = match (parked_at_minute(key), file.split_once('-')) {
        (Some(_), Some((_, uuid))) => uuid,
        // Of an older program: the file is named by the UUID alone.
        _ => file,
    };
    Some(format!("{PARKED}{}/{folder}/{}", minute_key(due_minute), parked_id(at, uuid)))
}

/// A key greater than that of every object parked for an earlier minute, and less than those of this one, for listing
/// from there. `minute` counts from the epoch.
pub fn parked_before(minute: u64) -> String {
    format!("{PARKED}{}", minute_key(minute))
}

/// The due minute of a parked object's key, in minutes since the epoch. `None` if it is not such a key.
pub fn parked_due_minute(key: &str) -> Option<u64> {
    minute_of(key.strip_prefix(PARKED)?.split('/').next()?)
}

/// The folder of the subscription whose deliveries a parked object holds, `topic.subscription`. `None` if the key is not
/// such a key.
pub fn parked_folder(key: &str) -> Option<&str> {
    let (_, rest) = key.strip_prefix(PARKED)?.split_once('/')?;
    rest.split_once('/').map(|(folder, _)| folder)
}

/// An object of deliveries of one subscription that wait for it, the first event of which expires at `expires_at`.
/// Those that expire first are listed first. `id` is a UUID.
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

/// A key greater than that of every object in this folder, and less than those of every later one, for listing from
/// there.
pub fn held_past(folder: &str) -> String {
    // The character after the slash.
    format!("{HELD}{folder}0")
}

/// The minute in which the first event of a held object has expired, in minutes since the epoch. `None` if it is not
/// such a key.
pub fn held_expiry_minute(key: &str) -> Option<u64> {
    minute_of(key.strip_prefix(HELD)?.split('/').nth(1)?)
}

/// That the parked deliveries of a subscription are to go out at once.
pub fn forcing(topic: &TopicName, subscription: &SubscriptionName) -> String {
    format!("{FORCING}{}", folder(topic, subscription))
}

/// That an operator disabled a subscription, which is to be told.
pub fn telling(topic: &TopicName, subscription: &SubscriptionName) -> String {
    format!("{TELLING}{}", folder(topic, subscription))
}

/// The topic and the subscription of a folder, as they are in keys: in lower case. `None` if it is not such a folder.
pub fn folder_owner(folder: &str) -> Option<(TopicName, SubscriptionName)> {
    let (topic, subscription) = folder.split_once('.')?;
    Some((TopicName::parse(topic).ok()?, SubscriptionName::parse(subscription).ok()?))
}

/// Whether a damaged object of this key may be deleted: its content is found out again, and it holds no event.
pub fn begins_anew(key: &str) -> bool {
    let whole = [WAKE_LEASE, PRESSURE_KEY];
    let prefixes = [ACTIVITY, DRAIN, LINKS, RATES];
    whole.contains(&key) || prefixes.iter().any(|prefix| key.starts_with(prefix))
}

/// A payload, under the day it was stored, so that old ones are found by their prefix. `id` is a UUID.
pub fn payload(stored: Timestamp, id: &str) -> String {
    format!("{PAYLOADS}{}/{id}", day_key(stored))
}

/// The greatest key a payload stored before `day` begins can have, for listing what is old.
pub fn payloads_before(day: Timestamp) -> String {
    format!("{PAYLOADS}{}/", day_key(day))
}

/// What is known of an idempotency key on this topic. `digest` is 64 hexadecimal
/// digits made of the key and of when the topic was made.
pub fn idempotency(topic: &TopicName, digest: &str) -> String {
    format!("{IDEMPOTENCY}{}/{digest}", topic.folded())
}

/// What one process of `deliver` tells of how fast it drains the queue. `instance` is a UUID.
pub fn drain(instance: &str) -> String {
    format!("{DRAIN}{instance}.json")
}

/// Up to when the time of a subscription with a bound on its rate is taken.
pub fn rate(topic: &TopicName, subscription: &SubscriptionName) -> String {
    format!("{RATES}{}.{}.json", topic.folded(), subscription.folded())
}

/// What is known of the links of this part and of their subscriptions.
pub fn links(shard: usize) -> String {
    format!("{LINKS}{shard:x}.json")
}

/// A dead-letter object: names upper-cased, date parts in UTC and unpadded. `id` is a UUID.
pub fn dead_letter(topic: &TopicName, subscription: &SubscriptionName, at: Timestamp, id: &str) -> String {
    format!("{}{}/{id}.json", dead_letters_of(topic, subscription), hour_key(at))
}

/// The prefix of a subscription's dead letters.
pub fn dead_letters_of(topic: &TopicName, subscription: &SubscriptionName) -> String {
    format!("{}/{}/", topic.as_str().to_ascii_uppercase(), subscription.as_str().to_ascii_uppercase())
}

/// Whose dead letters an object holds, by its key. `None` if it is nobody's.
pub fn dead_letter_owner(key: &str) -> Option<(TopicName, SubscriptionName)> {
    let mut parts = key.split('/');
    let (topic, subscription) = (parts.next()?, parts.next()?);
    Some((TopicName::parse(topic).ok()?, SubscriptionName::parse(subscription).ok()?))
}

/// The hour that a dead-letter object's key tells, `prefix` being its subscription's. `None` if it tells none.
pub fn dead_letter_hour(prefix: &str, key: &str) -> Option<Range<Timestamp>> {
    let parts: Vec<u16> =
        key.strip_prefix(prefix)?.split('/').take(4).map(str::parse).collect::<Result<_, _>>().ok()?;
    let [year, month, day, hour] = parts.as_slice() else { return None };
    let begins = Timestamp::parse(&format!("{year:04}-{month:02}-{day:02}T{hour:02}:00:00Z")).ok()?;
    Some(begins..Timestamp::from_millis(begins.as_millis() + HOUR_MS))
}

/// What a replay goes by: the second in which it was asked for, so that they are listed in order, and a part of a UUID.
pub fn replay_id(at: Timestamp, uuid: &str) -> String {
    let text = at.to_string();
    let digits: String = text.chars().take(19).filter(|c| !matches!(c, '-' | ':')).collect();
    let unique: String = uuid.chars().filter(|c| *c != '-').take(REPLAY_ID_UNIQUE_CHARS).collect();
    format!("{digits}Z-{unique}")
}

/// The record of a replay.
pub fn replay(id: &str) -> String {
    format!("{REPLAYS}{id}.json")
}

/// The id of the replay whose record this is.
pub fn replay_of(key: &str) -> Option<&str> {
    key.strip_prefix(REPLAYS)?.strip_suffix(".json")
}

/// The marker of a replay that has not ended.
pub fn replaying(id: &str) -> String {
    format!("{REPLAYING}{id}")
}

/// A message kept byte for byte because it cannot be read. `id` is a UUID.
pub fn malformed(at: Timestamp, id: &str) -> String {
    format!("{MALFORMED}{}/{id}", hour_key(at))
}

fn hour_key(at: Timestamp) -> String {
    let utc = at.utc();
    format!("{}/{}/{}/{}", utc.year, utc.month, utc.day, utc.hour)
}

fn day_key(at: Timestamp) -> String {
    let utc = at.utc();
    format!("{:04}{:02}{:02}", utc.year, utc.month, utc.day)
}

fn minute_key(minute: u64) -> String {
    let utc = Timestamp::from_millis(minute.saturating_mul(60_000)).utc();
    format!("{:04}{:02}{:02}T{:02}{:02}Z", utc.year, utc.month, utc.day, utc.hour, utc.minute)
}

/// The minute that such a part of a key tells.
fn minute_of(minute: &str) -> Option<u64> {
    let digits = minute.strip_suffix('Z')?;
    let (date, time) = digits.split_once('T')?;
    if date.len() != 8 || time.len() != 4 || !digits.bytes().all(|b| b.is_ascii_digit() || b == b'T') {
        return None;
    }
    let text = format!("{}-{}-{}T{}:{}:00Z", &date[..4], &date[4..6], &date[6..], &time[..2], &time[2..]);
    Timestamp::parse(&text).ok().map(Timestamp::minute)
}

/// A subscription as keys name it, `topic.subscription`. Names have no dots.
pub fn folder(topic: &TopicName, subscription: &SubscriptionName) -> String {
    format!("{}.{}", topic.folded(), subscription.folded())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names() -> (TopicName, SubscriptionName) {
        (TopicName::parse("Orders").unwrap(), SubscriptionName::parse("Billing").unwrap())
    }

    #[test]
    fn keys_are_as_the_design_says() {
        let (topic_name, subscription) = names();
        let at = Timestamp::parse("2026-03-07T04:05:01Z").unwrap();
        assert_eq!(topic(&topic_name), "topics/orders.json");
        assert_eq!(
            parked(at, &topic_name, &subscription, "x"),
            "parked/20260307T0406Z/orders.billing/x.json"
        );
        assert_eq!(held(&topic_name, &subscription, at, "x"), "held/orders.billing/20260307T0406Z/x.json");
        assert_eq!(forcing(&topic_name, &subscription), "forcing/orders.billing");
        assert_eq!(telling(&topic_name, &subscription), "telling/orders.billing");
        assert_eq!(payload(at, "x"), "payloads/20260307/x");
        assert_eq!(drain("x"), "drain/x.json");
        assert_eq!(rate(&topic_name, &subscription), "rates/orders.billing.json");
        assert_eq!(dead_letter(&topic_name, &subscription, at, "x"), "ORDERS/BILLING/2026/3/7/4/x.json");
        assert_eq!(malformed(at, "x"), "MALFORMED/2026/3/7/4/x");
        assert_eq!(topic_activity(&topic_name), "activity/orders");
        assert_eq!(subscription_activity(&topic_name, &subscription), "activity/orders.billing");
        assert_eq!(temporary(&topic_name), "temporary/orders");
        assert_eq!(late(&topic_name, &subscription, "k-0"), "late/orders.billing/k-0");
    }

    #[test]
    fn keys_tell_whose_they_are() {
        let (topic_name, subscription) = names();
        let owner =
            dead_letter_owner(&dead_letter(&topic_name, &subscription, Timestamp::EPOCH, "x")).unwrap();
        assert_eq!((owner.0.folded(), owner.1.folded()), (topic_name.folded(), subscription.folded()));
        assert_eq!(dead_letter_owner("MALFORMED/2026/3/7/4/x"), None);
        assert_eq!(dead_letter_owner("ORDERS"), None);
        assert_eq!(temporary_topic(&temporary(&topic_name)).unwrap().folded(), "orders");
        assert_eq!(temporary_topic("temporary/a.b"), None);
    }

    #[test]
    fn keys_of_deliveries_that_wait_tell_their_folder_and_the_folder_its_owner() {
        let (topic_name, subscription) = names();
        let at = Timestamp::parse("2026-03-07T04:05:01Z").unwrap();
        let held = held(&topic_name, &subscription, at, "x");
        assert_eq!(held_folder(&held), Some("orders.billing"));
        assert_eq!(held_expiry_minute(&held), Some(at.minute_rounded_up()));
        assert_eq!(parked_folder(&parked(at, &topic_name, &subscription, "x")), Some("orders.billing"));
        let owner = folder_owner("orders.billing").unwrap();
        assert_eq!((owner.0.folded(), owner.1.folded()), (topic_name.folded(), subscription.folded()));
        for foreign in ["held/", "held/x", "parked/x/y", "topics/a.json"] {
            assert_eq!(held_folder(foreign), None, "{foreign}");
            assert_eq!(held_expiry_minute(foreign), None, "{foreign}");
            assert_eq!(parked_folder(foreign), None, "{foreign}");
        }
        assert_eq!((folder_owner("orders"), folder_owner("orders.")), (None, None));
    }

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

    #[test]
    fn a_replay_s_keys_tell_its_id_and_sort_by_time() {
        let at = Timestamp::parse("2026-03-07T04:05:01.999Z").unwrap();
        let id = replay_id(at, "0b8b9c5e-6a0c-4a57-9d0c-3c2a7d1f6f1e");
        assert_eq!(id, "20260307T040501Z-0b8b9c5e6a0c");
        assert_eq!(replay_of(&replay(&id)), Some(id.as_str()));
        assert_eq!((replay_of("replays/x"), replay_of("x.json")), (None, None));
        assert_eq!(replaying(&id), "replaying/20260307T040501Z-0b8b9c5e6a0c");
    }

    #[test]
    fn the_hour_is_read_from_the_key() {
        let check = |rest: &str, expected: Option<&str>| {
            let hour = dead_letter_hour("ORDERS/BILLING/", &format!("ORDERS/BILLING/{rest}"));
            assert_eq!(
                hour.map(|hour| hour.start),
                expected.map(|text| Timestamp::parse(text).unwrap()),
                "{rest}"
            );
        };
        check("2026/3/7/4/x.json", Some("2026-03-07T04:00:00Z"));
        check("2026/11/21/23/x.json", Some("2026-11-21T23:00:00Z"));
        for foreign in ["", "2026/3/7", "2026/13/7/4/x", "2026/2/30/4/x", "a/b/c/d/e", "2026/3/7/-4/x"] {
            check(foreign, None);
        }
        assert_eq!(dead_letter_hour("ORDERS/BILLING/", "ORDERS/OTHER/2026/3/7/4/x.json"), None);
    }

    #[test]
    fn a_parked_key_tells_when_it_was_parked_and_is_moved_to_another_minute() {
        let (topic, subscription) = names();
        let at = |text: &str| Timestamp::parse(text).unwrap();
        let id = parked_id(at("2026-03-07T03:35:59Z"), "1b4e28ba-2fa1-41d2-883f-0016d3cca427");
        let key = parked(at("2026-03-07T04:05:01Z"), &topic, &subscription, &id);
        assert_eq!(parked_at_minute(&key), Some(at("2026-03-07T03:35:00Z").minute()));
        let (due, parked_at) = (at("2026-03-06T23:00:00Z").minute(), at("2026-03-06T22:30:00Z"));
        let moved = |key: &str| parked_instead(key, due, parked_at);
        let expected =
            |uuid| Some(format!("parked/20260306T2300Z/orders.billing/20260306T2230Z-{uuid}.json"));
        assert_eq!(moved(&key), expected("1b4e28ba-2fa1-41d2-883f-0016d3cca427"));
        for older in ["1b4e28ba-2fa1-41d2-883f-0016d3cca427", "x"] {
            let key = parked(at("2026-03-07T04:05:01Z"), &topic, &subscription, older);
            assert_eq!((parked_at_minute(&key), moved(&key)), (None, expected(older)));
        }
        assert_eq!((parked_at_minute("held/x"), moved("held/x")), (None, None));
    }

    #[test]
    fn a_foreign_key_has_no_due_minute() {
        for key in
            ["parked/", "parked/x/y", "topics/a.json", "parked/2026T12Z/a.b/x", "parked/20269999T0406Z/a"]
        {
            assert_eq!(parked_due_minute(key), None, "{key}");
        }
    }

    proptest! {
        #[test]
        fn parked_keys_sort_by_due_minute_and_tell_it(a in 0_u64..4_000_000_000_000, b in 0_u64..4_000_000_000_000) {
            let (topic, subscription) = names();
            let key = |ms| parked(Timestamp::from_millis(ms), &topic, &subscription, "x");
            let (a, b) = (a.min(b), a.max(b));
            prop_assert!(key(a) <= key(b));
            prop_assert_eq!(parked_due_minute(&key(a)), Some(Timestamp::from_millis(a).minute_rounded_up()));
            let minute = Timestamp::from_millis(b).minute_rounded_up();
            prop_assert!(parked_before(minute) < key(b));
            prop_assert_eq!(parked_before(minute) > key(a), Timestamp::from_millis(a).minute_rounded_up() < minute);
        }
    }
}
