//! The questions about events, as they are written into a query.

use std::fmt::Display;

use serde::Deserialize;
use utoipa::IntoParams;

use super::id_in_url::EncodedId;
use crate::api::InputMistake;
use crate::delivery_log::{LogResult, RecordFilter, RecordLookup, StatusRange, log_text};
use crate::model::{SubscriptionName, Timestamp, TopicName, WrittenTime};

/// The query of one event.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct EventQuery {
    /// Only records of this time or later. It makes the answer faster.
    #[param(value_type = Option<String>, format = DateTime)]
    pub from: Option<WrittenTime>,
    /// Only records before this time.
    #[param(value_type = Option<String>, format = DateTime)]
    pub to: Option<WrittenTime>,
    /// Whether the answer has the event itself, where the log does. `false` when left out.
    pub payload: Option<bool>,
    /// The event's id, in place of that of the path: for every id that has other characters than
    /// ASCII letters, digits, `_`, `-` and `.`, which proxies may change in a path.
    pub id: Option<String>,
    /// The same in base64url: for an id that is too long for a URL in percent-encoding.
    #[param(value_type = Option<String>)]
    pub id64: Option<EncodedId>,
}

/// The query of a list of records. Everything in it is text, so that every mistake can be named at
/// once.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RecordQuery {
    /// Only this subscription, in any case.
    #[param(ignore)]
    pub subscription: Option<String>,
    /// Only records with this result: `delivered`, `pending`, `unmatched`, `retry`, `held`,
    /// `dead-lettered`, or `dropped`.
    pub result: Option<String>,
    /// Only events of this type, compared exactly.
    #[serde(rename = "type")]
    pub event_type: Option<String>,
    /// Only answers with this status, such as `503`, or of this class, such as `5xx`.
    pub status: Option<String>,
    /// Only requests with this `webhook-id`.
    pub webhook_id: Option<String>,
    /// Only records of this time or later.
    #[param(value_type = Option<String>, format = DateTime)]
    pub from: Option<String>,
    /// Only records before this time.
    #[param(value_type = Option<String>, format = DateTime)]
    pub to: Option<String>,
    /// Most records on the page. 100 when left out.
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<usize>,
    /// The beginning of the page: the `cursor` of the page before.
    pub cursor: Option<String>,
}

impl EventQuery {
    /// The id that is asked for, which the path has where the query does not.
    pub fn event_id(&self, of_path: String) -> String {
        let encoded = self.id64.as_ref().map(|id| id.0.clone());
        encoded.or_else(|| self.id.clone()).unwrap_or(of_path)
    }

    /// The look-up of an event of a topic.
    pub fn look_up(&self, topic: &TopicName, id: &str, now: Timestamp) -> RecordLookup {
        let (from, to) = WrittenTime::resolve_period(self.from, self.to, now);
        RecordLookup {
            topic: Some(topic.folded()),
            event_id: Some(log_text(id)),
            from,
            to,
            ..RecordLookup::default()
        }
    }
}

impl RecordQuery {
    /// The filter of a list of a topic's records, or every mistake in the query.
    pub fn to_filter(
        &self,
        topic: &TopicName,
        now: Timestamp,
    ) -> Result<RecordFilter, Vec<InputMistake>> {
        let mut mistakes = QueryMistakes::default();
        let filter = RecordFilter {
            topic: Some(topic.folded()),
            subscription: mistakes.parse_parameter(
                "subscription",
                self.subscription.as_deref(),
                parse_subscription,
            ),
            result: mistakes.parse_parameter("result", self.result.as_deref(), parse_result),
            event_type: self.event_type.as_deref().map(log_text),
            status: mistakes.parse_parameter("status", self.status.as_deref(), parse_status),
            webhook_id: self.webhook_id.clone(),
            without_payload: true,
            ..RecordFilter::default()
        };
        let from = mistakes.parse_parameter("from", self.from.as_deref(), WrittenTime::parse);
        let to = mistakes.parse_parameter("to", self.to.as_deref(), WrittenTime::parse);
        let (from, to) = WrittenTime::resolve_period(from, to, now);
        let filter = RecordFilter { from, to, ..filter };
        if filter
            .from
            .is_some_and(|from| filter.to.is_some_and(|to| to <= from))
        {
            mistakes.add("to", "expected a time after `from`");
        }
        if mistakes.0.is_empty() {
            Ok(filter)
        } else {
            Err(mistakes.0)
        }
    }
}

#[derive(Default)]
struct QueryMistakes(Vec<InputMistake>);

impl QueryMistakes {
    /// Reads a parameter, if it is there.
    fn parse_parameter<T, E: Display>(
        &mut self,
        member: &str,
        text: Option<&str>,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Option<T> {
        read(text?).map_err(|error| self.add(member, error)).ok()
    }

    fn add(&mut self, member: &str, text: impl Display) {
        self.0.push(InputMistake {
            member: member.to_owned(),
            is_at_name: false,
            text: text.to_string(),
        });
    }
}

fn parse_subscription(text: &str) -> Result<String, String> {
    SubscriptionName::parse(text)
        .map(|name| name.folded())
        .map_err(|error| error.to_string())
}

fn parse_result(text: &str) -> Result<LogResult, String> {
    match LogResult::parse(text) {
        LogResult::Unknown => {
            let words: Vec<_> = LogResult::ALL
                .iter()
                .map(|word| format!("`{}`", word.as_str()))
                .collect();
            Err(format!("expected one of {}", words.join(", ")))
        }
        result => Ok(result),
    }
}

fn parse_status(text: &str) -> Result<StatusRange, &'static str> {
    StatusRange::parse(text).ok_or("expected a status such as `503`, or a class such as `5xx`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn orders() -> TopicName {
        TopicName::parse("Orders").unwrap()
    }

    fn now() -> Timestamp {
        Timestamp::parse("2026-11-21T15:30:00Z").unwrap()
    }

    #[test]
    fn times_of_a_query_may_be_relative_to_now() {
        let check = |from: &str, to: &str, expected: [&str; 2]| {
            let query = RecordQuery {
                from: Some(from.into()),
                to: Some(to.into()),
                ..RecordQuery::default()
            };
            let filter = query.to_filter(&orders(), now()).unwrap();
            let found = [filter.from, filter.to].map(|time| time.unwrap().to_string());
            assert_eq!(
                found,
                expected.map(|time| format!("2026-11-{time}:00.000Z"))
            );
        };
        check("1h", "15:00", ["21T14:30", "21T15:00"]);
        check("yesterday", "today", ["20T00:00", "21T00:00"]);
        check("2026-11-21T10:00:00 01:00", "10m", ["21T09:00", "21T15:20"]);
    }

    #[test]
    fn a_query_becomes_a_filter() {
        let query = RecordQuery {
            subscription: Some("Billing".into()),
            result: Some("dead-lettered".into()),
            event_type: Some("order.paid".into()),
            status: Some("5xx".into()),
            webhook_id: Some("msg_1".into()),
            from: Some("2026-11-21T10:00:00Z".into()),
            to: Some("2026-11-21T12:00:00+01:00".into()),
            ..RecordQuery::default()
        };
        let at = |time: &str| Some(Timestamp::parse(time).unwrap());
        let filter = RecordFilter {
            topic: Some("orders".into()),
            subscription: Some("billing".into()),
            result: Some(LogResult::DeadLettered),
            event_type: Some("order.paid".into()),
            status: StatusRange::parse("5xx"),
            webhook_id: Some("msg_1".into()),
            from: at("2026-11-21T10:00:00Z"),
            to: at("2026-11-21T11:00:00Z"),
            without_payload: true,
            ..RecordFilter::default()
        };
        assert_eq!(query.to_filter(&orders(), now()), Ok(filter));
    }

    #[test]
    fn every_mistake_is_named() {
        let query = RecordQuery {
            subscription: Some("a/b".into()),
            result: Some("Delivered".into()),
            status: Some("many".into()),
            from: Some("tomorrow".into()),
            to: Some(String::new()),
            ..RecordQuery::default()
        };
        let mistakes = query.to_filter(&orders(), now()).unwrap_err();
        let members: Vec<_> = mistakes
            .iter()
            .map(|mistake| mistake.member.as_str())
            .collect();
        assert_eq!(members, ["subscription", "result", "status", "from", "to"]);
        let words = "expected one of `delivered`, `pending`, `unmatched`, `retry`, `held`, `dead-lettered`, `dropped`";
        assert_eq!(mistakes[1].text, words);
    }

    #[test]
    fn a_time_that_ends_before_it_begins_is_a_mistake() {
        let at = Some("2026-11-21T10:00:00Z".into());
        let query = RecordQuery {
            from: at.clone(),
            to: at,
            ..RecordQuery::default()
        };
        let mistakes = query.to_filter(&orders(), now()).unwrap_err();
        assert_eq!((mistakes.len(), mistakes[0].member.as_str()), (1, "to"));
    }

    #[test]
    fn an_id_is_looked_for_as_the_log_keeps_it() {
        let query = EventQuery {
            from: Some(Timestamp::EPOCH.into()),
            to: Some(now().into()),
            ..EventQuery::default()
        };
        let look_up = query.look_up(&orders(), &"ü".repeat(2_000), now());
        assert_eq!(look_up.topic, Some("orders".into()));
        assert_eq!(look_up.event_id.unwrap().chars().count(), 1_024);
        let period = (Some(Timestamp::EPOCH), Some(now()));
        assert_eq!((look_up.from, look_up.to), period);
    }
}
