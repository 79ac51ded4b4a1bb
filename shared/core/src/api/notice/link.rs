//! The notice about a link, or a subscription on it, that is down or up again.

use super::envelope::NoticeEnvelope;
use crate::api::LinkView;
use crate::circuit::{DeliveryTarget, StateChange, TargetCondition};
use crate::events::{Event, EventError};
use crate::model::EventSchema;

/// The type of a notice about a link, or a subscription on it, that is down.
pub const LINK_DOWN: &str = "dev.posthaste.link.down";

/// The type of a notice about one that is up again.
pub const LINK_UP: &str = "dev.posthaste.link.up";

/// The path of `GET /links`, which is the `source` of their notices.
const SOURCE: &str = "/links";

/// A link, or a subscription on it, is down or up again.
#[derive(Debug, Clone, Copy)]
pub struct LinkNotice<'a> {
    /// The link or subscription.
    pub target: &'a DeliveryTarget,
    /// The condition it is in.
    pub condition: &'a TargetCondition,
    /// The change that the notice tells.
    pub news: StateChange,
}

impl LinkNotice<'_> {
    pub(super) fn render_event(&self, schema: EventSchema) -> Result<Event, EventError> {
        let (event_type, word) = match self.news {
            StateChange::Down => (LINK_DOWN, "down"),
            StateChange::Up => (LINK_UP, "up"),
        };
        let since = self.condition.since;
        let link = self.target.link();
        let failing_since = self.condition.failing_since;
        let target = match self.target {
            DeliveryTarget::Link(_) => link.to_string(),
            DeliveryTarget::Subscription { topic, name, .. } => format!("{topic}/{name} at {link}"),
        };
        let text = match self.news {
            StateChange::Down => format!("{target} is down. It fails since {failing_since}."),
            StateChange::Up => format!("{target} is up again since {since}."),
        };
        let envelope = NoticeEnvelope {
            // A phase begins once at a time.
            id: format!(
                "link.{}.{word}.{}",
                self.target.to_string().replace(' ', "."),
                since.as_millis()
            ),
            event_type,
            source: SOURCE.to_owned(),
            subject: target_subject(self.target),
            at: since,
            traceparent: None,
            text,
        };
        // The members are those of `GET /links`, so that a program reads both alike.
        envelope.with_data(&LinkView::for_target(self.target, self.condition), schema)
    }
}

/// The subject. It begins with the link, so that a subscription to notices can filter by it.
fn target_subject(target: &DeliveryTarget) -> String {
    match target {
        DeliveryTarget::Link(link) => format!("{SOURCE}/{link}"),
        DeliveryTarget::Subscription { link, topic, name } => {
            format!(
                "{SOURCE}/{link}{}",
                super::envelope::subscription_path(topic, name)
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::notice::Notice;
    use crate::circuit::{RequestFailure, TargetPhase};
    use crate::model::{OutcomeName, Timestamp};
    use serde_json::{Value, json};
    use std::time::Duration;

    fn condition() -> TargetCondition {
        let since = Timestamp::from_millis(1_700_000_000_000);
        TargetCondition {
            phase: TargetPhase::Retry,
            since,
            failing_since: since,
            hold: 1,
            until: since + Duration::from_mins(10),
            failures: 13,
            last: RequestFailure {
                outcome: OutcomeName::Busy,
                status: Some(503),
            },
            probe: None,
            told_down: false,
            asked: false,
            forced: false,
            refused: false,
        }
    }

    fn told(target: &str, condition: &TargetCondition, news: StateChange) -> Value {
        let target = DeliveryTarget::parse(target).unwrap();
        let changed = LinkNotice {
            target: &target,
            condition,
            news,
        };
        serde_json::from_slice(
            Notice::Link(changed)
                .render_event(EventSchema::CloudEvents)
                .unwrap()
                .json(),
        )
        .unwrap()
    }

    #[test]
    fn link_notice_shows_everything_known_of_the_link() {
        let expected = json!({
            "specversion": "1.0", "id": "link.https://a.example:443.down.1700000000000", "source": "/links",
            "type": "dev.posthaste.link.down", "subject": "/links/https://a.example:443",
            "time": "2023-11-14T22:13:20.000Z", "datacontenttype": "application/json",
            "data": {
                "text": "https://a.example:443 is down. It fails since 2023-11-14T22:13:20.000Z.",
                "link": "https://a.example:443", "scope": "link", "state": "retry",
                "since": "2023-11-14T22:13:20.000Z", "failingSince": "2023-11-14T22:13:20.000Z",
                "failures": 13, "lastOutcome": "Busy", "lastHttpStatusCode": 503,
                "nextProbe": "2023-11-14T22:23:20.000Z",
            },
        });
        assert_eq!(
            told("https://a.example:443", &condition(), StateChange::Down),
            expected
        );
    }

    /// Notice about one subscription on a link names that subscription.
    #[test]
    fn subscription_notice_names_topic_and_subscription() {
        let up = TargetCondition {
            phase: TargetPhase::Recovering,
            ..condition()
        };
        let notice = told("https://a.example:443 orders.billing", &up, StateChange::Up);
        let expected = json!({
            "text": "orders/billing at https://a.example:443 is up again since 2023-11-14T22:13:20.000Z.",
            "link": "https://a.example:443", "scope": "subscription", "topic": "orders",
            "subscription": "billing", "state": "recovering", "since": "2023-11-14T22:13:20.000Z",
            "failingSince": "2023-11-14T22:13:20.000Z", "failures": 13, "lastOutcome": "Busy",
            "lastHttpStatusCode": 503,
        });
        assert_eq!(notice["data"], expected);
        assert_eq!(notice["type"], "dev.posthaste.link.up");
        assert_eq!(
            notice["id"],
            "link.https://a.example:443.orders.billing.up.1700000000000"
        );
        assert_eq!(
            notice["subject"],
            "/links/https://a.example:443/topics/orders/subscriptions/billing"
        );
    }
}
