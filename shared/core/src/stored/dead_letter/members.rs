//! The members that a dead letter adds to its event, and the reader of members by their names.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::model::{DeadLetter, DeliveryEntry, EventSchema, Timestamp};

/// Declares the names of the members, in the order in which they are written: of each its name in
/// Event Grid's schema and in CloudEvents, which allow only lower case.
macro_rules! member_names {
    ($($member:ident: $event_grid:literal, $cloud_events:literal;)+) => {
        /// The names of the members in one schema.
        pub(super) struct MemberNames {
            $(pub(super) $member: &'static str,)+
        }

        /// Event Grid's names.
        pub(super) const EVENT_GRID: MemberNames = MemberNames { $($member: $event_grid,)+ };

        /// The names in CloudEvents.
        pub(super) const CLOUD_EVENTS: MemberNames = MemberNames { $($member: $cloud_events,)+ };

        impl MemberNames {
            /// The names, and last the one that keeps the event's own members of these names.
            pub(super) fn reserved_names(&self) -> [&'static str; 14] {
                [$(self.$member,)+ ORIGINAL_ATTRIBUTES]
            }
        }
    };
}

member_names! {
    reason: "deadLetterReason", "deadletterreason";
    attempts: "deliveryAttempts", "deliveryattempts";
    outcome: "lastDeliveryOutcome", "lastdeliveryoutcome";
    status: "lastHttpStatusCode", "lasthttpstatuscode";
    redirect: "lastRedirectLocation", "lastredirectlocation";
    published: "publishTime", "publishtime";
    last_attempt: "lastDeliveryAttemptTime", "lastdeliveryattempttime";
    identity: "subscriptionIdentity", "subscriptionidentity";
    key: "deliveryKey", "deliverykey";
    webhook_id: "webhookId", "webhookid";
    outage: "outageSince", "outagesince";
    first_published: "firstPublishTime", "firstpublishtime";
    recoveries: "recoveries", "recoveries";
}

/// The member that keeps the event's own members of the names above, whole: a text of JSON. It has
/// the same name in every schema.
pub(super) const ORIGINAL_ATTRIBUTES: &str = "originalattributes";

impl MemberNames {
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
            .map(|place| (names.redirect, quoted_text(place))),
    );
    members.push((names.published, quoted_time(delivery.published_at)));
    members.extend(
        delivery
            .last
            .map(|last| (names.last_attempt, quoted_time(last.at))),
    );
    members.extend(
        delivery
            .identity
            .map(|identity| (names.identity, format!("\"{identity}\""))),
    );
    members.push((names.key, quoted_text(&entry.key)));
    members.push((names.webhook_id, quoted_text(&entry.webhook_id())));
    members.extend(
        letter
            .outage_since
            .map(|at| (names.outage, quoted_time(at))),
    );
    if let Some(earlier) = entry.marks.earlier_life() {
        members.push((names.first_published, quoted_time(earlier.accepted_at)));
        if earlier.recoveries > 0 {
            members.push((names.recoveries, earlier.recoveries.to_string()));
        }
    }
    members
}

fn quoted_time(at: Timestamp) -> String {
    format!("\"{}\"", at.to_event_grid())
}

fn quoted_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The members of a record that have these names, each as it is written. A member that is left out,
/// or null, is `None`. `None` in all if the record is no object, or has one of the names twice.
pub(super) fn read_members<'a, const N: usize>(
    record: &'a [u8],
    names: [&str; N],
) -> Option<[Option<&'a RawValue>; N]> {
    let mut reader = serde_json::Deserializer::from_slice(record);
    let members = reader.deserialize_map(MemberVisitor { names }).ok()?;
    reader.end().ok()?;
    Some(members)
}

struct MemberVisitor<'n, const N: usize> {
    names: [&'n str; N],
}

/// The name of a member, which lies in the record unless it has escapes.
#[derive(serde::Deserialize)]
struct MemberName<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de, const N: usize> Visitor<'de> for MemberVisitor<'_, N> {
    type Value = [Option<&'de RawValue>; N];

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a dead letter")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut found = [None; N];
        while let Some(MemberName(name)) = members.next_key::<MemberName<'de>>()? {
            match self.names.iter().position(|wanted| *wanted == name) {
                None => {
                    members.next_value::<IgnoredAny>()?;
                }
                Some(place) if found[place].is_some() => {
                    return Err(A::Error::custom("a member is there twice"));
                }
                Some(place) => found[place] = Some(members.next_value::<Option<&RawValue>>()?),
            }
        }
        Ok(found.map(Option::flatten))
    }
}

/// A member's value, if it is one of this type.
pub(super) fn member_value<'a, T: Deserialize<'a>>(raw: Option<&'a RawValue>) -> Option<T> {
    serde_json::from_str(raw?.get()).ok()
}
