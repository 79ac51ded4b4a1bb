//! `apply --dry-run`: what the files would change, without a write. The server is only read; the
//! rules of its writes are those of the core.

use posthaste_core::api::TopicSettings;
use posthaste_core::api::edit::preview_topic;
use posthaste_core::api::problem::ApiProblem;
use posthaste_core::model::{Timestamp, TopicName};
use posthaste_ports::Clock;
use posthaste_system::SystemClock;
use serde::Deserialize;
use serde_json::{Value, json};

use super::changes::{Applied, AppliedEntity};
use super::file::Wanted;
use super::keys;
use super::server::Present;
use crate::commands::session::Session;
use crate::error::{CommandError, Failure};

/// Error of a write that the server would refuse.
#[derive(Debug, thiserror::Error)]
#[error("the server would refuse the topic {topic}\n  member: {member}\n  reason: {reason}")]
pub(super) struct WouldRefuse {
    topic: TopicName,
    /// Member at fault.
    member: String,
    reason: String,
}

impl Failure for WouldRefuse {
    fn exit_code(&self) -> Option<u8> {
        Some(3)
    }
}

/// Adds what putting a topic now would change.
pub(super) fn add(
    session: &Session,
    present: &Present,
    wanted: Wanted<'_>,
    planned: &mut Applied,
) -> Result<(), CommandError> {
    let name = wanted.name;
    let view = present.view(session, name)?;
    let written = &wanted.settings(view.as_ref())?;
    let present = view.map(|view| view.settings(session)).transpose()?;
    planned.add_preview(name, written, present.as_ref(), SystemClock.now())?;
    if present.is_some() {
        planned.add_key_changes(name, &keys::changes(session, name, written)?);
    }
    Ok(())
}

/// Whether a write of the topic at `now` would change nothing, not even when it was last used.
pub(super) fn is_as_written(
    name: &TopicName,
    written: &TopicSettings,
    present: &Value,
    now: Timestamp,
) -> bool {
    let of_subscriptions = written.subscriptions.values();
    let mut idle_times = of_subscriptions
        .map(|it| it.auto_delete_on_idle)
        .chain([written.auto_delete_on_idle]);
    // A write is a use.
    if idle_times.any(|time| time.is_some()) {
        return false;
    }
    is_each(AppliedEntity::is_settled, (name, written, present, now))
}

/// Whether a topic shows what was written, as far as it shows that.
pub(super) fn shows(
    name: &TopicName,
    written: &TopicSettings,
    present: &Value,
    now: Timestamp,
) -> bool {
    is_each(AppliedEntity::is_unchanged, (name, written, present, now))
}

fn is_each(
    is: fn(&AppliedEntity) -> bool,
    (name, written, present, now): (&TopicName, &TopicSettings, &Value, Timestamp),
) -> bool {
    let mut planned = Applied::default();
    let is_accepted = TopicSettings::deserialize(present).is_ok_and(|present| {
        let added = planned.add_preview(name, written, Some(&present), now);
        added.is_ok()
    });
    is_accepted && planned.entities.iter().all(is)
}

impl Applied {
    /// Adds the difference that a write would make to a topic that is shown as `present`.
    fn add_preview(
        &mut self,
        name: &TopicName,
        written: &TopicSettings,
        present: Option<&TopicSettings>,
        now: Timestamp,
    ) -> Result<(), WouldRefuse> {
        let none = TopicSettings::default();
        let next = preview_topic(name, present.unwrap_or(&none), written, now);
        let next = next.map_err(|problem| would_refuse(name, problem))?;
        // Both are written by the same types, so that the same value has the same text.
        let before: Option<Value> = present.map(|present| json!(present));
        self.add(name, written, before.as_ref(), &json!(next));
        Ok(())
    }
}

fn would_refuse(topic: &TopicName, problem: ApiProblem) -> WouldRefuse {
    let member = problem.member.unwrap_or_default().into();
    WouldRefuse {
        topic: topic.clone(),
        member,
        reason: problem.detail.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::changes::Change;
    use super::*;

    const NOW: Timestamp = Timestamp::EPOCH;

    fn topic(subscriptions: &str) -> TopicSettings {
        let text =
            format!(r#"{{ "inputSchema": "EventGrid", "subscriptions": {{ {subscriptions} }} }}"#);
        serde_json::from_str(&text).unwrap()
    }

    fn planned(
        written: &TopicSettings,
        present: Option<&TopicSettings>,
    ) -> Result<Applied, WouldRefuse> {
        let mut planned = Applied::default();
        planned.add_preview(&TopicName::parse("orders").unwrap(), written, present, NOW)?;
        Ok(planned)
    }

    #[test]
    fn values_are_compared_by_their_meaning_and_not_by_their_text() {
        let billing = |timeout: &str, rate: &str| {
            topic(&format!(
                r#""billing": {{ "endpoint": {{ "url": "https://a.example/", "timeout": "{timeout}",
                    "maxRequestsPerSecond": {rate} }} }}"#
            ))
        };
        let shown = billing("PT1M", "5.0").to_view(&TopicName::parse("orders").unwrap(), NOW);
        let planned = planned(&billing("PT60S", "5"), Some(&shown)).unwrap();
        let members: Vec<_> = planned
            .entities
            .iter()
            .flat_map(|entity| &entity.members)
            .collect();
        let states: Vec<_> = members
            .iter()
            .map(|change| change.member.as_str())
            .collect();
        assert_eq!(
            states,
            ["status.state"],
            "a record without a state becomes active"
        );
    }

    #[test]
    fn what_is_not_there_is_created_and_what_is_left_out_stays() {
        let audit = topic(r#""audit": { "endpoint": { "url": "https://b.example/" } }"#);
        let shown = topic("").to_view(&TopicName::parse("Orders").unwrap(), NOW);
        let changes = |planned: Applied| {
            planned
                .entities
                .iter()
                .map(|it| it.change)
                .collect::<Vec<_>>()
        };
        let planned_new = planned(&audit, None).unwrap();
        assert_eq!(
            planned_new.secrets,
            [],
            "a secret is made by the server alone"
        );
        assert_eq!(changes(planned_new), [Change::Created, Change::Created]);
        let planned = planned(&audit, Some(&shown)).unwrap();
        assert_eq!(changes(planned), [Change::Unchanged, Change::Created]);
    }

    #[test]
    fn a_schema_that_another_subscription_does_not_accept_is_refused_by_member() {
        let crm = r#""crm": { "endpoint": { "url": "https://a.example/" }, "deliverySchema": "EventGrid" }"#;
        let written = TopicSettings::default();
        let refusal = planned(&written, Some(&topic(crm))).unwrap_err();
        assert_eq!(
            (refusal.member.as_str(), refusal.exit_code()),
            ("subscriptions.crm.deliverySchema", Some(3))
        );
        let text = refusal.to_string();
        assert!(
            text.starts_with("the server would refuse the topic orders\n  member: sub"),
            "{text}"
        );
    }
}
