//! Work that a write of a topic's record begins outside of the record. It is written down before
//! the record, so that what a request cannot do any more is done by others.

use crate::api::edit::is_corrected;
use crate::api::{StatusState, StatusView, TopicSettings};
use crate::model::{SubscriptionName, Timestamp, TopicName};
use crate::stored::DisabledMark;

/// The work.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BegunWork {
    /// Whether endpoints are to be asked for their consent.
    pub asks_endpoints: bool,
    /// Subscriptions whose holds are to end, and whose events are to go out: an operator wants them
    /// to be delivered now.
    pub forced: Vec<SubscriptionName>,
    /// Subscriptions that operators disabled, of which their topic is notified.
    pub disabled: Vec<DisabledMark>,
}

impl BegunWork {
    /// The work that a write of `next` in the place of `present` begins.
    pub fn from_write(
        topic: &TopicName,
        present: Option<&TopicSettings>,
        next: &TopicSettings,
        now: Timestamp,
    ) -> Self {
        let mut work = Self::default();
        for (name, settings) in &next.subscriptions {
            let status = settings.status.as_ref();
            let handshake = status.and_then(|status| status.handshake.as_ref());
            work.asks_endpoints |= handshake.is_some_and(|handshake| {
                handshake.code_to_ask_with().is_some() && handshake.expires_at.0 > now
            });
            let Some(before) = present.and_then(|present| present.subscriptions.get(name)) else {
                continue;
            };
            let was = state_at(before.status.as_ref(), now);
            let is = state_at(status, now);
            let is_resumed = !may_deliver(was) && may_deliver(is);
            if is_resumed || (may_deliver(is) && is_corrected(Some(before), settings)) {
                work.forced.push(name.clone());
            }
            if was != StatusState::Disabled && is == StatusState::Disabled {
                work.disabled.extend(disabled_mark(topic, name, status));
            }
        }
        work
    }
}

fn state_at(status: Option<&StatusView>, now: Timestamp) -> StatusState {
    status.map_or(StatusState::Active, |status| status.effective_at(now).state)
}

/// Whether events go out in this state, or will as soon as the endpoint consents.
fn may_deliver(state: StatusState) -> bool {
    matches!(state, StatusState::Active | StatusState::Pending)
}

fn disabled_mark(
    topic: &TopicName,
    name: &SubscriptionName,
    status: Option<&StatusView>,
) -> Option<DisabledMark> {
    let status = status?;
    Some(DisabledMark {
        topic: topic.clone(),
        subscription: name.clone(),
        reason: status.reason.clone()?,
        since: status.since.0,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: &str = "2026-11-21T10:00:00Z";

    fn settings(state: &str, url: &str, handshake: bool) -> TopicSettings {
        let mut status = json!({ "state": state, "reason": "why", "since": NOW });
        if handshake {
            status["handshake"] = json!({ "code": "c", "expiresAt": "2026-11-21T10:10:00Z" });
        }
        let subscription = json!({ "endpoint": { "url": url }, "status": status });
        serde_json::from_value(json!({ "subscriptions": { "Billing": subscription } })).unwrap()
    }

    fn begun(present: Option<&TopicSettings>, next: &TopicSettings) -> (bool, usize, usize) {
        let topic = TopicName::parse("orders").unwrap();
        let now = Timestamp::parse(NOW).unwrap();
        let work = BegunWork::from_write(&topic, present, next, now);
        (work.asks_endpoints, work.forced.len(), work.disabled.len())
    }

    #[test]
    fn write_begins_the_work_that_its_states_ask_for() {
        let of = |state| settings(state, "https://a.example/x", false);
        let asked = |state| settings(state, "https://a.example/x", true);
        let active = of("Active");
        let paused = of("Paused");
        let disabled = of("Disabled");
        assert_eq!(begun(None, &active), (false, 0, 0));
        assert_eq!(begun(None, &asked("Pending")), (true, 0, 0));
        for stopped in [&paused, &disabled, &of("Failed")] {
            assert_eq!(begun(Some(stopped), &active), (false, 1, 0));
            assert_eq!(begun(Some(stopped), &asked("Pending")), (true, 1, 0));
        }
        assert_eq!(begun(Some(&active), &active), (false, 0, 0));
        assert_eq!(begun(Some(&active), &paused), (false, 0, 0));
        assert_eq!(begun(Some(&paused), &disabled), (false, 0, 1));
        assert_eq!(begun(Some(&disabled), &disabled), (false, 0, 0));
    }

    #[test]
    fn another_path_on_the_same_link_ends_a_hold() {
        let of = |url| settings("Active", url, false);
        let present = of("https://a.example/x");
        assert_eq!(
            begun(Some(&present), &of("https://a.example/y")),
            (false, 1, 0)
        );
        assert_eq!(
            begun(Some(&present), &of("https://b.example/x")),
            (false, 0, 0)
        );
    }

    #[test]
    fn other_requests_to_the_same_endpoint_end_a_hold() {
        let of = |token: &str| {
            let mut settings = settings("Active", "https://a.example/x", false);
            let header = json!([{ "name": "x-token", "value": token }]);
            for subscription in settings.subscriptions.values_mut() {
                subscription.delivery_headers = serde_json::from_value(header.clone()).unwrap();
            }
            settings
        };
        assert_eq!(begun(Some(&of("old")), &of("new")), (false, 1, 0));
        assert_eq!(begun(Some(&of("old")), &of("old")), (false, 0, 0));
    }
}
