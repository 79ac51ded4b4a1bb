//! Sends the notices of health to their addressees: the topic of the whole program, and those that
//! the topics of the subscriptions name.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use futures_util::{StreamExt, stream};
use posthaste_core::api::notice::{
    DelayNews, HealthNews, LinkNews, MissedNews, Notice, SubscriptionNews,
};
use posthaste_core::health::{
    DelayedEvent, DueNotice, HealthBook, HealthFacts, HealthState, LinkIncident, MissedEnd,
    SubscriptionHealth, SubscriptionIncident, health_state,
};
use posthaste_core::model::{SubscriptionName, SubscriptionStatus, Topic, TopicName};
use posthaste_ports::{Clock, Ports};
use posthaste_services::topics::topic_names;
use posthaste_services::{NoticeError, RegistryError};

use super::error::HealthJobError;
use super::facts::{is_broken, parse_book_key};
use crate::ports::WakePorts;

/// Topics that are read at once.
const READS_AT_ONCE: usize = 32;

/// A subscription by its names.
type SubscriptionNames = (TopicName, SubscriptionName);

/// The material of notices.
pub(super) struct HealthNotifier<'a, P: Ports> {
    pub(super) ports: &'a WakePorts<P>,
    pub(super) book: &'a HealthBook,
    pub(super) facts: &'a BTreeMap<String, HealthFacts>,
    pub(super) notices_topic: Option<&'a TopicName>,
}

/// A subscription that a notice is about.
struct NoticeSubject<'a> {
    topic: Arc<Topic>,
    name: SubscriptionName,
    health: &'a SubscriptionHealth,
}

impl<P: Ports> HealthNotifier<'_, P> {
    /// Sends a notice; whether no addressee has yet to get it.
    pub(super) async fn send_notice(&self, notice: &DueNotice) -> Result<bool, HealthJobError> {
        match notice {
            DueNotice::Failing { key, incident } | DueNotice::Recovered { key, incident } => {
                self.notify_of_subscription(key, incident).await
            }
            DueNotice::Delayed { key, delayed } => self.notify_of_delay(key, *delayed).await,
            DueNotice::MissedEnds { key, end } => self.notify_of_missed(key, *end).await,
            DueNotice::LinkFailing { link, incident }
            | DueNotice::LinkRecovered { link, incident } => {
                self.notify_of_link(link, incident).await
            }
        }
    }

    async fn notify_of_subscription(
        &self,
        key: &str,
        incident: &SubscriptionIncident,
    ) -> Result<bool, HealthJobError> {
        let Some(NoticeSubject {
            topic,
            name,
            health,
        }) = self.find_subject(key).await?
        else {
            return Ok(true);
        };
        let links = &self.ports.links;
        let settings = &links.settings().arrivals;
        let now = self.ports.clock.now();
        let facts = self.facts.get(key);
        let conditions = facts.map_or([None; 2], |facts| {
            [facts.own.as_ref(), facts.of_link.as_ref()]
        });
        let state = match incident.recovered_at {
            Some(_) => HealthState::Healthy,
            None => health_state(
                SubscriptionStatus::Active,
                Some(health),
                &conditions,
                now,
                settings,
            ),
        };
        let link = facts.map_or("", |facts| &facts.link);
        let since = incident.since;
        let last = health.tries.last_failure();
        let outcome = last
            .and_then(|last| last.outcome)
            .map(tracing::field::display);
        let status = last.and_then(|last| last.status);
        if incident.recovered_at.is_none() {
            tracing::warn!(
                topic = %topic.name, subscription = %name, link, %state, %since, outcome, status,
                "the subscription is failing"
            );
        } else {
            tracing::info!(
                topic = %topic.name, subscription = %name, link, %since,
                "the subscription is healthy again"
            );
        }
        let news = SubscriptionNews {
            topic: &topic.name,
            subscription: &name,
            link,
            state,
            incident,
            tries: &health.tries,
            share: health.tries.measured_share(now, settings),
        };
        let addressees = self.addressees([&*topic]);
        Ok(self
            .send_to_topics(addressees.values(), HealthNews::Subscription(news))
            .await)
    }

    async fn notify_of_delay(
        &self,
        key: &str,
        delayed: DelayedEvent,
    ) -> Result<bool, HealthJobError> {
        let Some(NoticeSubject {
            topic,
            name,
            health,
        }) = self.find_subject(key).await?
        else {
            return Ok(true);
        };
        let accepted_at = delayed.accepted_at;
        tracing::warn!(
            topic = %topic.name, subscription = %name, %accepted_at,
            "an event is not delivered for a long time"
        );
        let news = DelayNews {
            topic: &topic.name,
            subscription: &name,
            delayed,
            tries: &health.tries,
            after: self.ports.links.settings().arrivals.delayed_after,
        };
        let addressees = self.addressees([&*topic]);
        Ok(self
            .send_to_topics(addressees.values(), HealthNews::Delay(news))
            .await)
    }

    async fn notify_of_missed(&self, key: &str, end: MissedEnd) -> Result<bool, HealthJobError> {
        let Some(missed) = self.book.missed_by(key) else {
            return Ok(true);
        };
        // A topic whose record is broken may be mended: the notice is left to a later run.
        let Some((topic, name)) = self.find_subscription(key).await? else {
            return Ok(true);
        };
        let disabled_at = end.disabled_at;
        let skipped_from = end.at.map(tracing::field::display);
        let events = missed.events;
        let little_room = end.by_room;
        tracing::warn!(
            topic = %topic.name, subscription = %name, %disabled_at, skipped_from, little_room,
            events,
            "what a disabled subscription misses will soon be skipped"
        );
        let news = MissedNews {
            topic: &topic.name,
            subscription: &name,
            end,
            missed,
        };
        let addressees = self.addressees([&*topic]);
        Ok(self
            .send_to_topics(addressees.values(), HealthNews::Missed(news))
            .await)
    }

    /// Each addressee is told of the subscriptions of the topics that name it, and the whole
    /// program's of all.
    async fn notify_of_link(
        &self,
        link: &str,
        incident: &LinkIncident,
    ) -> Result<bool, HealthJobError> {
        let topics = self.topics_on_link(link).await?;
        let since = incident.since;
        let subscriptions: usize = topics.iter().map(|(_, named)| named.len()).sum();
        if incident.recovered_at.is_none() {
            tracing::warn!(link, %since, subscriptions, "the link is failing");
        } else {
            tracing::info!(link, %since, subscriptions, "the link is well again");
        }
        let addressees = self.addressees(topics.iter().map(|(topic, _)| &**topic));
        let mut is_told = true;
        for (folded, name) in &addressees {
            let is_of_all = self.notices_topic.is_some_and(|it| it.folded() == *folded);
            let of_addressee = topics.iter().filter(|(topic, _)| {
                let own = topic.notices_topic.as_ref();
                is_of_all || own.is_some_and(|own| own.folded() == *folded)
            });
            let named: Vec<_> = of_addressee
                .flat_map(|(_, named)| named.iter().cloned())
                .collect();
            let news = LinkNews {
                link,
                incident,
                subscriptions: named.len(),
                named: &named,
            };
            is_told &= self.send_to_topics([name], HealthNews::Link(news)).await;
        }
        Ok(is_told)
    }

    /// The addressees of notices about these topics, by folded name, so that none is notified
    /// twice.
    fn addressees<'t>(
        &self,
        topics: impl IntoIterator<Item = &'t Topic>,
    ) -> BTreeMap<String, TopicName> {
        if self.ports.links.settings().suppress_state_changes {
            return BTreeMap::new();
        }
        let own = topics
            .into_iter()
            .filter_map(|it| it.notices_topic.as_ref());
        own.chain(self.notices_topic)
            .map(|name| (name.folded(), name.clone()))
            .collect()
    }

    /// The subscription with this key in the book, and its tries; `None` if it is gone.
    async fn find_subject(&self, key: &str) -> Result<Option<NoticeSubject<'_>>, RegistryError> {
        let Some(health) = self.book.subscription(key) else {
            return Ok(None);
        };
        let named = match self.find_subscription(key).await {
            Err(error) if is_broken(&error) => None,
            named => named?,
        };
        Ok(named.map(|(topic, name)| NoticeSubject {
            topic,
            name,
            health,
        }))
    }

    /// The topic of the subscription with this key, and the name that its record has; `None` if it
    /// is gone.
    async fn find_subscription(
        &self,
        key: &str,
    ) -> Result<Option<(Arc<Topic>, SubscriptionName)>, RegistryError> {
        let Some((topic, name)) = parse_book_key(key) else {
            return Ok(None);
        };
        let Some(topic) = self.ports.registry.topic(&topic).await? else {
            return Ok(None);
        };
        let stored = topic.subscriptions.get(&name.folded());
        let name = stored.map(|subscription| subscription.name.clone());
        Ok(name.map(|name| (topic, name)))
    }

    /// The topics with active subscriptions on a link, and these.
    async fn topics_on_link(
        &self,
        link: &str,
    ) -> Result<Vec<(Arc<Topic>, Vec<SubscriptionNames>)>, HealthJobError> {
        let names = topic_names(&self.ports.state).await?;
        let reads: Vec<_> = names
            .into_iter()
            .map(|name| self.topic_on_link(name, link))
            .collect();
        // In the order of their names, so that a repeated notice names the same.
        let mut reads = stream::iter(reads).buffered(READS_AT_ONCE);
        let mut topics = Vec::new();
        while let Some(found) = reads.next().await {
            topics.extend(found?);
        }
        Ok(topics)
    }

    async fn topic_on_link(
        &self,
        name: String,
        link: &str,
    ) -> Result<Option<(Arc<Topic>, Vec<SubscriptionNames>)>, RegistryError> {
        let Ok(name) = TopicName::parse(&name) else {
            return Ok(None);
        };
        let topic = match self.ports.registry.topic(&name).await {
            Ok(Some(topic)) => topic,
            Ok(None) => return Ok(None),
            Err(error) if is_broken(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let now = self.ports.clock.now();
        let on_link = topic.subscriptions.values().filter(|it| {
            it.status_at(now) == SubscriptionStatus::Active
                && it.endpoint.link().to_string() == link
        });
        let named: Vec<_> = on_link
            .map(|it| (topic.name.clone(), it.name.clone()))
            .collect();
        Ok((!named.is_empty()).then_some((topic, named)))
    }

    /// Sends a notice to these topics; whether it went to all of them, or never can.
    async fn send_to_topics<'t>(
        &self,
        to: impl IntoIterator<Item = &'t TopicName>,
        news: HealthNews<'_>,
    ) -> bool {
        let mut is_told = true;
        for name in to {
            let notifier = self.ports.notifier();
            let notices = [Notice::Health(news)];
            // Boxed: the compiler would find the layout of the SDK's futures too deep otherwise.
            let sent = Box::pin(notifier.send_to_topic(name, &notices));
            let Err(error) = sent.await else {
                continue;
            };
            let is_final = matches!(&error, NoticeError::Topic(error) if is_broken(error));
            let error = &error as &dyn Error;
            tracing::error!(notices_topic = %name, error, "notice of health not sent");
            is_told &= is_final;
        }
        is_told
    }
}
