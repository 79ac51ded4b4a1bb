//! The members that a dead letter adds to its event.

use crate::model::{DeadLetter, DeliveryEntry, EventSchema, Timestamp};

/// The names of the members, in the order they are written.
pub(super) struct MemberNames {
    pub(super) reason: &'static str,
    pub(super) attempts: &'static str,
    pub(super) outcome: &'static str,
    pub(super) status: &'static str,
    pub(super) redirect: &'static str,
    pub(super) published: &'static str,
    pub(super) last_attempt: &'static str,
    pub(super) identity: &'static str,
    pub(super) key: &'static str,
    pub(super) webhook_id: &'static str,
    pub(super) outage: &'static str,
    pub(super) first_published: &'static str,
    pub(super) recoveries: &'static str,
}

/// Event Grid's names.
pub(super) const EVENT_GRID: MemberNames = MemberNames {
    reason: "deadLetterReason",
    attempts: "deliveryAttempts",
    outcome: "lastDeliveryOutcome",
    status: "lastHttpStatusCode",
    redirect: "lastRedirectLocation",
    published: "publishTime",
    last_attempt: "lastDeliveryAttemptTime",
    identity: "subscriptionIdentity",
    key: "deliveryKey",
    webhook_id: "webhookId",
    outage: "outageSince",
    first_published: "firstPublishTime",
    recoveries: "recoveries",
};

/// CloudEvents allows only lower case in attribute names.
pub(super) const CLOUD_EVENTS: MemberNames = MemberNames {
    reason: "deadletterreason",
    attempts: "deliveryattempts",
    outcome: "lastdeliveryoutcome",
    status: "lasthttpstatuscode",
    redirect: "lastredirectlocation",
    published: "publishtime",
    last_attempt: "lastdeliveryattempttime",
    identity: "subscriptionidentity",
    key: "deliverykey",
    webhook_id: "webhookid",
    outage: "outagesince",
    first_published: "firstpublishtime",
    recoveries: "recoveries",
};

/// The member that keeps the event's own members of the names above, whole: a text of JSON. It has
/// the same name in every schema.
pub(super) const ORIGINAL_ATTRIBUTES: &str = "originalattributes";

impl MemberNames {
    /// The names, and last the one that keeps the event's own members of these names.
    pub(super) fn reserved_names(&self) -> [&'static str; 14] {
        let Self {
            reason,
            attempts,
            outcome,
            status,
            redirect,
            published,
            last_attempt,
            identity,
            key,
            webhook_id,
            outage,
            first_published,
            recoveries,
        } = self;
        [
            reason,
            attempts,
            outcome,
            status,
            redirect,
            published,
            last_attempt,
            identity,
            key,
            webhook_id,
            outage,
            first_published,
            recoveries,
            ORIGINAL_ATTRIBUTES,
        ]
    }

    pub(super) fn for_schema(schema: EventSchema) -> Self {
        match schema {
            EventSchema::EventGrid | EventSchema::Custom => EVENT_GRID,
            EventSchema::CloudEvents => CLOUD_EVENTS,
        }
    }
}

pub(super) fn letter_members(
    letter: &DeadLetter,
    entry: &DeliveryEntry,
) -> Vec<(&'static str, String)> {
    let names = MemberNames::for_schema(letter.delivery.schema);
    let time = |at: Timestamp| format!("\"{}\"", at.to_event_grid());
    let delivery = &letter.delivery;
    let mut members = vec![
        (names.reason, format!("\"{:?}\"", letter.reason)),
        (names.attempts, delivery.attempts.to_string()),
    ];
    members.extend(
        letter
            .last_outcome()
            .map(|outcome| (names.outcome, format!("\"{outcome:?}\""))),
    );
    members.extend(
        delivery
            .last
            .and_then(|last| last.status)
            .map(|status| (names.status, status.to_string())),
    );
    members.extend(
        entry
            .marks
            .redirect
            .as_deref()
            .map(|place| (names.redirect, serde_json::Value::from(place).to_string())),
    );
    members.push((names.published, time(delivery.published_at)));
    members.extend(
        delivery
            .last
            .map(|last| (names.last_attempt, time(last.at))),
    );
    members.extend(
        delivery
            .identity
            .map(|identity| (names.identity, format!("\"{identity}\""))),
    );
    let text = |text: &str| serde_json::Value::from(text).to_string();
    members.push((names.key, text(&entry.key)));
    members.push((names.webhook_id, text(&entry.webhook_id())));
    members.extend(letter.outage_since.map(|at| (names.outage, time(at))));
    if let Some(earlier) = entry.marks.earlier_life() {
        members.push((names.first_published, time(earlier.accepted_at)));
        if earlier.recoveries > 0 {
            members.push((names.recoveries, earlier.recoveries.to_string()));
        }
    }
    members
}
