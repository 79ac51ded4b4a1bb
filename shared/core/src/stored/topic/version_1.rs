//! The settings that version 1 of a topic record had.

use serde_json::Value;

use crate::api::TopicSettings;

/// Whether version 1 reads all of these settings.
pub(super) fn has_all_of(settings: &TopicSettings) -> bool {
    // Settings are plain data with text keys: serialising them cannot fail.
    is_known(
        "settings",
        &serde_json::to_value(settings).unwrap_or_default(),
    )
}

/// Whether version 1 reads a value under this name.
fn is_known(name: &str, value: &Value) -> bool {
    match (name, value) {
        ("subscriptions", Value::Object(named)) => {
            named.values().all(|each| is_known("subscription", each))
        }
        ("waitFloors", _) => true,
        (_, Value::Object(members)) => {
            let known = members_of(name);
            members
                .iter()
                .all(|(name, value)| known.contains(&name.as_str()) && is_known(name, value))
        }
        ("inputSchema" | "deliverySchema", schema) => schema != "Custom",
        ("state", state) => state == "Active" || state == "Disabled",
        ("secrets", Value::Array(secrets)) => secrets.iter().all(|secret| {
            secret
                .as_str()
                .is_some_and(|secret| secret.starts_with("whsec_"))
        }),
        _ => true,
    }
}

/// The members that an object of this name had in version 1.
fn members_of(object: &str) -> &'static [&'static str] {
    match object {
        "settings" => &[
            "name",
            "endpoint",
            "inputSchema",
            "defaultTimeToLive",
            "subscriptions",
        ],
        "subscription" => &[
            "name",
            "endpoint",
            "deliverySchema",
            "contentMode",
            "filter",
            "retryPolicy",
            "batching",
            "deadLetter",
            "signing",
            "status",
        ],
        "endpoint" => &["url", "timeout"],
        "filter" => &[
            "includedEventTypes",
            "subjectBeginsWith",
            "subjectEndsWith",
            "isSubjectCaseSensitive",
        ],
        "retryPolicy" => &[
            "maxDeliveryAttempts",
            "eventTimeToLiveInMinutes",
            "schedule",
            "waitFloors",
            "permanentStatuses",
            "disableOnGone",
        ],
        "batching" => &["maxEventsPerBatch", "preferredBatchSizeInKilobytes"],
        "deadLetter" => &["enabled", "onExpiry", "delay", "giveUpAfter"],
        "signing" => &["secrets"],
        "status" => &["state", "reason", "since"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use crate::model::Timestamp;
    use crate::stored::topic::TopicRecord;

    fn check(members: &str, expected: u32) {
        let head = r#""v":1,"name":"orders","key1":"a","key2":"b","createdAt":0,"updatedAt":0"#;
        let text = format!(r#"{{{head},"settings":{{{members}}}}}"#);
        let record = TopicRecord::parse(text.as_bytes()).unwrap();
        assert_eq!(record.oldest_version(), expected, "{members}");
        assert_eq!(
            TopicRecord::parse(&record.render()).unwrap().v,
            expected,
            "{members}"
        );
    }

    fn subscription(members: &str, expected: u32) {
        let endpoint = r#""endpoint":{"url":"https://a.example/","timeout":"PT5S"}"#;
        check(
            &format!(r#""subscriptions":{{"b":{{{endpoint},{members}}}}}"#),
            expected,
        );
    }

    #[test]
    fn content_that_the_first_program_read_is_written_for_it() {
        check("", 1);
        check(
            r#""name":"orders","endpoint":"https://a/","inputSchema":"EventGrid","defaultTimeToLive":"P1D""#,
            1,
        );
        subscription(
            r#""name":"b","deliverySchema":"EventGrid","contentMode":"structured""#,
            1,
        );
        subscription(
            r#""filter":{"includedEventTypes":["a"],"subjectBeginsWith":"a","subjectEndsWith":"b"}"#,
            1,
        );
        subscription(
            r#""retryPolicy":{"maxDeliveryAttempts":1,"eventTimeToLiveInMinutes":1,"schedule":["PT1M"],"waitFloors":{"x":"PT1M"},"permanentStatuses":[400],"disableOnGone":true}"#,
            1,
        );
        subscription(
            r#""batching":{"maxEventsPerBatch":1,"preferredBatchSizeInKilobytes":1}"#,
            1,
        );
        subscription(
            r#""deadLetter":{"enabled":true,"onExpiry":true,"delay":"PT1M","giveUpAfter":"P1D"}"#,
            1,
        );
        subscription(r#""signing":{"secrets":["whsec_YQ=="]}"#, 1);
        subscription(
            r#""status":{"state":"Disabled","reason":"x","since":"2023-11-14T22:13:20Z"}"#,
            1,
        );
    }

    #[test]
    fn content_that_the_first_program_did_not_know_is_version_2() {
        check(r#""inputSchema":"Custom""#, 2);
        check(r#""autoDeleteOnIdle":"PT5M""#, 2);
        check(r#""noticesTopic":"notices""#, 2);
        subscription(r#""deliverySchema":"Custom""#, 2);
        subscription(r#""expirationTimeUtc":"2999-01-01T00:00:00Z""#, 2);
        subscription(r#""batching":{"partialAcknowledgement":true}"#, 2);
        subscription(r#""deliveryHeaders":[{"name":"X-A","value":"a"}]"#, 2);
        subscription(r#""signing":{"secrets":["whsk_YQ=="]}"#, 2);
        subscription(r#""filter":{"enableAdvancedFilteringOnArrays":true}"#, 2);
        subscription(
            r#""status":{"state":"Paused","since":"2023-11-14T22:13:20Z"}"#,
            2,
        );
    }

    #[test]
    fn a_tombstone_is_no_topic_to_the_first_program() {
        let text =
            r#"{"v":1,"name":"a","key1":"a","key2":"b","createdAt":0,"updatedAt":0,"settings":{}}"#;
        let record = TopicRecord::parse(text.as_bytes()).unwrap();
        assert_eq!(record.into_tombstone(Timestamp::EPOCH).oldest_version(), 2);
    }
}
