//! Topics and subscriptions as the rules use them: checked, with every default filled in.

use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::model::filter::{Filter, FilterSet};
use crate::model::word::display_the_word;
use crate::model::{
    BatchPolicy, ContentMode, CreationRecord, DISABLED_KEPT, DeliveryHeader, DeliveryLogMode,
    EndpointUrl, EventSchema, Identity, InputMapping, ProducerTier, RecoveryPolicy, RequestRate,
    RetryPolicy, Secret, SenderHeaders, SigningSecret, SlotLimit, SubscriptionCreation,
    SubscriptionLifetime, SubscriptionName, Timestamp, TopicName,
};

/// A topic with its subscriptions.
#[derive(Debug)]
pub struct Topic {
    /// The topic's name.
    pub name: TopicName,
    /// When it was made: what tells it from one of its name that was deleted. [`Timestamp::EPOCH`]
    /// where only settings are known.
    pub created_at: Timestamp,
    /// The topic's identity; `None` if an older program wrote its record, or only settings are
    /// known.
    pub creation: Option<CreationRecord>,
    /// The schema of the events it accepts.
    pub input_schema: EventSchema,
    /// The places of the members in a custom event that the rules look at.
    pub input_mapping: InputMapping,
    /// Default and cap of the time to live of its events.
    pub default_time_to_live: Option<Duration>,
    /// The time without activity after which it is deleted.
    pub auto_delete_on_idle: Option<Duration>,
    /// The topic that notices about its deliveries go to. It may be missing.
    pub notices_topic: Option<TopicName>,
    /// Whether each event that is given up has a notice.
    pub delivery_failed_notices: bool,
    /// The mode of the delivery log for its deliveries. `None` is the installation's default.
    pub delivery_log: Option<DeliveryLogMode>,
    /// Whether an event that matches no subscription has a record in the delivery log.
    pub record_unmatched: bool,
    /// The extension of its CloudEvents that has the time before which an event is not sent.
    pub not_before_attribute: Option<String>,
    /// The keys that open it to producers.
    pub keys: TopicKeys,
    /// The subscriptions by folded name, sorted by it.
    pub subscriptions: IndexMap<String, Arc<Subscription>>,
    /// The filters of all subscriptions, in the same order.
    pub filters: FilterSet,
}

/// A subscription.
#[derive(Debug)]
pub struct Subscription {
    /// The topic it is on.
    pub topic: TopicName,
    /// The subscription's name.
    pub name: SubscriptionName,
    /// The creation of this subscription, to tell it from others of its name. [`SubscriptionCreation::UNKNOWN`]
    /// if only settings are known.
    pub created: SubscriptionCreation,
    /// The endpoint that its events go to.
    pub endpoint: EndpointUrl,
    /// The endpoint that its events go to while the first one, or its link, is in Retry. The two
    /// differ.
    pub fallback: Option<EndpointUrl>,
    /// The time that the endpoint has to answer.
    pub timeout: Duration,
    /// The schema its events are sent in.
    pub delivery_schema: EventSchema,
    /// The place of a CloudEvent in a request.
    pub content_mode: ContentMode,
    /// The filter that chooses its events.
    pub filter: Arc<Filter>,
    /// The rules for further attempts.
    pub retry: RetryPolicy,
    /// The rules by which events travel together.
    pub batching: BatchPolicy,
    /// The treatment of events that are given up.
    pub dead_letter: DeadLetterPolicy,
    /// Whether dead letters of an outage are sent again by themselves.
    pub recovery: RecoveryPolicy,
    /// The headers that are added to its requests.
    pub delivery_headers: Vec<DeliveryHeader>,
    /// The headers that identify the sender, where the topic has its own.
    pub sender_headers: Option<SenderHeaders>,
    /// The secrets that sign its requests.
    pub signing: Vec<SigningSecret>,
    /// The time for which it exists.
    pub lifetime: SubscriptionLifetime,
    /// The mode of the delivery log for its topic's deliveries. `None` is the installation's
    /// default.
    pub delivery_log: Option<DeliveryLogMode>,
    /// Whether its events are delivered. What matters is [`Subscription::status_at`].
    pub status: SubscriptionStatus,
    /// The chosen fate of events that are published while the subscription is disabled.
    pub while_disabled: Option<WhileDisabled>,
    /// The time at which an answer of its endpoint disabled it. `None` if that did not happen, or
    /// an operator did.
    pub gone_at: Option<Timestamp>,
    /// The time since which it has that state. `None` if the state was never changed.
    pub status_since: Option<Timestamp>,
    /// The time until which the endpoint may consent while it is [`SubscriptionStatus::PendingLease`].
    pub pending_until: Option<Timestamp>,
    /// The most requests, over all workers: its own wish or what the endpoint allowed, whichever
    /// is less.
    pub rate: Option<RequestRate>,
    /// The most requests that are open at once, over all workers.
    pub concurrency: Option<SlotLimit>,
}

/// The treatment of events that are given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeadLetterPolicy {
    /// Whether they are kept at all.
    pub enabled: bool,
    /// Whether expired ones are kept.
    pub on_expiry: bool,
    /// The time between the last attempt and the object.
    pub delay: Duration,
    /// The time for which the bucket may refuse an event before it is dropped.
    pub give_up_after: Option<Duration>,
}

/// The state of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[schema(as = StatusState)]
pub enum SubscriptionStatus {
    /// Events are delivered.
    #[default]
    Active,
    /// The endpoint has not agreed yet: events wait, without an attempt.
    Pending,
    /// An operator paused it: events wait, without an attempt.
    Paused,
    /// The endpoint did not agree: new events pass by, and those that waited before go on waiting.
    Failed,
    /// The endpoint is gone, or an operator disabled it: waiting events are dead-lettered with
    /// `EndpointGone`, and new ones with `SubscriptionDisabled` or skipped.
    Disabled,
}

display_the_word!(SubscriptionStatus);

/// What becomes of events that are published while a subscription is disabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum WhileDisabled {
    /// They become dead letters.
    DeadLetter,
    /// They are skipped, counted and logged.
    Skip,
}

display_the_word!(WhileDisabled);

/// The fate of an event that is published for a subscription now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubscriptionIntake {
    /// The event is delivered, or waits.
    Delivers,
    /// The event becomes a dead letter.
    DeadLetters,
    /// The event is skipped.
    Skips,
    /// The event passes by the subscription.
    PassesBy,
}

/// For how long a disabled subscription's new events become dead letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepingMissed {
    /// The events are skipped.
    Never,
    /// Until this time. Then they are skipped.
    Until(Timestamp),
    /// For as long as it is disabled.
    Always,
}

impl KeepingMissed {
    /// Decides by the chosen fate, by whether the subscription has dead letters at all, and by the
    /// time at which its endpoint disabled it, if it did. That time counts only without a choice:
    /// people may not have noticed yet.
    pub fn from_choice(
        chosen: Option<WhileDisabled>,
        wants_letters: bool,
        gone_at: Option<Timestamp>,
    ) -> Self {
        match (chosen, gone_at) {
            _ if !wants_letters => Self::Never,
            (Some(WhileDisabled::Skip), _) | (None, None) => Self::Never,
            (Some(WhileDisabled::DeadLetter), _) => Self::Always,
            (None, Some(gone_at)) => Self::Until(gone_at + DISABLED_KEPT),
        }
    }
}

impl SubscriptionStatus {
    /// Whether its events wait without an attempt.
    pub fn is_waiting(self) -> bool {
        matches!(self, Self::Pending | Self::Paused | Self::Failed)
    }
}

impl Subscription {
    /// The headers that identify the sender of its requests: its topic's own, or else these.
    pub fn sender_headers<'a>(&'a self, others: &'a SenderHeaders) -> &'a SenderHeaders {
        self.sender_headers.as_ref().unwrap_or(others)
    }

    /// The endpoints that its events go to, in the order in which they are tried.
    pub fn endpoints(&self) -> impl Iterator<Item = &EndpointUrl> {
        std::iter::once(&self.endpoint).chain(&self.fallback)
    }

    /// Texts that must not be shown: the signing secrets, those included that have ended, and the
    /// values of the headers that it adds.
    pub fn secret_texts(&self) -> impl Iterator<Item = &str> {
        let signing = self.signing.iter().map(|secret| secret.text().expose());
        signing.chain(
            self.delivery_headers
                .iter()
                .filter_map(DeliveryHeader::fixed_text),
        )
    }

    /// The fate of an event that is published at this time.
    pub fn intake_at(&self, now: Timestamp) -> SubscriptionIntake {
        match self.status_at(now) {
            _ if self.lifetime.is_over(now) => SubscriptionIntake::PassesBy,
            SubscriptionStatus::Active
            | SubscriptionStatus::Pending
            | SubscriptionStatus::Paused => SubscriptionIntake::Delivers,
            SubscriptionStatus::Failed => SubscriptionIntake::PassesBy,
            SubscriptionStatus::Disabled if self.keeps_missed(now) => {
                SubscriptionIntake::DeadLetters
            }
            SubscriptionStatus::Disabled => SubscriptionIntake::Skips,
        }
    }

    /// Whether what is published while it is disabled becomes dead letters.
    fn keeps_missed(&self, now: Timestamp) -> bool {
        match self.keeping_missed() {
            KeepingMissed::Never => false,
            KeepingMissed::Until(end) => now < end,
            KeepingMissed::Always => true,
        }
    }

    /// For how long what is published while it is disabled becomes dead letters.
    pub fn keeping_missed(&self) -> KeepingMissed {
        KeepingMissed::from_choice(self.while_disabled, self.dead_letter.enabled, self.gone_at)
    }

    /// Whether its events are delivered at this time. An endpoint that has not consented by its
    /// deadline counts as failed; no write is needed for that.
    pub fn status_at(&self, now: Timestamp) -> SubscriptionStatus {
        match (self.status, self.pending_until) {
            (SubscriptionStatus::Pending, Some(until)) if until <= now => {
                SubscriptionStatus::Failed
            }
            (status, _) => status,
        }
    }
}

impl Topic {
    /// The subscription of this name, without regard to case.
    pub fn find_subscription(&self, name: &SubscriptionName) -> Option<&Arc<Subscription>> {
        self.subscriptions.get(&*name.folded_text())
    }

    /// The subscriptions that take deliveries at `now`.
    pub fn taking_deliveries(&self, now: Timestamp) -> impl Iterator<Item = &Arc<Subscription>> {
        self.subscriptions.values().filter(move |it| {
            it.status_at(now) == SubscriptionStatus::Active && !it.lifetime.is_over(now)
        })
    }

    /// Whether it is this creation of the topic that accepted what has this identity, at that time.
    pub fn has_accepted(&self, identity: Option<Identity>, accepted_at: Timestamp) -> bool {
        let created = SubscriptionCreation {
            topic: self.creation,
            subscription: None,
            topic_at: self.created_at,
        };
        created.topic_accepted(identity, accepted_at)
    }
}

/// The publish keys of a topic: two at least, so that one can be rotated while the other works.
#[derive(Debug, Clone)]
pub struct TopicKeys(Vec<(ProducerTier, Secret)>);

impl TopicKeys {
    /// The two keys that every topic has; they are the usual producers'.
    pub fn new(key1: Secret, key2: Secret) -> Self {
        Self(vec![
            (ProducerTier::Standard, key1),
            (ProducerTier::Standard, key2),
        ])
    }

    /// Adds a key of this tier.
    #[must_use]
    pub fn with_key(mut self, tier: ProducerTier, key: Secret) -> Self {
        self.0.push((tier, key));
        self
    }

    /// The most privileged tier whose key is `offered`, or `None`. Every key is compared, in
    /// constant time.
    pub fn tier_of(&self, offered: &str) -> Option<ProducerTier> {
        self.tier_where(|key| key.matches(offered))
    }

    /// The most privileged tier one of whose keys passes `opens`. Every key is asked, so that the
    /// time of the answer does not tell which one it was.
    pub fn tier_where(&self, opens: impl Fn(&Secret) -> bool) -> Option<ProducerTier> {
        let opened = self.0.iter().map(|(tier, key)| opens(key).then_some(*tier));
        opened.fold(None, most_privileged)
    }
}

/// The more privileged of two tiers that were opened, if any was.
pub fn most_privileged(
    one: Option<ProducerTier>,
    other: Option<ProducerTier>,
) -> Option<ProducerTier> {
    [one, other].into_iter().flatten().min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn keys() -> TopicKeys {
        TopicKeys::new(Secret::new("a"), Secret::new("b"))
            .with_key(ProducerTier::Bulk, Secret::new("c"))
            .with_key(ProducerTier::Internal, Secret::new("d"))
            .with_key(ProducerTier::Internal, Secret::new("a"))
    }

    #[test]
    fn key_opens_the_most_privileged_of_its_tiers() {
        let check = |offered, expected| assert_eq!(keys().tier_of(offered), expected, "{offered}");
        check("b", Some(ProducerTier::Standard));
        check("c", Some(ProducerTier::Bulk));
        check("d", Some(ProducerTier::Internal));
        check("a", Some(ProducerTier::Internal));
        check("e", None);
    }

    #[test]
    fn every_key_is_asked_whichever_opens() {
        for opening in ["a", "d", "nothing"] {
            let asked = Cell::new(0);
            keys().tier_where(|key| {
                asked.set(asked.get() + 1);
                key.matches(opening)
            });
            assert_eq!(asked.get(), 5, "{opening}");
        }
    }
}
