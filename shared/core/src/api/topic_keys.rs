//! The publish keys of a topic as they are named, shown and stored: two that every topic has, and
//! up to two more for each of the other tiers. [`crate::model::topic`] decides what a key opens.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::SecretText;
use crate::model::ProducerTier;

/// The name of one of a topic's publish keys. A tier has two, so that one can be replaced while the
/// other works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum KeyName {
    /// The first of the usual producers.
    Key1,
    /// The second of the usual producers.
    Key2,
    /// The first of the tier `internal`.
    InternalKey1,
    /// The second of the tier `internal`.
    InternalKey2,
    /// The first of the tier `bulk`.
    BulkKey1,
    /// The second of the tier `bulk`.
    BulkKey2,
}

/// The keys that a topic has only where an operator made them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TierKeys {
    /// The first key of the tier `internal`, which may publish where other producers are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub internal_key1: Option<SecretText>,
    /// The second key of the tier `internal`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub internal_key2: Option<SecretText>,
    /// The first key of the tier `bulk`, which is refused first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub bulk_key1: Option<SecretText>,
    /// The second key of the tier `bulk`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub bulk_key2: Option<SecretText>,
}

/// The publish keys of a topic, in clear. Each is accepted, so that one can be replaced while the
/// other works.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TopicKeysView {
    /// The first key.
    #[schema(value_type = String)]
    pub key1: SecretText,
    /// The second key.
    #[schema(value_type = String)]
    pub key2: SecretText,
    /// The keys of the other tiers, as far as there are any.
    #[serde(flatten)]
    pub tier_keys: TierKeys,
}

/// Publish keys as they are written with a topic, in clear. Those that are left out stay; `key1` and
/// `key2` of a new topic are made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct TopicKeySettings {
    /// The first key of the usual producers, 32 to 256 visible characters of ASCII, as each of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub key1: Option<SecretText>,
    /// The second key of the usual producers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub key2: Option<SecretText>,
    /// The first key of the tier `internal`, which may publish where other producers are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub internal_key1: Option<SecretText>,
    /// The second key of the tier `internal`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub internal_key2: Option<SecretText>,
    /// The first key of the tier `bulk`, which is refused first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub bulk_key1: Option<SecretText>,
    /// The second key of the tier `bulk`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub bulk_key2: Option<SecretText>,
}

impl KeyName {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 6] = [
        Self::Key1,
        Self::Key2,
        Self::InternalKey1,
        Self::InternalKey2,
        Self::BulkKey1,
        Self::BulkKey2,
    ];

    /// The name as paths and command lines write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Key1 => "key1",
            Self::Key2 => "key2",
            Self::InternalKey1 => "internalKey1",
            Self::InternalKey2 => "internalKey2",
            Self::BulkKey1 => "bulkKey1",
            Self::BulkKey2 => "bulkKey2",
        }
    }

    /// The tier of the producers that publish with it.
    pub const fn tier(self) -> ProducerTier {
        match self {
            Self::InternalKey1 | Self::InternalKey2 => ProducerTier::Internal,
            Self::Key1 | Self::Key2 => ProducerTier::Standard,
            Self::BulkKey1 | Self::BulkKey2 => ProducerTier::Bulk,
        }
    }

    /// Whether every topic has it, so that it cannot be taken away.
    pub const fn is_permanent(self) -> bool {
        matches!(self, Self::Key1 | Self::Key2)
    }
}

impl fmt::Display for KeyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl TierKeys {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The place of a key; `None` for the two that are not here.
    pub fn slot_mut(&mut self, name: KeyName) -> Option<&mut Option<SecretText>> {
        match name {
            KeyName::Key1 | KeyName::Key2 => None,
            KeyName::InternalKey1 => Some(&mut self.internal_key1),
            KeyName::InternalKey2 => Some(&mut self.internal_key2),
            KeyName::BulkKey1 => Some(&mut self.bulk_key1),
            KeyName::BulkKey2 => Some(&mut self.bulk_key2),
        }
    }
}

impl TopicKeysView {
    /// The keys that there are, in order.
    pub fn present_keys(&self) -> impl Iterator<Item = (KeyName, &SecretText)> {
        KeyName::ALL
            .into_iter()
            .filter_map(|name| Some((name, self.key(name)?)))
    }

    /// The key of this name, if there is one.
    pub fn key(&self, name: KeyName) -> Option<&SecretText> {
        match name {
            KeyName::Key1 => Some(&self.key1),
            KeyName::Key2 => Some(&self.key2),
            KeyName::InternalKey1 => self.tier_keys.internal_key1.as_ref(),
            KeyName::InternalKey2 => self.tier_keys.internal_key2.as_ref(),
            KeyName::BulkKey1 => self.tier_keys.bulk_key1.as_ref(),
            KeyName::BulkKey2 => self.tier_keys.bulk_key2.as_ref(),
        }
    }
}

impl TopicKeySettings {
    /// The keys that are written, in order.
    pub fn written_keys(&self) -> impl Iterator<Item = (KeyName, &SecretText)> {
        KeyName::ALL
            .into_iter()
            .filter_map(|name| Some((name, self.key(name)?)))
    }

    /// The key that is written under this name.
    pub fn key(&self, name: KeyName) -> Option<&SecretText> {
        let key = match name {
            KeyName::Key1 => &self.key1,
            KeyName::Key2 => &self.key2,
            KeyName::InternalKey1 => &self.internal_key1,
            KeyName::InternalKey2 => &self.internal_key2,
            KeyName::BulkKey1 => &self.bulk_key1,
            KeyName::BulkKey2 => &self.bulk_key2,
        };
        key.as_ref()
    }
}

impl From<TopicKeysView> for TopicKeySettings {
    fn from(keys: TopicKeysView) -> Self {
        let TierKeys {
            internal_key1,
            internal_key2,
            bulk_key1,
            bulk_key2,
        } = keys.tier_keys;
        Self {
            key1: Some(keys.key1),
            key2: Some(keys.key2),
            internal_key1,
            internal_key2,
            bulk_key1,
            bulk_key2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn view(tier_keys: TierKeys) -> TopicKeysView {
        TopicKeysView {
            key1: SecretText::new("abc"),
            key2: SecretText::new("def"),
            tier_keys,
        }
    }

    #[test]
    fn a_key_is_read_and_written_by_one_name() {
        for name in KeyName::ALL {
            assert_eq!(
                serde_json::from_value::<KeyName>(json!(name.as_str())).unwrap(),
                name
            );
            assert_eq!(
                TierKeys::default().slot_mut(name).is_none(),
                name.is_permanent()
            );
        }
        assert!(serde_json::from_value::<KeyName>(json!("key3")).is_err());
    }

    #[test]
    fn only_keys_that_are_there_are_shown() {
        let without = view(TierKeys::default());
        assert_eq!(
            serde_json::to_value(&without).unwrap(),
            json!({ "key1": "abc", "key2": "def" })
        );
        let mut tier_keys = TierKeys::default();
        *tier_keys.slot_mut(KeyName::BulkKey2).unwrap() = Some(SecretText::new("ghi"));
        let with = view(tier_keys);
        let shown = json!({ "key1": "abc", "key2": "def", "bulkKey2": "ghi" });
        assert_eq!(serde_json::to_value(&with).unwrap(), shown);
        assert_eq!(
            serde_json::from_value::<TopicKeysView>(shown).unwrap(),
            with
        );
        let names: Vec<_> = with
            .present_keys()
            .map(|(name, key)| (name.as_str(), key.expose()))
            .collect();
        assert_eq!(
            names,
            [("key1", "abc"), ("key2", "def"), ("bulkKey2", "ghi")]
        );
    }

    #[test]
    fn debug_shows_no_key() {
        let mut tier_keys = TierKeys::default();
        for name in KeyName::ALL {
            if let Some(place) = tier_keys.slot_mut(name) {
                *place = Some(SecretText::new("sesame"));
            }
        }
        let shown = format!("{:?}", view(tier_keys));
        assert_eq!(shown.matches("[redacted]").count(), 6, "{shown}");
        assert!(
            !["abc", "def", "sesame"]
                .iter()
                .any(|key| shown.contains(key)),
            "{shown}"
        );
    }
}
