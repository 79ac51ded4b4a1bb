//! The responses to users: settings with their secrets masked, and responses that are not settings.
//! A topic or subscription as shown is accepted when it is written again.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    HandshakeView, IsoDuration, IsoTimestamp, StatusView, SubscriptionSettings, TopicKeysView,
    TopicSettings,
};
use crate::model::{EventSchema, Timestamp, TopicName};

impl StatusView {
    /// The present status, without the code of a handshake.
    pub(super) fn without_code(&self, now: Timestamp) -> Self {
        let status = self.effective_at(now);
        let handshake = status.handshake.map(|handshake| HandshakeView {
            code: None,
            ..handshake
        });
        Self {
            handshake,
            ..status
        }
    }
}

impl TopicSettings {
    /// The settings alone, of a topic as it is shown: what may be written again.
    pub fn settings_only(&self) -> Self {
        let subscriptions = self.subscriptions.iter();
        let written =
            subscriptions.map(|(name, settings)| (name.clone(), settings.settings_only()));
        Self {
            name: None,
            endpoint: None,
            subscriptions: written.collect(),
            ..self.clone()
        }
    }

    /// The topic as it may be shown: with its name, and every secret of its subscriptions masked.
    pub fn to_view(&self, name: &TopicName, now: Timestamp) -> Self {
        let subscriptions = self.subscriptions.iter();
        let shown =
            subscriptions.map(|(name, settings)| (name.clone(), settings.to_view(name, now)));
        Self {
            name: Some(name.clone()),
            subscriptions: shown.collect(),
            ..self.clone()
        }
    }

    /// The topic as it is shown, with all that another installation needs to be the same: its
    /// secrets in clear, and these publish keys. The code of a handshake stays hidden.
    pub fn to_view_with_secrets(
        &self,
        name: &TopicName,
        keys: TopicKeysView,
        now: Timestamp,
    ) -> Self {
        let mut revealed = self.to_view(name, now);
        for (name, subscription) in &mut revealed.subscriptions {
            if let Some(stored) = self.subscriptions.get(name) {
                subscription.signing.clone_from(&stored.signing);
                subscription
                    .delivery_headers
                    .clone_from(&stored.delivery_headers);
            }
        }
        revealed.keys = Some(keys.into());
        revealed
    }
}

/// A topic in a list: without its subscriptions, of which there may be hundreds, unless it was asked
/// for them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TopicSummary {
    /// The topic's name.
    #[schema(value_type = String)]
    pub name: TopicName,
    /// The schema of the events it accepts.
    pub input_schema: EventSchema,
    /// Default and upper bound of every event's time to live.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_time_to_live: Option<IsoDuration>,
    /// The number of its subscriptions.
    pub subscription_count: usize,
    /// The time at which the topic was created.
    pub created_at: IsoTimestamp,
    /// The time at which the topic, or a subscription of it, was last written.
    pub updated_at: IsoTimestamp,
    /// The version, for If-Match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// The whole topic, where the list was asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<TopicSettings>,
}

/// A topic whose record cannot be read: it takes no events until that is repaired.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UnreadableTopic {
    /// The topic's name, in lower case.
    #[schema(example = "orders")]
    pub name: String,
    /// The fault, and what to do.
    pub detail: String,
}

/// One page of topics, in the order of their names without regard to case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TopicPage {
    /// The topics.
    pub topics: Vec<TopicSummary>,
    /// The topics whose records cannot be read. Left out where all can.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<UnreadableTopic>,
    /// The beginning of the next page: send it as `cursor`. Left out on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

impl TopicPage {
    /// The names of the first and the last topic.
    pub fn name_range(&self) -> Option<(&TopicName, &TopicName)> {
        let first = self.topics.first()?;
        let last = self.topics.last()?;
        Some((&first.name, &last.name))
    }
}

/// One page of a topic's subscriptions, in the order of their names without regard to case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SubscriptionPage {
    /// The subscriptions, with their names and with masked secrets.
    pub subscriptions: Vec<SubscriptionSettings>,
    /// The beginning of the next page: send it as `cursor`. Left out on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// Whether the program works.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HealthView {
    /// `ok`: requests are taken, and the state store answers.
    #[schema(example = "ok")]
    pub status: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{MASKED, SecretText};
    use serde_json::json;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    fn topic() -> TopicSettings {
        let settings = json!({
            "inputSchema": "EventGrid",
            "defaultTimeToLive": "P1D",
            "subscriptions": { "Billing": {
                "endpoint": { "url": "https://a.example/" },
                "signing": { "secrets": [SECRET, SECRET], "expiresAt": [null, "2026-11-21T10:00:00.000Z"] },
                "deliveryHeaders": [{ "name": "x-key", "value": "s3cret", "isSecret": true }],
                "status": {
                    "state": "Pending",
                    "since": "2026-11-21T10:00:00Z",
                    "handshake": { "code": "sesame", "expiresAt": "2026-11-21T10:10:00Z" },
                },
            } },
        });
        serde_json::from_value(settings).unwrap()
    }

    #[test]
    fn topic_view_has_names_and_no_secret() {
        let shown = serde_json::to_value(
            topic().to_view(&TopicName::parse("Orders").unwrap(), Timestamp::EPOCH),
        )
        .unwrap();
        assert_eq!(shown["name"], "Orders");
        let billing = &shown["subscriptions"]["Billing"];
        assert_eq!(billing["name"], "Billing");
        let mask = SecretText::new(SECRET).masked_as_one_of_several();
        assert_eq!(billing["signing"]["secrets"], json!([mask, mask]));
        assert_eq!(
            billing["signing"]["expiresAt"],
            json!([null, "2026-11-21T10:00:00.000Z"])
        );
        assert_eq!(billing["deliveryHeaders"][0]["value"], MASKED);
        for secret in ["whsec_", "s3cret", "sesame"] {
            assert!(!shown.to_string().contains(secret), "{secret}");
        }
    }

    #[test]
    fn revealed_topic_has_all_secrets_but_handshake_codes() {
        let keys = json!({ "key1": "first", "key2": "second", "bulkKey1": "third" });
        let view = serde_json::from_value(keys.clone()).unwrap();
        let revealed =
            topic().to_view_with_secrets(&TopicName::parse("o").unwrap(), view, Timestamp::EPOCH);
        let revealed = serde_json::to_value(revealed).unwrap();
        assert_eq!(revealed["keys"], keys);
        let billing = &revealed["subscriptions"]["Billing"];
        assert_eq!(billing["signing"]["secrets"], json!([SECRET, SECRET]));
        assert_eq!(billing["deliveryHeaders"][0]["value"], "s3cret");
        assert!(!revealed.to_string().contains("sesame"));
    }

    #[test]
    fn topic_view_is_accepted_when_written_back() {
        let shown = topic().to_view(&TopicName::parse("Orders").unwrap(), Timestamp::EPOCH);
        let text = serde_json::to_string(&shown).unwrap();
        assert_eq!(serde_json::from_str::<TopicSettings>(&text).unwrap(), shown);
    }
}
