//! The notices about health: a subscription or a link is failing, or is healthy again, an event is
//! late, and what a disabled subscription misses will soon be skipped.

use serde::Serialize;

use super::envelope::{NoticeEnvelope, subscription_path};
use crate::events::{Event, EventError};
use crate::health::{
    ArrivalShare, DelayedEvent, HealthState, LinkIncident, MissedEnd, MissedEvents,
    SubscriptionIncident, SubscriptionTries,
};
use crate::model::time::format_duration;
use crate::model::{EventSchema, OutcomeName, SubscriptionName, TopicName};

/// The type of a notice about a subscription at which too few events arrive.
pub const SUBSCRIPTION_FAILING: &str = "dev.posthaste.subscription.failing";

/// The type of a notice about one at which they arrive again.
pub const SUBSCRIPTION_RECOVERED: &str = "dev.posthaste.subscription.recovered";

/// The type of a notice about a link whose subscriptions are failing.
pub const LINK_FAILING: &str = "dev.posthaste.link.failing";

/// The type of a notice about one that is well again.
pub const LINK_RECOVERED: &str = "dev.posthaste.link.recovered";

/// The type of a notice about an event that has been undelivered for too long.
pub const DELIVERY_DELAYED: &str = "dev.posthaste.delivery.delayed";

/// The type of a notice that what a disabled subscription misses will soon be skipped.
pub const SUBSCRIPTION_SKIPPING: &str = "dev.posthaste.subscription.skipping";

/// Most subscriptions of a link that a notice names. It has the number of all.
pub const NAMED_SUBSCRIPTIONS_MAX: usize = 20;

/// The path of `GET /links`, which is the `source` of notices about links.
const LINKS: &str = "/links";

/// A subscription is failing, or is healthy again.
#[derive(Debug, Clone, Copy)]
pub struct SubscriptionNews<'a> {
    /// The topic it is on.
    pub topic: &'a TopicName,
    /// The name of the subscription.
    pub subscription: &'a SubscriptionName,
    /// The link of its endpoint.
    pub link: &'a str,
    /// The state of the subscription.
    pub state: HealthState,
    /// The incident.
    pub incident: &'a SubscriptionIncident,
    /// The tries of the subscription.
    pub tries: &'a SubscriptionTries,
    /// The share of them that is measured.
    pub share: ArrivalShare,
}

/// A link is failing, or is well again.
#[derive(Debug, Clone, Copy)]
pub struct LinkNews<'a> {
    /// The link.
    pub link: &'a str,
    /// The incident.
    pub incident: &'a LinkIncident,
    /// The number of active subscriptions on it, of the topics that the addressee is told of.
    pub subscriptions: usize,
    /// The first of them.
    pub named: &'a [(TopicName, SubscriptionName)],
}

/// An event has been undelivered for too long.
#[derive(Debug, Clone, Copy)]
pub struct DelayNews<'a> {
    /// The topic it was published to.
    pub topic: &'a TopicName,
    /// The subscription that it goes to.
    pub subscription: &'a SubscriptionName,
    /// The event.
    pub delayed: DelayedEvent,
    /// The tries of the subscription.
    pub tries: &'a SubscriptionTries,
    /// The age of which the operator is told.
    pub after: std::time::Duration,
}

/// News that the events missed by a disabled subscription will soon be skipped.
#[derive(Debug, Clone, Copy)]
pub struct MissedNews<'a> {
    /// The topic it is on.
    pub topic: &'a TopicName,
    /// The name of the subscription.
    pub subscription: &'a SubscriptionName,
    /// The end of keeping it.
    pub end: MissedEnd,
    /// The events that were kept.
    pub missed: &'a MissedEvents,
}

/// News of health.
#[derive(Debug, Clone, Copy)]
pub enum HealthNews<'a> {
    /// A subscription.
    Subscription(SubscriptionNews<'a>),
    /// A link.
    Link(LinkNews<'a>),
    /// An event.
    Delay(DelayNews<'a>),
    /// News about the events that a disabled subscription misses.
    Missed(MissedNews<'a>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SubscriptionData<'a> {
    topic: &'a TopicName,
    subscription: &'a SubscriptionName,
    link: &'a str,
    state: HealthState,
    since: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    recovered_at: Option<String>,
    failed_in_row: u32,
    tried: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    arrived_percent: Option<u8>,
    #[serde(flatten)]
    last: LastTries,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LinkData<'a> {
    link: &'a str,
    since: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    recovered_at: Option<String>,
    subscription_count: usize,
    subscriptions: Vec<NamedSubscription<'a>>,
}

#[derive(Serialize)]
struct NamedSubscription<'a> {
    topic: &'a TopicName,
    subscription: &'a SubscriptionName,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DelayData<'a> {
    topic: &'a TopicName,
    subscription: &'a SubscriptionName,
    accepted_at: String,
    delayed_after: String,
    #[serde(flatten)]
    last: LastTries,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MissedData<'a> {
    topic: &'a TopicName,
    subscription: &'a SubscriptionName,
    disabled_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped_from: Option<String>,
    little_room: bool,
    kept_events: u64,
    kept_bytes: u64,
}

/// The ends of the last tries.
#[derive(Serialize)]
struct LastTries {
    #[serde(rename = "lastFailureAt", skip_serializing_if = "Option::is_none")]
    failure_at: Option<String>,
    #[serde(rename = "lastOutcome", skip_serializing_if = "Option::is_none")]
    outcome: Option<OutcomeName>,
    #[serde(rename = "lastHttpStatusCode", skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(rename = "lastArrivedAt", skip_serializing_if = "Option::is_none")]
    arrived_at: Option<String>,
}

impl LastTries {
    fn from_tries(tries: &SubscriptionTries) -> Self {
        let failure = tries.last_failure();
        Self {
            failure_at: failure.map(|failure| failure.at.to_string()),
            outcome: failure.and_then(|failure| failure.outcome),
            status: failure.and_then(|failure| failure.status),
            arrived_at: tries.last_arrived_at().map(|at| at.to_string()),
        }
    }

    /// The last failure in words, behind a sentence.
    fn last_failure_text(&self) -> String {
        match (self.outcome, self.status) {
            (Some(outcome), Some(status)) => format!(" The last answer was {status} ({outcome})."),
            (None, Some(status)) => format!(" The last answer was {status}."),
            (Some(outcome), None) => format!(" The last failure was {outcome}."),
            (None, None) => String::new(),
        }
    }
}

impl HealthNews<'_> {
    pub(super) fn render_event(&self, schema: EventSchema) -> Result<Event, EventError> {
        match self {
            Self::Subscription(news) => news.render_event(schema),
            Self::Link(news) => news.render_event(schema),
            Self::Delay(news) => news.render_event(schema),
            Self::Missed(news) => news.render_event(schema),
        }
    }
}

impl SubscriptionNews<'_> {
    fn render_event(&self, schema: EventSchema) -> Result<Event, EventError> {
        let topic = self.topic;
        let subscription = self.subscription;
        let since = self.incident.since;
        let recovered_at = self.incident.recovered_at;
        let (event_type, word) = match recovered_at {
            None => (SUBSCRIPTION_FAILING, "failing"),
            Some(_) => (SUBSCRIPTION_RECOVERED, "recovered"),
        };
        let last = LastTries::from_tries(self.tries);
        let name = format!("{topic}/{subscription}");
        let text = match (recovered_at, self.share.arrived_percent()) {
            (Some(at), _) => {
                format!("{name} is healthy again since {at}. It was failing since {since}.")
            }
            (None, Some(percent)) => format!(
                "{name} is {}: {percent} % of its last {} tries arrived. It fails since {since}.{}",
                self.state,
                self.share.tries(),
                last.last_failure_text()
            ),
            (None, None) => format!(
                "{name} is {} since {since}.{}",
                self.state,
                last.last_failure_text()
            ),
        };
        let envelope = NoticeEnvelope {
            // An incident begins once at a time.
            id: format!(
                "{}.{}.{word}.{}",
                topic.folded(),
                subscription.folded(),
                since.as_millis()
            ),
            event_type,
            source: subscription_path(topic, subscription),
            subject: subscription_path(topic, subscription),
            at: recovered_at.unwrap_or(since),
            traceparent: None,
            text,
        };
        let data = SubscriptionData {
            topic,
            subscription,
            link: self.link,
            state: self.state,
            since: since.to_string(),
            recovered_at: recovered_at.map(|at| at.to_string()),
            failed_in_row: self.tries.in_row(),
            tried: self.share.tries(),
            arrived_percent: self.share.arrived_percent(),
            last,
        };
        envelope.with_data(&data, schema)
    }
}

impl LinkNews<'_> {
    fn render_event(&self, schema: EventSchema) -> Result<Event, EventError> {
        let LinkIncident {
            since,
            recovered_at,
            ..
        } = *self.incident;
        let (event_type, word) = match recovered_at {
            None => (LINK_FAILING, "failing"),
            Some(_) => (LINK_RECOVERED, "recovered"),
        };
        let link = self.link;
        let count = self.subscriptions;
        let text = match recovered_at {
            None => format!("{link} is failing since {since}, with {count} subscriptions."),
            Some(at) => format!(
                "{link}, with {count} subscriptions, is well again since {at}. It was failing since {since}."
            ),
        };
        let envelope = NoticeEnvelope {
            id: format!("link.{link}.{word}.{}", since.as_millis()),
            event_type,
            source: LINKS.to_owned(),
            subject: format!("{LINKS}/{link}"),
            at: recovered_at.unwrap_or(since),
            traceparent: None,
            text,
        };
        let named = self.named.iter().take(NAMED_SUBSCRIPTIONS_MAX);
        let named = named.map(|(topic, subscription)| NamedSubscription {
            topic,
            subscription,
        });
        let data = LinkData {
            link,
            since: since.to_string(),
            recovered_at: recovered_at.map(|at| at.to_string()),
            subscription_count: count,
            subscriptions: named.collect(),
        };
        envelope.with_data(&data, schema)
    }
}

impl DelayNews<'_> {
    fn render_event(&self, schema: EventSchema) -> Result<Event, EventError> {
        let topic = self.topic;
        let subscription = self.subscription;
        let accepted_at = self.delayed.accepted_at;
        let after = format_duration(self.after);
        let last = LastTries::from_tries(self.tries);
        let text = format!(
            "An event of {topic}/{subscription} that was accepted at {accepted_at} is not delivered \
                yet, after more than {after}.{}",
            last.last_failure_text()
        );
        let envelope = NoticeEnvelope {
            id: format!(
                "{}.{}.delayed.{}",
                topic.folded(),
                subscription.folded(),
                accepted_at.as_millis()
            ),
            event_type: DELIVERY_DELAYED,
            source: subscription_path(topic, subscription),
            subject: subscription_path(topic, subscription),
            at: accepted_at + self.after,
            traceparent: None,
            text,
        };
        let data = DelayData {
            topic,
            subscription,
            accepted_at: accepted_at.to_string(),
            delayed_after: after,
            last,
        };
        envelope.with_data(&data, schema)
    }
}

impl MissedNews<'_> {
    fn render_event(&self, schema: EventSchema) -> Result<Event, EventError> {
        let topic = self.topic;
        let subscription = self.subscription;
        let MissedEnd {
            disabled_at,
            found_at,
            at,
            by_room,
            ..
        } = self.end;
        let MissedEvents { events, bytes, .. } = *self.missed;
        let room = "while there is room, which is nearly used up";
        let end = match at {
            Some(at) if by_room => format!("{room}, and until {at} at the latest"),
            Some(at) => format!("until {at}"),
            None => room.to_owned(),
        };
        let text = format!(
            "{topic}/{subscription} is disabled since {disabled_at}. The events that it misses become \
                dead letters {end}, and are skipped from then on. So far they are {events}."
        );
        let topic_id = topic.folded();
        let subscription_id = subscription.folded();
        let envelope = NoticeEnvelope {
            // A subscription is disabled once at a time, and may come near both ends.
            id: format!(
                "{topic_id}.{subscription_id}.skipping.{}{}",
                disabled_at.as_millis(),
                if by_room { ".room" } else { "" }
            ),
            event_type: SUBSCRIPTION_SKIPPING,
            source: subscription_path(topic, subscription),
            subject: subscription_path(topic, subscription),
            at: found_at,
            traceparent: None,
            text,
        };
        let data = MissedData {
            topic,
            subscription,
            disabled_at: disabled_at.to_string(),
            skipped_from: at.map(|at| at.to_string()),
            little_room: by_room,
            kept_events: events,
            kept_bytes: bytes,
        };
        envelope.with_data(&data, schema)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::notice::Notice;
    use crate::health::{SeenTry, TryResult};
    use crate::model::Timestamp;
    use serde_json::{Value, json};
    use std::time::Duration;

    const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    fn refused() -> SubscriptionTries {
        let mut tries = SubscriptionTries::default();
        tries.add_try(&SeenTry {
            key: "a",
            accepted_at: START,
            at: START,
            is_first: true,
            result: TryResult::Failed {
                outcome: Some(OutcomeName::Unauthorized),
                status: Some(401),
                is_last: true,
            },
        });
        tries
    }

    fn told(news: HealthNews<'_>) -> Value {
        let event = Notice::Health(news)
            .render_event(EventSchema::CloudEvents)
            .unwrap();
        serde_json::from_slice(event.json()).unwrap()
    }

    fn orders_billing() -> (TopicName, SubscriptionName) {
        (
            TopicName::parse("Orders").unwrap(),
            SubscriptionName::parse("billing").unwrap(),
        )
    }

    /// Notice of a failing subscription has its share of arrivals and its last response.
    #[test]
    fn failing_subscription_notice_has_share_and_last_response() {
        let (topic, subscription) = orders_billing();
        let tries = refused();
        let news = |incident| {
            told(HealthNews::Subscription(SubscriptionNews {
                topic: &topic,
                subscription: &subscription,
                link: "https://a.example:443",
                state: HealthState::Down,
                incident,
                tries: &tries,
                share: ArrivalShare {
                    arrived: 0,
                    failed: 10,
                    from: Some(START),
                },
            }))
        };
        let incident = SubscriptionIncident {
            since: START,
            link: None,
            told: false,
            recovered_at: None,
        };
        let failing = news(&incident);
        assert_eq!(failing["id"], "orders.billing.failing.1700000000000");
        assert_eq!(failing["type"], SUBSCRIPTION_FAILING);
        assert_eq!(failing["subject"], "/topics/Orders/subscriptions/billing");
        let expected = json!({
            "text": "Orders/billing is down: 0 % of its last 10 tries arrived. It fails since \
                2023-11-14T22:13:20.000Z. The last answer was 401 (Unauthorized).",
            "topic": "Orders", "subscription": "billing", "link": "https://a.example:443", "state": "down",
            "since": "2023-11-14T22:13:20.000Z", "failedInRow": 1, "tried": 10, "arrivedPercent": 0,
            "lastFailureAt": "2023-11-14T22:13:20.000Z", "lastOutcome": "Unauthorized",
            "lastHttpStatusCode": 401,
        });
        assert_eq!(failing["data"], expected);
        let recovered = news(&SubscriptionIncident {
            recovered_at: Some(START + Duration::from_mins(5)),
            ..incident.clone()
        });
        assert_eq!(recovered["id"], "orders.billing.recovered.1700000000000");
        assert_eq!(recovered["time"], "2023-11-14T22:18:20.000Z");
        assert_eq!(recovered["data"]["recoveredAt"], "2023-11-14T22:18:20.000Z");
    }

    #[test]
    fn notice_of_a_link_names_twenty_subscriptions_and_counts_all() {
        let hundred: Vec<_> = (0..100)
            .map(|n| {
                let name = SubscriptionName::parse(&format!("s{n}")).unwrap();
                (orders_billing().0, name)
            })
            .collect();
        let of_link = told(HealthNews::Link(LinkNews {
            link: "https://a.example:443",
            incident: &LinkIncident {
                since: START,
                is_of_circuit: true,
                told: false,
                recovered_at: None,
            },
            subscriptions: 100,
            named: &hundred,
        }));
        assert_eq!(of_link["type"], LINK_FAILING);
        assert_eq!(of_link["data"]["subscriptionCount"], 100);
        let names = of_link["data"]["subscriptions"].as_array().unwrap();
        assert_eq!(names.len(), NAMED_SUBSCRIPTIONS_MAX);
        assert_eq!(
            names[19],
            json!({ "topic": "Orders", "subscription": "s19" })
        );
    }

    #[test]
    fn notice_of_missed_events_says_from_when_on_they_are_skipped() {
        let (topic, subscription) = orders_billing();
        let notice = |at, by_room| {
            told(HealthNews::Missed(MissedNews {
                topic: &topic,
                subscription: &subscription,
                end: MissedEnd {
                    disabled_at: START,
                    found_at: START + Duration::from_hours(24),
                    at,
                    by_room,
                    told: false,
                },
                missed: &MissedEvents {
                    events: 100,
                    bytes: 50_000,
                    ..MissedEvents::default()
                },
            }))
        };
        let end = START + Duration::from_hours(48);
        let by_time = notice(Some(end), false);
        assert_eq!(by_time["id"], "orders.billing.skipping.1700000000000");
        assert_eq!(by_time["type"], SUBSCRIPTION_SKIPPING);
        assert_eq!(by_time["time"], "2023-11-15T22:13:20.000Z");
        let expected = json!({
            "text": "Orders/billing is disabled since 2023-11-14T22:13:20.000Z. The events that it \
                misses become dead letters until 2023-11-16T22:13:20.000Z, and are skipped from then on. \
                So far they are 100.",
            "topic": "Orders", "subscription": "billing", "disabledAt": "2023-11-14T22:13:20.000Z",
            "skippedFrom": "2023-11-16T22:13:20.000Z", "littleRoom": false, "keptEvents": 100,
            "keptBytes": 50_000,
        });
        assert_eq!(by_time["data"], expected);
        let by_room = notice(None, true);
        assert_eq!(by_room["data"]["skippedFrom"], Value::Null);
        let text = by_room["data"]["text"].as_str().unwrap();
        assert!(text.contains("while there is room, which is nearly used up, and are skipped"));
        let by_both = notice(Some(end), true);
        assert_eq!(by_both["id"], "orders.billing.skipping.1700000000000.room");
        assert_eq!(by_both["data"]["skippedFrom"], "2023-11-16T22:13:20.000Z");
        assert_eq!(by_both["data"]["littleRoom"], true);
        let text = by_both["data"]["text"].as_str().unwrap();
        assert!(text.contains("nearly used up, and until 2023-11-16T22:13:20.000Z at the latest"));
    }

    #[test]
    fn notice_of_a_late_event_says_since_when_it_waits() {
        let (topic, subscription) = orders_billing();
        let notice = told(HealthNews::Delay(DelayNews {
            topic: &topic,
            subscription: &subscription,
            delayed: DelayedEvent {
                accepted_at: START,
                told: false,
            },
            tries: &refused(),
            after: Duration::from_hours(1),
        }));
        assert_eq!(notice["id"], "orders.billing.delayed.1700000000000");
        assert_eq!(notice["time"], "2023-11-14T23:13:20.000Z");
        assert_eq!(notice["data"]["acceptedAt"], "2023-11-14T22:13:20.000Z");
        assert_eq!(notice["data"]["delayedAfter"], "PT1H");
    }
}
