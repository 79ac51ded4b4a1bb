//! The choice of dead letters that a replay sends.

use std::collections::BTreeSet;

use super::named::NamedObjects;
use super::request_error::ReplayRequestError;
use crate::api::{LeftOutReason, ReplayRequest, ReplayResult, ReplaySource};
use crate::delivery_log::{
    DeliveryHistory, LogRecord, LogResult, RecordFilter, RecordKind, StatusRange,
};
use crate::model::{
    Identity, REPLAY_RATE_DEFAULT, REPLAY_RATE_MAX, REPLAY_TYPES_MAX, Subscription,
    SubscriptionCreation, SubscriptionName, Timestamp, TopicName, WrittenTime,
};
use crate::stored::dead_letter::KeyPeriod;
use crate::stored::{ReplayRecord, RestoredLetter, WrittenIn, layout};

/// The results with which a delivery has ended.
const ENDED: [LogResult; 3] = [
    LogResult::Delivered,
    LogResult::DeadLettered,
    LogResult::Dropped,
];

/// A request that can be carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplaySelection {
    prefix: String,
    from: Option<Timestamp>,
    to: Timestamp,
    reason: Option<String>,
    types: BTreeSet<String>,
    named: Option<NamedObjects>,
    rate_per_second: u32,
    include_former: bool,
    include_resolved: bool,
    source: ReplaySource,
    result: Option<ReplayResult>,
    status: Option<StatusRange>,
}

impl ReplayRecord {
    /// The choice of what is to be replayed.
    pub fn selection(&self) -> Result<ReplaySelection, ReplayRequestError> {
        ReplaySelection::check_request(
            &self.topic,
            &self.subscription,
            &self.request,
            self.created_at,
        )
    }
}

impl ReplaySelection {
    /// Checks a request that comes in. What is written from `now` on is not part of it: a replayed
    /// event that fails again would otherwise be replayed for ever.
    pub fn new(
        topic: &TopicName,
        subscription: &SubscriptionName,
        request: &ReplayRequest,
        now: Timestamp,
    ) -> Result<Self, ReplayRequestError> {
        let selection = Self::check_request(topic, subscription, request, now)?;
        NamedObjects::check_keys(request)?;
        Ok(selection)
    }

    /// Checks a request that may have been stored by an older program, which took any key.
    fn check_request(
        topic: &TopicName,
        subscription: &SubscriptionName,
        request: &ReplayRequest,
        now: Timestamp,
    ) -> Result<Self, ReplayRequestError> {
        let prefix = layout::dead_letters_of(topic, subscription);
        let (from, to) = WrittenTime::resolve_period(request.from, request.to, now);
        if from.zip(to).is_some_and(|(from, to)| from >= to) {
            return Err(ReplayRequestError::Times);
        }
        let rate_per_second = request.rate_per_second.unwrap_or(REPLAY_RATE_DEFAULT);
        if !(1..=REPLAY_RATE_MAX).contains(&rate_per_second) {
            return Err(ReplayRequestError::Rate(rate_per_second));
        }
        if request.types.len() > REPLAY_TYPES_MAX {
            return Err(ReplayRequestError::Types(request.types.len()));
        }
        let named = NamedObjects::check_request(request, &prefix)?;
        check_source(request)?;
        let status = request.status.as_deref();
        let status = status.map(|text| StatusRange::parse(text).ok_or(ReplayRequestError::Status));
        Ok(Self {
            prefix,
            from,
            to: to.map_or(now, |to| to.min(now)),
            reason: request.reason.map(|reason| format!("{reason:?}")),
            types: request.types.iter().cloned().collect(),
            named,
            rate_per_second,
            include_former: request.include_former,
            include_resolved: request.include_resolved,
            source: request.source,
            result: request.result,
            status: status.transpose()?,
        })
    }

    /// The number of events that are delivered per second.
    pub fn rate_per_second(&self) -> u32 {
        self.rate_per_second
    }

    /// The prefix under which the objects lie.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The prefixes of the days in which the objects lie, the oldest first and none before `since`:
    /// a subscription may have many older objects.
    pub fn prefixes_of_days(&self, since: Timestamp) -> Vec<String> {
        let mut day = KeyPeriod::day_of(self.from.map_or(since, |from| from.max(since)));
        let mut prefixes = Vec::new();
        while day.begins_at() < self.to {
            prefixes.push(format!("{}{}", self.prefix, day.key_part()));
            day = KeyPeriod::day_of(day.ends_at());
        }
        prefixes
    }

    /// The keys that were named, in order, after this one; `None` if objects are to be listed.
    pub fn keys_after(&self, after: Option<&str>) -> Option<impl Iterator<Item = &str>> {
        let keys = self.named.as_ref()?.keys();
        Some(keys.filter(move |key| after.is_none_or(|after| *key > after)))
    }

    /// The reason why an object that a list shows is left out; `None` if it was written in the time
    /// that was asked for. An object that was named is wanted whenever it was written.
    pub fn leaves_out_object(&self, key: &str, modified_at: Timestamp) -> Option<LeftOutReason> {
        let written = WrittenIn {
            from: self.from,
            to: Some(self.to),
        };
        if self.named.is_some() || written.includes_object(&self.prefix, key, modified_at) {
            return None;
        }
        Some(match layout::dead_letter_hour(&self.prefix, key) {
            Some(_) => LeftOutReason::OtherTime,
            None => LeftOutReason::NoTime,
        })
    }

    /// The places of the letters of an object that were named one by one; `None` where all letters
    /// of the object may be meant.
    pub fn named_letters(&self, object: &str) -> Option<&BTreeSet<usize>> {
        self.named.as_ref()?.letters_of(object)
    }

    /// Whether the letter in this place of an object may be meant.
    pub fn may_mean_letter(&self, object: &str, index: usize) -> bool {
        self.named_letters(object)
            .is_none_or(|places| places.contains(&index))
    }

    /// Whether letters that are resolved are asked for too.
    pub fn includes_resolved(&self) -> bool {
        self.include_resolved
    }

    /// Whether events of earlier subscriptions of the name are asked for too.
    pub fn includes_former(&self) -> bool {
        self.include_former
    }

    /// Whether the events are those of the delivery log.
    pub fn is_of_log(&self) -> bool {
        self.source == ReplaySource::Log
    }

    /// The time from which on deliveries of the log count; `None` for all that it has.
    pub fn from(&self) -> Option<Timestamp> {
        self.from
    }

    /// The time before which they count.
    pub fn to_time(&self) -> Timestamp {
        self.to
    }

    /// The records of the log that may end a selected delivery, of this time.
    pub fn record_filter(&self, from: Timestamp, to: Timestamp, of: &Subscription) -> RecordFilter {
        let mut types = self.types.iter();
        let event_type = types.next().filter(|_| types.next().is_none()).cloned();
        let is_delivered = self.result == Some(ReplayResult::Delivered);
        RecordFilter {
            topic: Some(of.topic.folded()),
            subscription: Some(of.name.folded()),
            event_type,
            result: is_delivered.then_some(LogResult::Delivered),
            from: Some(from),
            to: Some(to),
            // What was given up is looked up anyway.
            without_payload: !is_delivered && self.result.is_some(),
            ..RecordFilter::default()
        }
    }

    /// The reason why no selected delivery ended with a record; `None` if one may have: one that a
    /// producer made, for the subscription of this creation. What a replay sent is no part of
    /// another one.
    pub fn leaves_out_record(
        &self,
        record: &LogRecord,
        created: &SubscriptionCreation,
    ) -> Option<LeftOutReason> {
        let identity = record.identity.as_deref().and_then(Identity::parse);
        let is_own = self.include_former || created.has_accepted(identity, record.accepted_at);
        let has_type = self.types.is_empty()
            || record
                .event_type
                .as_ref()
                .is_some_and(|event_type| self.types.contains(event_type));
        if record.origin.is_sent_again() {
            Some(LeftOutReason::SentAgain)
        } else if !is_own {
            Some(LeftOutReason::Former)
        } else if !ENDED.contains(&record.result) {
            Some(LeftOutReason::NotEnded)
        } else {
            (!has_type).then_some(LeftOutReason::OtherType)
        }
    }

    /// Whether a delivery that is left out counts with this record. One that has ended counts with
    /// that, and not again with the record that says what became of its dead letter. One that has
    /// not ended counts with its last record before the end of the time that is asked for: the one
    /// whose next attempt comes later.
    pub fn counts_with(&self, record: &LogRecord) -> bool {
        let is_of_letter = matches!(record.kind, RecordKind::DeadLettered | RecordKind::Dropped);
        let is_last = record.next_attempt_at.is_some_and(|next| next >= self.to);
        !is_of_letter && (ENDED.contains(&record.result) || is_last)
    }

    /// The reason why a delivery that has ended is left out; `None` if it ended as is asked for.
    /// The last record says that.
    pub fn leaves_out_end(&self, history: &DeliveryHistory) -> Option<LeftOutReason> {
        let last = history.decisive_record();
        let has_result = match self.result {
            None => ENDED.contains(&last.result),
            Some(ReplayResult::Delivered) => last.result == LogResult::Delivered,
            Some(ReplayResult::Failed) => {
                matches!(last.result, LogResult::DeadLettered | LogResult::Dropped)
            }
            Some(ReplayResult::DeadLettered) => last.result == LogResult::DeadLettered,
            Some(ReplayResult::Dropped) => last.result == LogResult::Dropped,
        };
        if !has_result {
            return Some(LeftOutReason::OtherResult);
        }
        if self.reason.is_some() && last.reason != self.reason {
            return Some(LeftOutReason::OtherReason);
        }
        (!self.takes_status(history)).then_some(LeftOutReason::OtherStatus)
    }

    /// Whether the last attempt of a delivery had a status that was asked for.
    fn takes_status(&self, history: &DeliveryHistory) -> bool {
        let last = history.attempts().last().and_then(|attempt| attempt.status);
        self.status
            .is_none_or(|asked| last.is_some_and(|status| asked.contains(status)))
    }

    /// The reason why an event is left out; `None` if the subscription of this creation asked for
    /// it.
    pub fn leaves_out_event(
        &self,
        letter: &RestoredLetter,
        created: &SubscriptionCreation,
    ) -> Option<LeftOutReason> {
        let has_reason = self
            .reason
            .as_deref()
            .is_none_or(|reason| *letter.reason == *reason);
        let has_type = self.types.is_empty() || self.types.contains(letter.event.event_type());
        if !self.include_former && !letter.is_for(created) {
            Some(LeftOutReason::Former)
        } else if !has_reason {
            Some(LeftOutReason::OtherReason)
        } else {
            (!has_type).then_some(LeftOutReason::OtherType)
        }
    }
}

fn check_source(request: &ReplayRequest) -> Result<(), ReplayRequestError> {
    match request.source {
        ReplaySource::Log if !request.keys.is_empty() => {
            Err(ReplayRequestError::OnlyOfDeadLetters("keys"))
        }
        ReplaySource::Log if !request.letters.is_empty() => {
            Err(ReplayRequestError::OnlyOfDeadLetters("letters"))
        }
        ReplaySource::DeadLetters if request.result.is_some() => {
            Err(ReplayRequestError::OnlyOfLog("result"))
        }
        ReplaySource::DeadLetters if request.status.is_some() => {
            Err(ReplayRequestError::OnlyOfLog("status"))
        }
        ReplaySource::Log | ReplaySource::DeadLetters => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{CreationId, CreationRecord, EventSchema};
    use crate::stored::dead_letter::restore_letter;
    use bytes::Bytes;
    use serde_json::{Value, json};

    const NOW: &str = "2026-11-21T10:30:00Z";

    fn selection(request: Value) -> Result<ReplaySelection, ReplayRequestError> {
        let topic = TopicName::parse("Orders").unwrap();
        let name = SubscriptionName::parse("Billing").unwrap();
        let request = serde_json::from_value(request).unwrap();
        ReplaySelection::new(&topic, &name, &request, Timestamp::parse(NOW).unwrap())
    }

    #[test]
    fn days_are_those_of_the_time_that_was_asked_for() {
        let check = |request: Value, since: &str, expected: &[&str]| {
            let selection = selection(request).unwrap();
            let days = selection.prefixes_of_days(Timestamp::parse(since).unwrap());
            let prefix = |day: &&str| format!("ORDERS/BILLING/2026/{day}/");
            assert_eq!(days, expected.iter().map(prefix).collect::<Vec<_>>());
        };
        let from = json!({ "from": "2026-10-31T23:59:00Z", "to": "2026-11-02T00:00:00Z" });
        check(from, "2026-01-01T00:00:00Z", &["10/31", "11/1"]);
        check(json!({}), "2026-11-20T23:00:00Z", &["11/20", "11/21"]);
        check(json!({}), "2026-11-22T00:00:00Z", &[]);
    }

    /// A request that cannot be carried out names its member at fault.
    #[test]
    fn impossible_request_names_its_member() {
        let check = |request: Value, member: &str, message: &str| {
            let error = selection(request).unwrap_err();
            assert_eq!(
                (error.member().as_str(), error.to_string().as_str()),
                (member, message)
            );
        };
        let time = "2026-11-21T10:00:00Z";
        check(
            json!({ "from": time, "to": time }),
            "from",
            "from is not before to",
        );
        check(
            json!({ "ratePerSecond": 0 }),
            "ratePerSecond",
            "expected 1 to 1000, found 0",
        );
        check(
            json!({ "ratePerSecond": 1001 }),
            "ratePerSecond",
            "expected 1 to 1000, found 1001",
        );
        check(
            json!({ "types": vec!["t"; 101] }),
            "types",
            "101 types, expected at most 100",
        );
        check(
            json!({ "keys": vec!["k"; 1001] }),
            "keys",
            "1001 keys, expected at most 1000",
        );
        let own = "ORDERS/BILLING/2026/3/7/4/a.json";
        let malformed =
            "what lies under MALFORMED/ could not be read as a message and cannot be replayed";
        check(
            json!({ "keys": [own, "MALFORMED/2026/3/7/4/x"] }),
            "keys[1]",
            malformed,
        );
        let foreign = "not a dead letter of this subscription: its keys begin with ORDERS/BILLING/";
        check(
            json!({ "keys": ["ORDERS/OTHER/2026/3/7/4/a.json"] }),
            "keys[0]",
            foreign,
        );
        check(
            json!({ "keys": [own, "orders/billing/2026/3/7/4/a.json"] }),
            "keys[1]",
            foreign,
        );
        check(
            json!({ "keys": [own, "ORDERS/BILLING/../a.json"] }),
            "keys[1]",
            "no object can have this key",
        );
    }

    #[test]
    fn hundred_types_are_taken() {
        let request = json!({ "types": vec!["t"; REPLAY_TYPES_MAX] });
        assert!(selection(request).is_ok());
    }

    /// A replay that an older program stored goes on past a key that no object can have.
    #[test]
    fn stored_replay_with_a_bad_key_is_read() {
        let request = serde_json::from_value(json!({ "keys": ["ORDERS/BILLING//a"] })).unwrap();
        let names = (
            TopicName::parse("Orders").unwrap(),
            SubscriptionName::parse("Billing").unwrap(),
        );
        let replay = ReplayRecord::new(
            "x".to_owned(),
            names.0,
            (names.1, &SubscriptionCreation::UNKNOWN),
            request,
            Timestamp::parse(NOW).unwrap(),
        );
        let selection = replay.selection().unwrap();
        assert_eq!(
            selection.keys_after(None).unwrap().collect::<Vec<_>>(),
            ["ORDERS/BILLING//a"]
        );
    }

    #[test]
    fn an_object_is_taken_by_the_time_at_which_it_was_written() {
        let check = |request: Value, key: &str, modified_at: &str, expected: bool| {
            let left_out = selection(request.clone()).unwrap().leaves_out_object(
                &format!("ORDERS/BILLING/{key}"),
                Timestamp::parse(modified_at).unwrap(),
            );
            assert_eq!(
                left_out.is_none(),
                expected,
                "{request} {key} {modified_at}"
            );
            let reason = if key.starts_with("2026") {
                LeftOutReason::OtherTime
            } else {
                LeftOutReason::NoTime
            };
            assert!(left_out.is_none_or(|it| it == reason), "{left_out:?}");
        };
        let ten = "2026/11/21/10/a.json";
        let at = "2026-11-21T10:15:00Z";
        check(json!({}), ten, at, true);
        check(json!({}), ten, NOW, false);
        check(json!({ "from": at }), ten, at, true);
        check(json!({ "from": "2026-11-21T10:15:01Z" }), ten, at, false);
        check(json!({ "to": "2026-11-21T10:15:01Z" }), ten, at, true);
        check(json!({ "to": at }), ten, at, false);
        // A copy has the time of copying: then the hour in its key is what is known.
        let copied = "2026-11-21T10:29:00Z";
        let old = "2026/3/7/4/a.json";
        check(json!({ "to": "2026-03-07T04:10:00Z" }), old, copied, true);
        check(json!({ "to": "2026-03-07T04:00:00Z" }), old, copied, false);
        check(json!({ "from": "2026-03-07T04:59:59Z" }), old, copied, true);
        check(
            json!({ "from": "2026-03-07T05:00:00Z" }),
            old,
            copied,
            false,
        );
        check(json!({}), "foreign.json", copied, false);
        let named = json!({ "keys": ["ORDERS/BILLING/foreign.json"] });
        check(named, "foreign.json", copied, true);
    }

    #[test]
    fn an_event_is_taken_by_its_reason_and_type() {
        let letter =
            br#"{"specversion":"1.0","id":"1","source":"/s","type":"t","deadletterreason":"EndpointGone"}"#;
        let letter = restore_letter(&Bytes::from_static(letter), EventSchema::CloudEvents).unwrap();
        let check = |request: Value, expected| {
            assert_eq!(
                selection(request.clone())
                    .unwrap()
                    .leaves_out_event(&letter, &SubscriptionCreation::UNKNOWN),
                expected,
                "{request}"
            );
        };
        check(json!({}), None);
        check(
            json!({ "reason": "EndpointGone", "types": ["u", "t"] }),
            None,
        );
        let other = json!({ "reason": "TimeToLiveExceeded", "types": ["T"] });
        check(other, Some(LeftOutReason::OtherReason));
        check(json!({ "types": ["T"] }), Some(LeftOutReason::OtherType));
    }

    /// Letters accepted for another creation are taken only where that is asked for.
    #[test]
    fn letters_of_another_creation_are_taken_only_on_request() {
        let letter = |identity: &str| {
            let text = serde_json::json!({
                "specversion": "1.0", "id": "1", "source": "/s", "type": "t",
                "deadletterreason": "EndpointGone", "subscriptionidentity": identity,
            });
            restore_letter(&Bytes::from(text.to_string()), EventSchema::CloudEvents).unwrap()
        };
        let own = letter("010101010101020202020202");
        let former = letter("010101010101030303030303");
        let creation = |byte| {
            Some(CreationRecord {
                id: CreationId::new([byte; 6]),
                at: Some(Timestamp::EPOCH),
            })
        };
        let created = SubscriptionCreation {
            topic: creation(1),
            subscription: creation(2),
            topic_at: Timestamp::EPOCH,
        };
        let is_former = LeftOutReason::Former;
        let is_other = LeftOutReason::OtherType;
        for (request, expected) in [
            (json!({}), [None, Some(is_former)]),
            (json!({ "includeFormer": true }), [None, None]),
            (
                json!({ "includeFormer": true, "types": ["other"] }),
                [Some(is_other), Some(is_other)],
            ),
        ] {
            let selection = selection(request.clone()).unwrap();
            let left_out =
                [&own, &former].map(|letter| selection.leaves_out_event(letter, &created));
            assert_eq!(left_out, expected, "{request}");
        }
    }

    #[test]
    fn delivery_that_is_left_out_counts_with_one_record() {
        let selection = selection(json!({ "source": "log" })).unwrap();
        let counts = |kind: RecordKind, result: LogResult, next: Option<&str>| {
            let next_attempt_at = next.map(|next| Timestamp::parse(next).unwrap());
            selection.counts_with(&LogRecord {
                kind,
                result,
                next_attempt_at,
                ..LogRecord::default()
            })
        };
        let later = "2026-11-21T10:40:00Z";
        let earlier = Some("2026-11-21T10:20:00Z");
        assert!(!counts(RecordKind::Attempt, LogResult::Retry, earlier));
        assert!(counts(RecordKind::Attempt, LogResult::Retry, Some(NOW)));
        assert!(counts(RecordKind::Attempt, LogResult::Retry, Some(later)));
        assert!(counts(RecordKind::Attempt, LogResult::DeadLettered, None));
        assert!(!counts(
            RecordKind::DeadLettered,
            LogResult::DeadLettered,
            None
        ));
        assert!(!counts(RecordKind::Dropped, LogResult::Dropped, None));
    }

    #[test]
    fn named_objects_come_once_each_and_in_order() {
        let keys = json!({ "keys": ["ORDERS/BILLING/b", "ORDERS/BILLING/a", "ORDERS/BILLING/b"] });
        let chosen = selection(keys).unwrap();
        let after = |after| {
            chosen
                .keys_after(after)
                .unwrap()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(after(None), ["ORDERS/BILLING/a", "ORDERS/BILLING/b"]);
        assert_eq!(after(Some("ORDERS/BILLING/a")), ["ORDERS/BILLING/b"]);
        assert!(selection(json!({})).unwrap().keys_after(None).is_none());
    }
}
