//! The record of a topic: its settings, keys and subscriptions in one object, changed only by
//! conditional put.
//!
//! Key `topics/{topic}.json`. Versions 1 and 2; written by manage and, for temporary topics and
//! subscriptions, by wake; read by all functions, through the registry. It stays until the topic is
//! deleted, with a tombstone in between. Fixtures: `topic-v1.json`, `topic-v1-identities.json`,
//! `topic-v1-delivery-log.json`, `topic-v1-record-unmatched.json`, `topic-v1-not-before.json`,
//! `topic-v1-while-disabled.json`, `topic-v1-last-changes.json`, `topic-v1-recovery.json`,
//! `topic-v1-concurrency.json`, `topic-v2-rotated.json`, `topic-v2-tier-keys.json`.

mod version_1;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use std::collections::BTreeMap;
use std::mem::take;
use std::sync::Arc;
use std::time::Duration;

use crate::api::{
    KeyName, RecoverySettings, SecretText, SenderHeaderSettings, SettingsError, TierKeys,
    TopicKeySettings, TopicKeysView, TopicSettings, check_topic_keys, compile_topic,
};
use crate::model::{
    CreationId, DeliveryLogMode, FormatError, Secret, StoredFormat, SubscriptionCreation,
    SubscriptionName, Timestamp, Topic, TopicCreations, TopicKeys, TopicName, WhileDisabled,
    render_json,
};

/// The prefix of all topic records.
pub const TOPICS: &str = "topics/";

/// The record of a topic.
pub fn topic_record_key(name: &TopicName) -> String {
    // Each request looks its topic up once more, so this allocates once.
    [TOPICS, &name.folded_text(), ".json"].concat()
}

/// The name of the topic whose record has this key, in lower case.
pub fn topic_name(key: &str) -> &str {
    let name = key.strip_prefix(TOPICS).unwrap_or(key);
    name.strip_suffix(".json").unwrap_or(name)
}

/// The newest version this program reads. It writes this one only where the record says what
/// version 1 does not know: the first program then keeps its hands off it, and off that topic's
/// events, until a newer one is back.
pub const RECORD_VERSION: u32 = 2;

/// The version of a record that says nothing but what the first program read, so that it can still
/// be read after a roll-back.
const VERSION_1: u32 = 1;

const FORMAT: StoredFormat = StoredFormat {
    name: "a topic record",
    newest: RECORD_VERSION,
};

/// A topic as it is stored. Its settings hold the subscriptions, with their secrets in clear.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TopicRecord {
    /// The version of this form. [`TopicRecord::render`] writes the oldest that will do.
    pub v: u32,
    /// The name as its creator wrote it.
    pub name: TopicName,
    /// The first publish key.
    pub key1: SecretText,
    /// The second publish key.
    pub key2: SecretText,
    /// The keys of the other tiers, as far as there are any.
    #[serde(default, skip_serializing_if = "TierKeys::is_empty")]
    pub tier_keys: TierKeys,
    /// The time at which the topic was created.
    pub created_at: Timestamp,
    /// The time of the last write.
    pub updated_at: Timestamp,
    /// The time at which the topic was deleted: its object is about to go. Such a record is no
    /// topic any more, and whoever finds it must not write a new one in its place before
    /// `TOMBSTONE_STANDS` is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<Timestamp>,
    /// The identities of the topic and its subscriptions. Older programs pass them over, so that a
    /// record with them needs no newer version, and drop them when they write: what has an
    /// identity is delivered to a record without.
    #[serde(default, skip_serializing_if = "TopicCreations::is_empty")]
    pub creations: TopicCreations,
    /// The place of `settings.delivery_log` in the stored record; `None` in memory. Older programs
    /// refuse members of the settings that they do not know, and pass this one over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery_log: Option<DeliveryLogMode>,
    /// The place of `settings.record_unmatched` in the stored record, for the same reason; `false`
    /// in memory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub record_unmatched: bool,
    /// The place of `settings.not_before_attribute`, for the same reason. Release 0.1 sends such
    /// events at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before_attribute: Option<String>,
    /// The place of `settings.sender_headers`, for the same reason. Release 0.1 sends the headers
    /// that it always sends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender_headers: Option<SenderHeaderSettings>,
    /// The place of `settings.delivery_failed_notices`, for the same reason. Release 0.1 knows no
    /// such setting, and sends these notices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery_failed_notices: Option<bool>,
    /// The place of `while_disabled` of each subscription, for the same reason; empty in memory.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub while_disabled: BTreeMap<SubscriptionName, WhileDisabled>,
    /// The place of `recovery` of each subscription, for the same reason; empty in memory.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub recovery: BTreeMap<SubscriptionName, RecoverySettings>,
    /// The place of `endpoint.max_concurrent_requests` of each subscription, for the same reason;
    /// empty in memory. Release 0.1 sends without this bound.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub max_concurrent_requests: BTreeMap<SubscriptionName, u32>,
    /// The ids of the audit entries of the last changes, the newest last. A writer that got no
    /// answer finds its own here, although another writer came after it. Older programs pass them
    /// over, and drop them when they write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last_changes: Vec<String>,
    /// Everything users wrote, subscriptions and their states included.
    pub settings: TopicSettings,
}

/// The time for which the object of a topic that was marked as deleted may still go. What is
/// written later in its place is safe: three times as long as a call of a store may take (20 s on
/// AWS).
pub(crate) const TOMBSTONE_STANDS: Duration = Duration::from_mins(1);

/// Most changes whose ids a record has. A writer that got no answer looks again within a minute; so
/// many changes of one topic are not made meanwhile.
const LAST_CHANGES_MAX: usize = 8;

/// The reason why a record cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TopicRecordError {
    /// Not a record, or written by a newer program.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// Settings this program does not accept.
    #[error("a setting is not accepted")]
    Settings(#[source] SettingsError),
}

impl TopicRecord {
    /// The record of a new topic, without settings.
    pub fn new(name: TopicName, [key1, key2]: [SecretText; 2], now: Timestamp) -> Self {
        Self {
            v: RECORD_VERSION,
            name,
            key1,
            key2,
            tier_keys: TierKeys::default(),
            created_at: now,
            updated_at: now,
            deleted_at: None,
            creations: TopicCreations::default(),
            delivery_log: None,
            record_unmatched: false,
            not_before_attribute: None,
            sender_headers: None,
            delivery_failed_notices: None,
            while_disabled: BTreeMap::new(),
            recovery: BTreeMap::new(),
            max_concurrent_requests: BTreeMap::new(),
            last_changes: Vec::new(),
            settings: TopicSettings::default(),
        }
    }

    /// Reads a record.
    pub fn parse(bytes: &[u8]) -> Result<Self, TopicRecordError> {
        let mut record = FORMAT.parse(bytes, |record: &Self| record.v)?;
        record.settings.delivery_log = record.delivery_log.take();
        record.settings.record_unmatched = take(&mut record.record_unmatched);
        record.settings.not_before_attribute = record.not_before_attribute.take();
        record.settings.sender_headers = record.sender_headers.take();
        // A record of 0.1 does not say whether there are notices of failed deliveries.
        let is_of_0_1 = record.settings.notices_topic.is_some().then_some(true);
        record.settings.delivery_failed_notices =
            record.delivery_failed_notices.take().or(is_of_0_1);
        for (name, chosen) in take(&mut record.while_disabled) {
            if let Some(subscription) = record.settings.subscriptions.get_mut(&name) {
                subscription.while_disabled = Some(chosen);
            }
        }
        for (name, chosen) in take(&mut record.recovery) {
            if let Some(subscription) = record.settings.subscriptions.get_mut(&name) {
                subscription.recovery = Some(chosen);
            }
        }
        for (name, chosen) in take(&mut record.max_concurrent_requests) {
            if let Some(subscription) = record.settings.subscriptions.get_mut(&name) {
                subscription.endpoint.max_concurrent_requests = Some(chosen);
            }
        }
        Ok(record)
    }

    /// The record without the signing secrets whose overlap has ended, so that nothing shows or
    /// counts them. They do not sign any more either way.
    pub fn without_ended_secrets(mut self, now: Timestamp) -> Self {
        for subscription in self.settings.subscriptions.values_mut() {
            subscription.signing = subscription.signing.live_at(now);
        }
        self
    }

    /// The oldest version that says what this record says. A tombstone would be a topic to version
    /// 1, and the first program would drop the keys of other tiers with its next write.
    fn oldest_version(&self) -> u32 {
        let is_version_1 = self.deleted_at.is_none()
            && self.tier_keys.is_empty()
            && version_1::has_all_of(&self.settings);
        if is_version_1 {
            VERSION_1
        } else {
            RECORD_VERSION
        }
    }

    /// Writes the record.
    pub fn render(&self) -> Bytes {
        let mut stored = self.clone();
        stored.delivery_log = stored.settings.delivery_log.take();
        stored.record_unmatched = take(&mut stored.settings.record_unmatched);
        stored.not_before_attribute = stored.settings.not_before_attribute.take();
        stored.sender_headers = stored.settings.sender_headers.take();
        stored.delivery_failed_notices = stored.settings.delivery_failed_notices.take();
        for (name, subscription) in &mut stored.settings.subscriptions {
            let chosen = subscription.while_disabled.take();
            let chosen = chosen.map(|chosen| (name.clone(), chosen));
            stored.while_disabled.extend(chosen);
            let recovery = subscription.recovery.take();
            let recovery = recovery.map(|recovery| (name.clone(), recovery));
            stored.recovery.extend(recovery);
            let concurrency = subscription.endpoint.max_concurrent_requests.take();
            let concurrency = concurrency.map(|most| (name.clone(), most));
            stored.max_concurrent_requests.extend(concurrency);
        }
        stored.v = stored.oldest_version();
        render_json(&stored)
    }

    /// The record of a topic that is being deleted: nothing of it is left but its name. Stores
    /// delete without a condition; this is written with one, so that no change is lost between
    /// a look at the record and its deletion.
    #[must_use]
    pub fn into_tombstone(self, now: Timestamp) -> Self {
        let key1 = SecretText::new("");
        let key2 = SecretText::new("");
        let tier_keys = TierKeys::default();
        let settings = TopicSettings::default();
        let creations = TopicCreations::default();
        Self {
            key1,
            key2,
            tier_keys,
            updated_at: now,
            deleted_at: Some(now),
            creations,
            settings,
            ..self
        }
    }

    /// The record with an identity for the topic and each subscription, written in the place of
    /// `before`; `None` where there was no topic.
    #[must_use]
    pub fn with_identities(
        mut self,
        before: Option<&Self>,
        now: Timestamp,
        random: impl FnMut() -> CreationId,
    ) -> Self {
        let subscriptions = self.settings.subscriptions.keys().map(|name| {
            let is_new =
                before.is_none_or(|before| !before.settings.subscriptions.contains_key(name));
            (name, is_new)
        });
        self.creations = self
            .creations
            .after_write(before.is_none(), subscriptions, now, random);
        self
    }

    /// The record as it is written by the change whose audit entry has this id.
    #[must_use]
    pub fn changed_by(mut self, entry_id: &str) -> Self {
        self.last_changes.push(entry_id.to_owned());
        let surplus = self.last_changes.len().saturating_sub(LAST_CHANGES_MAX);
        self.last_changes.drain(..surplus);
        self
    }

    /// Whether the change whose audit entry has this id is one of the last ones.
    pub fn has_change(&self, entry_id: &str) -> bool {
        self.last_changes.iter().any(|id| id == entry_id)
    }

    /// Whether nothing differs that users set, or that a state says: settings, subscriptions and
    /// keys, hidden values included.
    pub fn has_settings_of(&self, other: &Self) -> bool {
        self.settings == other.settings
            && self.key1 == other.key1
            && self.key2 == other.key2
            && self.tier_keys == other.tier_keys
    }

    /// The identities of a subscription and its topic.
    pub fn identities_of(&self, subscription: &SubscriptionName) -> SubscriptionCreation {
        let subscription = self.creations.subscriptions.get(subscription).copied();
        SubscriptionCreation {
            topic: self.creations.topic,
            subscription,
            topic_at: self.created_at,
        }
    }

    /// Whether a new topic may be written in this one's place: it was deleted, and its object would
    /// have gone by now.
    pub fn is_abandoned(&self, now: Timestamp) -> bool {
        self.deleted_at
            .is_some_and(|deleted_at| now >= deleted_at + TOMBSTONE_STANDS)
    }

    /// Takes out the subscriptions whose time is over, and answers their names.
    pub fn take_expired(&mut self, now: Timestamp) -> Vec<SubscriptionName> {
        let subscriptions = &mut self.settings.subscriptions;
        let expired = subscriptions.extract_if(.., |_, settings| {
            settings
                .expiration_time_utc
                .is_some_and(|ends_at| now >= ends_at.0)
        });
        expired.map(|(name, _)| name).collect()
    }

    /// Whether the topic, or a subscription of it, will be deleted automatically.
    pub fn is_temporary(&self) -> bool {
        self.settings.auto_delete_on_idle.is_some()
            || self.settings.subscriptions.values().any(|settings| {
                settings.auto_delete_on_idle.is_some() || settings.expiration_time_utc.is_some()
            })
    }

    /// Puts a key in its place, in the place of one that was there.
    pub fn set_key(&mut self, name: KeyName, key: SecretText) {
        match self.tier_keys.slot_mut(name) {
            Some(place) => *place = Some(key),
            None if name == KeyName::Key1 => self.key1 = key,
            None => self.key2 = key,
        }
    }

    /// Sets the keys that are written with the topic. The others stay.
    pub fn put_keys(&mut self, written: &TopicKeySettings) -> Result<(), SettingsError> {
        check_topic_keys(written, Some(&self.shown_keys()))?;
        for (name, key) in written.written_keys() {
            self.set_key(name, key.clone());
        }
        Ok(())
    }

    /// Takes a key away, and answers whether it was there. `None` for one that every topic has.
    pub fn remove_key(&mut self, name: KeyName) -> Option<bool> {
        self.tier_keys
            .slot_mut(name)
            .map(|place| place.take().is_some())
    }

    /// The keys as their topic's owner sees them, in clear.
    pub fn shown_keys(&self) -> TopicKeysView {
        let Self {
            key1,
            key2,
            tier_keys,
            ..
        } = self.clone();
        TopicKeysView {
            key1,
            key2,
            tier_keys,
        }
    }

    /// The keys as they open the topic.
    pub fn topic_keys(&self) -> TopicKeys {
        let mut keys = TopicKeys::new(
            Secret::new(self.key1.expose()),
            Secret::new(self.key2.expose()),
        );
        for (name, key) in self.shown_keys().present_keys() {
            if !name.is_permanent() {
                keys = keys.with_key(name.tier(), Secret::new(key.expose()));
            }
        }
        keys
    }

    /// The topic as the rules use it.
    pub fn compile(&self) -> Result<Topic, TopicRecordError> {
        let topic = compile_topic(&self.name, &self.settings, self.topic_keys())
            .map_err(TopicRecordError::Settings)?;
        let mut topic = Topic {
            created_at: self.created_at,
            creation: self.creations.topic,
            ..topic
        };
        for subscription in topic.subscriptions.values_mut() {
            let created = self.identities_of(&subscription.name);
            // Compiled a moment ago: it has no other holder.
            if let Some(subscription) = Arc::get_mut(subscription) {
                subscription.created = created;
            }
        }
        Ok(topic)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{CreationRecord, Identity, ProducerTier, SlotLimit};

    /// Version 1 as it was first written. Never edited.
    const V1: &str = include_str!("fixtures/topic-v1.json");

    /// Version 1 with identities, which the first program passes over. Never edited.
    const V1_IDENTITIES: &str = include_str!("fixtures/topic-v1-identities.json");

    /// Version 1 with a mode of the delivery log, which older programs pass over. Never edited.
    const V1_DELIVERY_LOG: &str = include_str!("fixtures/topic-v1-delivery-log.json");
    const V1_WHILE_DISABLED: &str = include_str!("fixtures/topic-v1-while-disabled.json");
    const V1_RECOVERY: &str = include_str!("fixtures/topic-v1-recovery.json");

    /// Version 1 with a bound on open requests, which the first program passes over. Never edited.
    const V1_CONCURRENCY: &str = include_str!("fixtures/topic-v1-concurrency.json");
    const V1_RECORD_UNMATCHED: &str = include_str!("fixtures/topic-v1-record-unmatched.json");

    /// Version 1 of a topic whose events may be scheduled by an extension. Never edited.
    const V1_NOT_BEFORE: &str = include_str!("fixtures/topic-v1-not-before.json");

    /// Version 1 of a topic that is sent in its sender's name. Never edited.
    const V1_SENDER_HEADERS: &str = include_str!("fixtures/topic-v1-sender-headers.json");

    /// Version 1 with its last changes, which older programs pass over. Never edited.
    const V1_LAST_CHANGES: &str = include_str!("fixtures/topic-v1-last-changes.json");

    /// Version 2: with custom headers, partial acknowledgement, and a secret that is rotated out.
    /// Never edited.
    const V2_ROTATED: &str = include_str!("fixtures/topic-v2-rotated.json");

    /// Version 2: with keys of other tiers. Never edited.
    const V2_TIER_KEYS: &str = include_str!("fixtures/topic-v2-tier-keys.json");

    #[test]
    fn a_record_is_read_and_written_as_its_fixture() {
        let record = TopicRecord::parse(V1.as_bytes()).unwrap();
        assert_eq!(record.render(), V1.trim_end());
        let topic = record.compile().unwrap();
        let tiers = ["k1", "k2", "k3"].map(|key| topic.keys.tier_of(key));
        assert_eq!(
            tiers,
            [
                Some(ProducerTier::Standard),
                Some(ProducerTier::Standard),
                None
            ]
        );
        assert_eq!(topic.subscriptions["billing"].signing.len(), 1);
    }

    #[test]
    fn record_with_headers_and_rotation_round_trips_as_its_fixture() {
        let record = TopicRecord::parse(V2_ROTATED.as_bytes()).unwrap();
        assert_eq!(record.render(), V2_ROTATED.trim_end());
        let topic = record.compile().unwrap();
        let billing = &topic.subscriptions["billing"];
        let rotated = Timestamp::from_millis(1_700_000_000_000);
        let ended = Timestamp::from_millis(1_700_086_400_000);
        let live = |at| {
            billing
                .signing
                .iter()
                .filter(|secret| secret.is_live(at))
                .count()
        };
        assert_eq!((live(rotated), live(ended)), (2, 1));
        assert!(billing.batching.partial_acknowledgement && billing.delivery_headers.len() == 2);
        assert_eq!(record.clone().without_ended_secrets(rotated), record);
        let after = record.without_ended_secrets(ended);
        assert_eq!(
            after.compile().unwrap().subscriptions["billing"]
                .signing
                .len(),
            1
        );
    }

    #[test]
    fn record_with_other_tiers_keys_round_trips_as_its_fixture() {
        let record = TopicRecord::parse(V2_TIER_KEYS.as_bytes()).unwrap();
        assert_eq!(record.render(), V2_TIER_KEYS.trim_end());
        let tier_of = |record: &TopicRecord, key: &str| record.compile().unwrap().keys.tier_of(key);
        let tiers = ["k1", "k2", "i1", "b1", "b2", "i2"].map(|key| tier_of(&record, key));
        let internal = Some(ProducerTier::Internal);
        let standard = Some(ProducerTier::Standard);
        let bulk = Some(ProducerTier::Bulk);
        assert_eq!(tiers, [standard, standard, internal, bulk, bulk, None]);
        let mut changed = record.clone();
        for name in KeyName::ALL {
            changed.set_key(name, SecretText::new(format!("new {name}")));
        }
        for name in KeyName::ALL {
            assert_eq!(tier_of(&changed, &format!("new {name}")), Some(name.tier()));
            assert_eq!(
                changed.remove_key(name),
                (!name.is_permanent()).then_some(true)
            );
            assert_eq!(
                changed.remove_key(name),
                (!name.is_permanent()).then_some(false)
            );
        }
        assert_eq!(
            (
                changed.render().starts_with(b"{\"v\":1,"),
                changed.tier_keys.is_empty()
            ),
            (true, true)
        );
        assert!(record.into_tombstone(Timestamp::EPOCH).tier_keys.is_empty());
    }

    #[test]
    fn a_record_with_identities_is_read_and_written_as_its_fixture() {
        let record = TopicRecord::parse(V1_IDENTITIES.as_bytes()).unwrap();
        assert_eq!(record.render(), V1_IDENTITIES.trim_end());
        let topic = record.compile().unwrap();
        let created = topic.subscriptions["billing"].created;
        assert_eq!(
            created.identity(),
            Identity::parse("a1b2c3d4e5f60102030405ff")
        );
        assert_eq!(
            (topic.creation, created.topic_at),
            (created.topic, topic.created_at)
        );
        let at = |creation: Option<CreationRecord>| creation.unwrap().at;
        assert_eq!(
            (at(created.topic), at(created.subscription)),
            (Some(topic.created_at), None)
        );
        assert!(record.into_tombstone(Timestamp::EPOCH).creations.is_empty());
    }

    #[test]
    fn record_with_a_delivery_log_mode_round_trips_as_its_fixture() {
        let record = TopicRecord::parse(V1_DELIVERY_LOG.as_bytes()).unwrap();
        assert_eq!(record.render(), V1_DELIVERY_LOG.trim_end());
        let of_settings = record.settings.delivery_log;
        let topic = record.compile().unwrap();
        let compiled = [
            of_settings,
            topic.delivery_log,
            topic.subscriptions["billing"].delivery_log,
        ];
        assert_eq!(compiled, [Some(DeliveryLogMode::Off); 3]);
        assert_eq!(
            record
                .clone()
                .into_tombstone(Timestamp::EPOCH)
                .settings
                .delivery_log,
            None
        );
        let older = TopicRecord::parse(V1.as_bytes())
            .unwrap()
            .compile()
            .unwrap();
        assert_eq!(
            [
                older.delivery_log,
                older.subscriptions["billing"].delivery_log
            ],
            [None; 2]
        );
    }

    /// A record with a choice for disabled subscriptions is read and written as its fixture.
    #[test]
    fn record_with_a_while_disabled_choice_is_as_its_fixture() {
        let record = TopicRecord::parse(V1_WHILE_DISABLED.as_bytes()).unwrap();
        assert_eq!(record.render(), V1_WHILE_DISABLED.trim_end());
        let choice = record.compile().unwrap().subscriptions["billing"].while_disabled;
        assert_eq!(choice, Some(WhileDisabled::Skip));
        // A program that dropped the subscription may have left the choice.
        let other = V1_WHILE_DISABLED.replace("\"Billing\":\"skip\"", "\"crm\":\"skip\"");
        let record = TopicRecord::parse(other.as_bytes()).unwrap();
        assert_eq!(
            record.compile().unwrap().subscriptions["billing"].while_disabled,
            None
        );
    }

    #[test]
    fn record_with_a_recovery_is_as_its_fixture() {
        let record = TopicRecord::parse(V1_RECOVERY.as_bytes()).unwrap();
        assert_eq!(record.render(), V1_RECOVERY.trim_end());
        let recovery = record.compile().unwrap().subscriptions["billing"].recovery;
        assert_eq!((recovery.enabled, recovery.rate_per_second), (false, 20));
        let older = TopicRecord::parse(V1.as_bytes()).unwrap();
        assert!(
            older.compile().unwrap().subscriptions["billing"]
                .recovery
                .enabled
        );
    }

    #[test]
    fn record_with_a_bound_on_open_requests_is_as_its_fixture() {
        let record = TopicRecord::parse(V1_CONCURRENCY.as_bytes()).unwrap();
        assert_eq!(record.render(), V1_CONCURRENCY.trim_end());
        let compiled = record.compile().unwrap();
        let concurrency = compiled.subscriptions["billing"].concurrency;
        assert_eq!(concurrency.map(SlotLimit::requests), Some(5));
        let older = TopicRecord::parse(V1.as_bytes()).unwrap();
        let older = older.compile().unwrap();
        assert_eq!(older.subscriptions["billing"].concurrency, None);
    }

    #[test]
    fn record_that_asks_for_unmatched_events_is_as_its_fixture() {
        let record = TopicRecord::parse(V1_RECORD_UNMATCHED.as_bytes()).unwrap();
        assert_eq!(record.render(), V1_RECORD_UNMATCHED.trim_end());
        assert!(record.settings.record_unmatched && record.compile().unwrap().record_unmatched);
        let tombstone = record.into_tombstone(Timestamp::EPOCH);
        assert!(!tombstone.settings.record_unmatched);
        let older = TopicRecord::parse(V1.as_bytes()).unwrap();
        assert!(!older.compile().unwrap().record_unmatched);
    }

    #[test]
    fn record_of_a_topic_in_its_senders_name_is_as_its_fixture() {
        let record = TopicRecord::parse(V1_SENDER_HEADERS.as_bytes()).unwrap();
        assert_eq!(record.render(), V1_SENDER_HEADERS.trim_end());
        let topic = record.compile().unwrap();
        let headers = topic.subscriptions["billing"].sender_headers.as_ref();
        let names = headers.map(|it| it.own_names().map(ToString::to_string).collect::<Vec<_>>());
        let expected = ["acme-subscription-name", "acme-attempt", "acme-replayed"];
        assert_eq!(names.unwrap(), expected);
        let tombstone = record.into_tombstone(Timestamp::EPOCH);
        assert_eq!(tombstone.settings.sender_headers, None);
    }

    #[test]
    fn record_of_a_topic_with_scheduled_events_is_as_its_fixture() {
        let record = TopicRecord::parse(V1_NOT_BEFORE.as_bytes()).unwrap();
        assert_eq!(record.render(), V1_NOT_BEFORE.trim_end());
        let name = record.compile().unwrap().not_before_attribute;
        assert_eq!(name.as_deref(), Some("notbefore"));
        let tombstone = record.into_tombstone(Timestamp::EPOCH);
        assert_eq!(tombstone.settings.not_before_attribute, None);
    }

    #[test]
    fn record_with_its_last_changes_is_as_its_fixture() {
        let record = TopicRecord::parse(V1_LAST_CHANGES.as_bytes()).unwrap();
        assert_eq!(record.render(), V1_LAST_CHANGES.trim_end());
        assert!(record.has_change("6f1c0c9e4d1b4f6e9a3b8a51c2d0e7f4"));
        let first = TopicRecord::parse(V1.as_bytes()).unwrap();
        assert!(record.has_settings_of(&first) && !first.has_change("6f1c"));
    }

    #[test]
    fn record_forgets_the_oldest_of_its_last_changes() {
        let mut record = TopicRecord::parse(V1.as_bytes()).unwrap();
        for id in 0..=LAST_CHANGES_MAX {
            record = record.changed_by(&id.to_string());
        }
        assert!(!record.has_change("0"));
        for id in 1..=LAST_CHANGES_MAX {
            assert!(record.has_change(&id.to_string()), "{id}");
        }
        assert!(record.into_tombstone(Timestamp::EPOCH).has_change("1"));
    }

    #[test]
    fn record_with_another_key_or_setting_is_not_the_same() {
        let record = TopicRecord::parse(V1.as_bytes()).unwrap();
        for name in KeyName::ALL {
            let mut other = record.clone();
            other.set_key(name, SecretText::new("another"));
            assert!(!other.has_settings_of(&record), "{name}");
        }
        let other = TopicRecord::parse(V1_RECORD_UNMATCHED.as_bytes()).unwrap();
        assert!(!other.has_settings_of(&record));
        let later = TopicRecord {
            updated_at: Timestamp::EPOCH,
            ..record.clone().changed_by("one")
        };
        assert!(later.has_settings_of(&record));
    }

    #[test]
    fn a_write_gives_identities_and_keeps_them() {
        let mut next = 0;
        let mut random = || {
            next += 1;
            CreationId::new([next; 6])
        };
        let now = Timestamp::from_millis(1_800_000_000_000);
        let old = TopicRecord::parse(V1.as_bytes()).unwrap();
        let updated = old.clone().with_identities(Some(&old), now, &mut random);
        let [topic, billing] = [1, 2].map(|byte| CreationRecord {
            id: CreationId::new([byte; 6]),
            at: None,
        });
        let name = SubscriptionName::parse("Billing").unwrap();
        let of = |record: &TopicRecord| record.identities_of(&name);
        assert_eq!(
            (of(&updated).topic, of(&updated).subscription),
            (Some(topic), Some(billing))
        );
        assert_eq!(
            updated
                .clone()
                .with_identities(Some(&updated), now, &mut random),
            updated
        );
        let mut without = updated.clone();
        without.settings.subscriptions.clear();
        let again = updated
            .clone()
            .with_identities(Some(&without), now, &mut random);
        assert_eq!(
            of(&again).subscription,
            Some(CreationRecord {
                id: CreationId::new([3; 6]),
                at: Some(now)
            })
        );
        assert_eq!(of(&again).topic, Some(topic));
        let created = updated.clone().with_identities(None, now, &mut random);
        assert_eq!(of(&created).topic.and_then(|topic| topic.at), Some(now));
        assert_ne!(of(&created).subscription.map(|it| it.id), Some(billing.id));
    }

    #[test]
    fn a_broken_record_is_never_an_empty_topic() {
        assert!(matches!(
            TopicRecord::parse(b""),
            Err(TopicRecordError::Format(FormatError::Malformed(..)))
        ));
        assert!(matches!(
            TopicRecord::parse(&V1.as_bytes()[..100]),
            Err(TopicRecordError::Format(FormatError::Malformed(..)))
        ));
        let newer = V1
            .replace("\"v\":1", "\"v\":3")
            .replace("\"name\"", "\"title\"");
        assert!(matches!(
            TopicRecord::parse(newer.as_bytes()),
            Err(TopicRecordError::Format(FormatError::Newer(3)))
        ));
    }

    fn temporary(members: &str) -> TopicRecord {
        let with = format!("\"endpoint\":{{\"url\":\"https://a.example/\"}},{members}");
        let text = format!(
            r#"{{"v":1,"name":"orders","key1":"a","key2":"b","createdAt":0,"updatedAt":0,
                "settings":{{"subscriptions":{{"Billing":{{{with}"contentMode":"structured"}}}}}}}}"#
        );
        TopicRecord::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_subscription_leaves_the_record_at_its_time() {
        let check = |members: &str, now, expected: &[&str]| {
            let mut record = temporary(members);
            let expired = record.take_expired(Timestamp::from_millis(now));
            let names: Vec<_> = expired.iter().map(SubscriptionName::as_str).collect();
            assert_eq!(
                (names.as_slice(), record.settings.subscriptions.len()),
                (expected, 1 - expected.len())
            );
        };
        let at_ten = r#""expirationTimeUtc":"1970-01-01T00:00:10Z","#;
        check("", 10_000, &[]);
        check(at_ten, 9_999, &[]);
        check(at_ten, 10_000, &["Billing"]);
    }

    #[test]
    fn a_record_says_whether_anything_of_it_goes_by_itself() {
        assert!(!temporary("").is_temporary());
        assert!(temporary(r#""expirationTimeUtc":"2999-01-01T00:00:00Z","#).is_temporary());
        assert!(temporary(r#""autoDeleteOnIdle":"PT5M","#).is_temporary());
        let mut topic = temporary("");
        topic.settings.auto_delete_on_idle = Some(crate::api::IsoDuration(Duration::from_mins(5)));
        assert!(topic.is_temporary());
    }

    #[test]
    fn a_tombstone_holds_nothing_and_is_abandoned_after_a_while() {
        let now = Timestamp::from_millis(1_000_000);
        let tombstone = TopicRecord::parse(V1.as_bytes())
            .unwrap()
            .into_tombstone(now);
        assert!(tombstone.settings == TopicSettings::default() && !tombstone.is_temporary());
        let read = TopicRecord::parse(&tombstone.render()).unwrap();
        assert_eq!(
            (read.deleted_at, read.is_abandoned(now)),
            (Some(now), false)
        );
        assert!(read.is_abandoned(now + TOMBSTONE_STANDS));
        assert!(
            !TopicRecord::parse(V1.as_bytes())
                .unwrap()
                .is_abandoned(now + TOMBSTONE_STANDS)
        );
    }

    #[test]
    fn debug_shows_no_secret() {
        for record in [V1, V2_ROTATED, V2_TIER_KEYS] {
            let record = TopicRecord::parse(record.as_bytes()).unwrap();
            let shown = format!("{record:?} {:?}", record.compile().unwrap());
            for secret in ["whsec_", "whsk_", "\"k1", "\"i1", "\"b2", "s3cret"] {
                assert!(!shown.contains(secret), "{secret}");
            }
        }
    }
}
