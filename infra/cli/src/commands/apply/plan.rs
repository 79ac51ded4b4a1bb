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

use super::changes::{AppliedEntity, ApplyResult};
use super::file::DeclaredTopic;
use super::keys;
use super::server::ServerTopics;
use crate::commands::session::AdminSession;
use crate::error::{CommandError, CommandFailure};

/// Error of a write that the server would refuse.
#[derive(Debug, thiserror::Error)]
#[error("the server would refuse the topic {topic}\n  member: {member}\n  reason: {reason}")]
pub(super) struct WouldRefuse {
    topic: TopicName,
    /// Member at fault.
    member: String,
    reason: String,
}

impl CommandFailure for WouldRefuse {
    fn exit_code(&self) -> Option<u8> {
        Some(3)
    }
}

/// Adds what putting a topic now would change.
pub(super) fn add_planned_topic(
    session: &AdminSession,
    present: &ServerTopics,
    wanted: DeclaredTopic<'_>,
    planned: &mut ApplyResult,
) -> Result<(), CommandError> {
    let name = wanted.name;
    let view = present.read_topic(session, name)?;
    let written = &wanted.resolve_settings(view.as_ref())?;
    let present = view.map(|view| view.shown_settings(session)).transpose()?;
    let now = SystemClock.now();
    add_preview(planned, name, written, present.as_ref(), now)?;
    if present.is_some() {
        planned.add_key_changes(name, &keys::pending_changes(session, name, written)?);
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
    let planned = preview_write(name, written, present, now);
    planned.is_some_and(|it| it.entities.iter().all(AppliedEntity::is_settled))
}

/// Whether a topic shows what was written, as far as it shows that.
pub(super) fn is_unchanged_by_write(
    name: &TopicName,
    written: &TopicSettings,
    present: &Value,
    now: Timestamp,
) -> bool {
    let planned = preview_write(name, written, present, now);
    planned.is_some_and(|it| it.entities.iter().all(AppliedEntity::is_unchanged))
}

/// The difference that a write would make, if it is accepted and the topic can be read.
fn preview_write(
    name: &TopicName,
    written: &TopicSettings,
    present: &Value,
    now: Timestamp,
) -> Option<ApplyResult> {
    let present = TopicSettings::deserialize(present).ok()?;
    let mut planned = ApplyResult::default();
    add_preview(&mut planned, name, written, Some(&present), now).ok()?;
    Some(planned)
}

/// Adds the difference that a write would make to a topic that is shown as `present`.
fn add_preview(
    planned: &mut ApplyResult,
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
    planned.add_topic(name, written, before.as_ref(), &json!(next));
    Ok(())
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
    use super::super::changes::EntityChange;
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
    ) -> Result<ApplyResult, WouldRefuse> {
        let mut planned = ApplyResult::default();
        let name = TopicName::parse("orders").unwrap();
        add_preview(&mut planned, &name, written, present, NOW)?;
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

    /// Plan creates what is not on the server, and keeps what the file leaves out.
    #[test]
    fn plan_creates_the_missing_and_keeps_the_undeclared() {
        let audit = topic(r#""audit": { "endpoint": { "url": "https://b.example/" } }"#);
        let shown = topic("").to_view(&TopicName::parse("Orders").unwrap(), NOW);
        let changes = |planned: ApplyResult| {
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
        assert_eq!(
            changes(planned_new),
            [EntityChange::Created, EntityChange::Created]
        );
        let planned = planned(&audit, Some(&shown)).unwrap();
        assert_eq!(
            changes(planned),
            [EntityChange::Unchanged, EntityChange::Created]
        );
    }

    /// Refusal names the member of the subscription that does not accept the new input schema.
    #[test]
    fn schema_that_breaks_another_subscription_is_refused() {
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
