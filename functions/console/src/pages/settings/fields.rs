//! The fields of the form, and the members that it leaves to YAML. Their help is the description of
//! the member in the schema.

use self::FieldKind::{Choice, Flag, Lines, Number, NumberList, RequiredText, Text, TextList};

/// A member that has a field.
#[derive(Debug, Clone, Copy)]
pub(super) struct SettingsField {
    /// The path of the member, which is the name of the field too.
    pub(super) member: &'static str,
    pub(super) label: &'static str,
    pub(super) kind: FieldKind,
}

/// The kind of value that a field takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldKind {
    /// A text that must be there.
    RequiredText,
    Text,
    Number,
    /// One of the words of the schema.
    Choice,
    /// Yes or no.
    Flag,
    /// Texts, one a line.
    Lines,
    /// Texts, with commas between them.
    TextList,
    /// Numbers, with commas between them.
    NumberList,
}

/// The fields of one heading.
#[derive(Debug, Clone, Copy)]
pub(super) struct FieldSection {
    pub(super) title: &'static str,
    pub(super) fields: &'static [SettingsField],
}

/// The members of a topic or a subscription.
#[derive(Debug)]
pub(super) struct FieldTable {
    /// The name of the type in the schema.
    pub(super) type_name: &'static str,
    pub(super) sections: &'static [FieldSection],
    /// Members without a field.
    pub(super) yaml_only: &'static [&'static str],
}

impl FieldTable {
    pub(super) fn fields(&self) -> impl Iterator<Item = &'static SettingsField> {
        self.sections.iter().flat_map(|section| section.fields)
    }
}

const fn field(member: &'static str, label: &'static str, kind: FieldKind) -> SettingsField {
    SettingsField {
        member,
        label,
        kind,
    }
}

/// The members of a topic.
pub(super) static TOPIC: FieldTable = FieldTable {
    type_name: "TopicSettings",
    sections: &[
        FieldSection {
            title: "Events",
            fields: &[
                field("inputSchema", "Schema of events", Choice),
                field("defaultTimeToLive", "Time to live", Text),
                field(
                    "notBeforeAttribute",
                    "Extension with the earliest time",
                    Text,
                ),
            ],
        },
        FieldSection {
            title: "Delivery log",
            fields: &[
                field("deliveryLog", "Delivery log keeps", Choice),
                field(
                    "recordUnmatched",
                    "Log events that match no subscription",
                    Flag,
                ),
            ],
        },
        FieldSection {
            title: "Notices",
            fields: &[
                field("noticesTopic", "Notices go to the topic", Text),
                field(
                    "deliveryFailedNotices",
                    "A notice of each event given up",
                    Flag,
                ),
            ],
        },
        FieldSection {
            title: "End",
            fields: &[field("autoDeleteOnIdle", "Deleted when idle for", Text)],
        },
    ],
    yaml_only: &["inputMapping", "senderHeaders", "keys"],
};

/// The members of a subscription.
pub(super) static SUBSCRIPTION: FieldTable = FieldTable {
    type_name: "SubscriptionSettings",
    sections: &[
        FieldSection {
            title: "Endpoint",
            fields: &[
                field("endpoint.url", "URL", RequiredText),
                field("endpoint.fallbackUrl", "Fallback URL", Text),
                field("endpoint.timeout", "Time to answer", Text),
                field(
                    "endpoint.maxRequestsPerSecond",
                    "Most requests a second",
                    Number,
                ),
                field(
                    "endpoint.maxConcurrentRequests",
                    "Most requests at once",
                    Number,
                ),
                field("endpoint.validation", "Consent", Choice),
            ],
        },
        FieldSection {
            title: "Filter",
            fields: &[
                field(
                    "filter.includedEventTypes",
                    "Event types, one a line",
                    Lines,
                ),
                field("filter.subjectBeginsWith", "Subject begins with", Text),
                field("filter.subjectEndsWith", "Subject ends with", Text),
                field(
                    "filter.isSubjectCaseSensitive",
                    "Case of the subject matters",
                    Flag,
                ),
                field(
                    "filter.enableAdvancedFilteringOnArrays",
                    "Advanced filters look into arrays",
                    Flag,
                ),
            ],
        },
        FieldSection {
            title: "Request",
            fields: &[
                field("deliverySchema", "Schema", Choice),
                field("contentMode", "Content mode", Choice),
                field(
                    "batching.maxEventsPerBatch",
                    "Most events in a request",
                    Number,
                ),
                field(
                    "batching.preferredBatchSizeInKilobytes",
                    "Preferred size in kilobytes",
                    Number,
                ),
                field(
                    "batching.partialAcknowledgement",
                    "The answer may name the events that failed",
                    Flag,
                ),
            ],
        },
        FieldSection {
            title: "Retries",
            fields: &[
                field("retryPolicy.maxDeliveryAttempts", "Most attempts", Number),
                field(
                    "retryPolicy.eventTimeToLiveInMinutes",
                    "Time to live in minutes",
                    Number,
                ),
                field("retryPolicy.schedule", "Waits between attempts", TextList),
                field(
                    "retryPolicy.permanentStatuses",
                    "No retry after",
                    NumberList,
                ),
                field("retryPolicy.disableOnGone", "Status 410 disables it", Flag),
            ],
        },
        FieldSection {
            title: "Events that are given up",
            fields: &[
                field("deadLetter.enabled", "Keep dead letters", Flag),
                field("deadLetter.onExpiry", "Keep expired events", Flag),
                field("deadLetter.delay", "Delay", Text),
                field("deadLetter.giveUpAfter", "Drop after", Text),
                field("recovery.enabled", "Send again after an outage", Flag),
                field("recovery.within", "Send again within", Text),
                field("recovery.ratePerSecond", "Sent again a second", Number),
                field("whileDisabled", "New events while it is disabled", Choice),
            ],
        },
        FieldSection {
            title: "End",
            fields: &[
                field("autoDeleteOnIdle", "Deleted when idle for", Text),
                field("expirationTimeUtc", "Deleted at", Text),
            ],
        },
    ],
    yaml_only: &[
        "filter.advancedFilters",
        "retryPolicy.waitFloors",
        "deliveryHeaders",
        "signing",
    ],
};

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use posthaste_core::api::apply_file_schema;
    use serde_json::Value;

    use super::super::help::member_schema;
    use super::*;

    /// Members that are shown and not written.
    const SHOWN_ONLY: [&str; 8] = [
        "name",
        "endpoint",
        "subscriptions",
        "status",
        "waiting",
        "lastOutcome",
        "health",
        "circuit",
    ];

    /// The members below `prefix` that no table names.
    fn unknown_members(table: &FieldTable, prefix: &str, schema: &Value, found: &mut Vec<String>) {
        for name in schema["properties"].as_object().unwrap().keys() {
            let member = format!("{prefix}{name}");
            let is_known = table.yaml_only.contains(&member.as_str())
                || table.fields().any(|field| field.member == member);
            let is_object = table
                .fields()
                .any(|field| field.member.starts_with(&format!("{member}.")));
            if is_object {
                let below = member_schema(table.type_name, &member).unwrap();
                unknown_members(table, &format!("{member}."), below.resolved, found);
            } else if !is_known && !SHOWN_ONLY.contains(&member.as_str()) {
                found.push(member);
            }
        }
    }

    /// A member that the schema gains gets a field, or is named as one of YAML alone.
    #[test]
    fn every_member_of_the_schema_is_a_field_or_yaml_only() {
        let schema = apply_file_schema();
        for table in [&TOPIC, &SUBSCRIPTION] {
            let mut found = Vec::new();
            unknown_members(table, "", &schema["$defs"][table.type_name], &mut found);
            assert_eq!(found, [""; 0], "{}", table.type_name);
        }
    }

    #[test]
    fn every_field_is_a_member_of_the_schema_once() {
        for table in [&TOPIC, &SUBSCRIPTION] {
            let members: Vec<_> = table
                .fields()
                .map(|field| field.member)
                .chain(table.yaml_only.iter().copied())
                .collect();
            for member in &members {
                assert!(member_schema(table.type_name, member).is_some(), "{member}");
            }
            let once: BTreeSet<_> = members.iter().collect();
            assert_eq!(once.len(), members.len());
        }
    }
}
