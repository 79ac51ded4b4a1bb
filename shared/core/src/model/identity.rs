//! Identity of topics and subscriptions: each creation under a name has a random one, so that a
//! subscription that was deleted and created again never receives events that were accepted for the
//! old one. Identities are compared for equality. Times are compared only where one side has no
//! identity of its own: messages and records of older programs.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::model::{CREATED_AGAIN_MARGIN, SubscriptionName, Timestamp, hex};

/// Random bytes of one creation. Only the creations under one name are ever compared, so that 48
/// bits suffice.
pub const CREATION_ID_BYTES: usize = 6;

/// A random value that one creation of a topic or of a subscription has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CreationId([u8; CREATION_ID_BYTES]);

/// The creation of a topic together with that of a subscription on it: 24 hexadecimal digits, the
/// topic's first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    /// The topic's creation.
    pub topic: CreationId,
    /// The subscription's creation.
    pub subscription: CreationId,
}

/// A creation as a topic's record has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreationRecord {
    /// Random.
    pub id: CreationId,
    /// The time of the creation. `None` where the topic or subscription is older than its
    /// identity: it was created by an older program, or an older program dropped the identity
    /// with a write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
}

/// The creations of a topic and its subscriptions as its record has them. Empty in records of older
/// programs, which pass the member over and drop it when they write.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TopicCreations {
    /// The topic's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<CreationRecord>,
    /// The creations of the subscriptions, by their names as they are stored.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub subscriptions: BTreeMap<SubscriptionName, CreationRecord>,
}

/// The creations of one subscription and its topic, as far as the topic's record has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscriptionCreation {
    /// The topic's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<CreationRecord>,
    /// The subscription's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscription: Option<CreationRecord>,
    /// The topic's time, which every record has.
    pub topic_at: Timestamp,
}

impl CreationRecord {
    /// A creation with this id, which has a time if the topic or subscription is new.
    fn begin(id: CreationId, is_new: bool, now: Timestamp) -> Self {
        Self {
            id,
            at: is_new.then_some(now),
        }
    }
}

impl CreationId {
    /// The creation of these random bytes.
    pub const fn new(bytes: [u8; CREATION_ID_BYTES]) -> Self {
        Self(bytes)
    }

    fn parse(text: &str) -> Option<Self> {
        hex::parse(text).map(Self)
    }
}

impl Identity {
    /// Reads 24 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let (topic, subscription) = text.split_at_checked(2 * CREATION_ID_BYTES)?;
        Some(Self {
            topic: CreationId::parse(topic)?,
            subscription: CreationId::parse(subscription)?,
        })
    }
}

impl TopicCreations {
    /// No creations.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The creations after a write: an existing entity keeps its creation, and gets one if it has
    /// none; a new one gets a creation with its time.
    #[must_use]
    pub fn after_write<'a>(
        &self,
        is_new_topic: bool,
        subscriptions: impl Iterator<Item = (&'a SubscriptionName, bool)>,
        now: Timestamp,
        mut random: impl FnMut() -> CreationId,
    ) -> Self {
        let topic = match self.topic {
            Some(present) if !is_new_topic => present,
            _ => CreationRecord::begin(random(), is_new_topic, now),
        };
        let named = subscriptions.map(|(name, is_new)| {
            let creation = match self.subscriptions.get(name) {
                Some(present) if !is_new => *present,
                _ => CreationRecord::begin(random(), is_new, now),
            };
            (name.clone(), creation)
        });
        Self {
            subscriptions: named.collect(),
            topic: Some(topic),
        }
    }
}

impl SubscriptionCreation {
    /// A subscription and a topic without identities, as settings alone make them.
    pub const UNKNOWN: Self = Self {
        topic: None,
        subscription: None,
        topic_at: Timestamp::EPOCH,
    };

    /// The identity that messages carry; `None` where the topic's record has none yet.
    pub fn identity(&self) -> Option<Identity> {
        Some(Identity {
            topic: self.topic?.id,
            subscription: self.subscription?.id,
        })
    }

    /// Whether events that were accepted at `accepted_at` for the subscription of this identity
    /// were accepted for this creation of it.
    pub fn has_accepted(&self, identity: Option<Identity>, accepted_at: Timestamp) -> bool {
        let subscription = identity.map(|identity| identity.subscription);
        let at = self.subscription.and_then(|creation| creation.at);
        self.topic_accepted(identity, accepted_at)
            && is_of(self.subscription, at, subscription, accepted_at)
    }

    /// Whether events were accepted for this creation of the topic alone.
    pub fn topic_accepted(&self, identity: Option<Identity>, accepted_at: Timestamp) -> bool {
        let topic = identity.map(|identity| identity.topic);
        is_of(self.topic, Some(self.topic_at), topic, accepted_at)
    }
}

/// Whether events that were accepted at this time for the creation `id` were accepted for this one,
/// which took place at `at`. A creation that is older than its identity may have had another one
/// before an older program dropped it.
fn is_of(
    own: Option<CreationRecord>,
    at: Option<Timestamp>,
    id: Option<CreationId>,
    accepted_at: Timestamp,
) -> bool {
    match (own, id) {
        (Some(own), Some(id)) if own.id == id => true,
        (Some(CreationRecord { at: Some(_), .. }), Some(_)) => false,
        _ => at.is_none_or(|at| accepted_at + CREATED_AGAIN_MARGIN >= at),
    }
}

impl fmt::Display for CreationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex::write(f, self.0)
    }
}

impl fmt::Debug for CreationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.topic, self.subscription)
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for CreationId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for Identity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CreationId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom("expected 12 hexadecimal digits"))
    }
}

impl<'de> Deserialize<'de> for Identity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom("expected 24 hexadecimal digits"))
    }
}

#[cfg(test)]
#[expect(
    clippy::unnecessary_wraps,
    reason = "the helpers make what the fields hold"
)]
mod tests {
    use super::*;
    use std::time::Duration;

    const AT: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    fn id(byte: u8) -> CreationId {
        CreationId::new([byte; CREATION_ID_BYTES])
    }

    fn identity(topic: u8, subscription: u8) -> Option<Identity> {
        Some(Identity {
            topic: id(topic),
            subscription: id(subscription),
        })
    }

    /// A creation that has had its identity from its beginning.
    fn born(byte: u8, at: Timestamp) -> Option<CreationRecord> {
        Some(CreationRecord {
            id: id(byte),
            at: Some(at),
        })
    }

    /// A creation that was there before its identity.
    fn adopted(byte: u8) -> Option<CreationRecord> {
        Some(CreationRecord {
            id: id(byte),
            at: None,
        })
    }

    #[test]
    fn an_identity_is_written_and_read_back() {
        let written = identity(0xa1, 0x0b);
        let text = r#""a1a1a1a1a1a10b0b0b0b0b0b""#;
        assert_eq!(serde_json::to_string(&written).unwrap(), text);
        assert_eq!(
            serde_json::from_str::<Option<Identity>>(text).unwrap(),
            written
        );
        let digits = text.trim_matches('"');
        for bad in [
            "",
            &digits[1..],
            &digits.to_uppercase(),
            &digits.replace('b', "g"),
            &"ü".repeat(12),
        ] {
            assert_eq!(Identity::parse(bad), None, "{bad}");
        }
    }

    /// Acceptance for another creation is told by its identity, whatever the clocks say.
    #[test]
    fn identity_decides_the_creation_whatever_clocks_say() {
        let created = SubscriptionCreation {
            topic: born(1, AT),
            subscription: born(2, AT),
            topic_at: AT,
        };
        assert_eq!(created.identity(), identity(1, 2));
        for accepted_at in [Timestamp::EPOCH, AT, AT + Duration::from_hours(1)] {
            assert!(created.has_accepted(identity(1, 2), accepted_at));
            assert!(!created.has_accepted(identity(1, 3), accepted_at));
            assert!(!created.has_accepted(identity(3, 2), accepted_at));
            assert!(created.topic_accepted(identity(1, 3), accepted_at));
            assert!(!created.topic_accepted(identity(3, 2), accepted_at));
        }
    }

    /// Times decide without an identity, with a minute's tolerance towards delivery.
    #[test]
    fn missing_identity_falls_back_to_times_with_a_minute() {
        let just = Timestamp::from_millis(AT.as_millis() - 60_000);
        let before = Timestamp::from_millis(AT.as_millis() - 60_001);
        let early = Timestamp::EPOCH;
        let check = |created: SubscriptionCreation, identity| {
            assert_eq!(
                [just, before].map(|at| created.has_accepted(identity, at)),
                [true, false],
                "{created:?}"
            );
        };
        check(
            SubscriptionCreation {
                topic: born(1, early),
                subscription: born(2, AT),
                topic_at: early,
            },
            None,
        );
        check(
            SubscriptionCreation {
                topic: born(1, AT),
                subscription: born(2, early),
                topic_at: AT,
            },
            None,
        );
        check(
            SubscriptionCreation {
                topic: None,
                subscription: None,
                topic_at: AT,
            },
            None,
        );
        // The record lost its identities to an older program.
        check(
            SubscriptionCreation {
                topic: None,
                subscription: None,
                topic_at: AT,
            },
            identity(1, 2),
        );
        check(
            SubscriptionCreation {
                topic: adopted(3),
                subscription: adopted(4),
                topic_at: AT,
            },
            identity(1, 2),
        );
        check(
            SubscriptionCreation {
                topic: adopted(3),
                subscription: born(2, AT),
                topic_at: early,
            },
            None,
        );
    }

    /// A record that lost its identities still receives events that were accepted with them.
    #[test]
    fn record_without_identities_still_accepts_earlier_events() {
        let later = AT + Duration::from_hours(1);
        let lost = SubscriptionCreation {
            topic: None,
            subscription: None,
            topic_at: AT,
        };
        assert_eq!(lost.identity(), None);
        let adopted = SubscriptionCreation {
            topic: adopted(3),
            subscription: adopted(4),
            topic_at: AT,
        };
        for created in [
            lost,
            adopted,
            SubscriptionCreation {
                topic: born(1, AT),
                ..adopted
            },
        ] {
            assert!(created.has_accepted(identity(1, 2), later), "{created:?}");
        }
        assert!(
            !SubscriptionCreation {
                subscription: born(5, AT),
                ..adopted
            }
            .has_accepted(identity(1, 2), later)
        );
    }

    #[test]
    fn a_write_keeps_creations_and_makes_those_that_are_missing() {
        let names = ["a", "b", "c"].map(|name| SubscriptionName::parse(name).unwrap());
        let mut next = 0;
        let mut random = || {
            next += 1;
            id(next)
        };
        let first = TopicCreations::default().after_write(
            true,
            [(&names[0], true)].into_iter(),
            AT,
            &mut random,
        );
        assert_eq!(
            (first.topic, first.subscriptions[&names[0]]),
            (born(1, AT), born(2, AT).unwrap())
        );
        let later = AT + Duration::from_hours(1);
        // The second one was there without an identity. The third one takes the name of one that is
        // gone.
        let mut stale = first.clone();
        stale
            .subscriptions
            .insert(names[2].clone(), born(9, AT).unwrap());
        let given = [(&names[0], false), (&names[1], false), (&names[2], true)];
        let second = stale.after_write(false, given.into_iter(), later, &mut random);
        assert_eq!(second.topic, born(1, AT));
        let creations: Vec<_> = names
            .iter()
            .map(|name| Some(second.subscriptions[name]))
            .collect();
        assert_eq!(creations, [born(2, AT), adopted(3), born(4, later)]);
        let none = second.after_write(true, std::iter::empty(), later, &mut random);
        assert_eq!((none.topic, none.subscriptions.len()), (born(5, later), 0));
    }
}
