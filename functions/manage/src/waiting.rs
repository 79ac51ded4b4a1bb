//! The events that wait for subscriptions, and their health.
//!
//! A request does not fail here: what cannot be read is logged and left out of the answer.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRef;
use posthaste_core::api::events::DeliveryView;
use posthaste_core::api::{
    IsoTimestamp, KnownHealth, LinkView, NextAttempt, StatusState, SubscriptionHealthView,
    SubscriptionSettings,
};
use posthaste_core::circuit::{DeliveryTarget, LinkShard, TargetCondition, shard_index};
use posthaste_core::delivery_log::DeliveryState;
use posthaste_core::health::book_key;
use posthaste_core::model::{
    EndpointUrl, SubscriptionName, SubscriptionStatus, Timestamp, TopicName,
};
use posthaste_core::stored::TopicRecord;
use posthaste_ports::{Clock, ErrorKind, PortError, Ports};
use posthaste_services::{LinkHealth, timeout};

use crate::log_coverage::LogCoverage;
use crate::manage::Manage;
use crate::shared_port::SharedPort;
use crate::waiting_counts::WaitingCounts;

/// Longest time for each part of an answer. It is longer only where a call to the store hangs,
/// which may take as long as a whole request.
pub(crate) const HANGING_TIME_MAX: Duration = Duration::from_secs(4);

/// The parts of what is known of links.
type LinkShards = Vec<(usize, Arc<LinkShard>)>;

/// The outlook of subscriptions: what waits for them, their health, and when their events are tried
/// next.
pub(crate) struct SubscriptionOutlook<P: Ports> {
    links: SharedPort<P, LinkHealth<P::Store, P::Clock>>,
    clock: P::Clock,
    waiting: WaitingCounts<P>,
    coverage: LogCoverage<P>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for SubscriptionOutlook<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            links: SharedPort::new(manage, |it| &it.links),
            clock: manage.clock.clone(),
            waiting: WaitingCounts::from_ref(manage),
            coverage: LogCoverage::from_ref(manage),
        }
    }
}

impl<P: Ports> SubscriptionOutlook<P> {
    /// Adds the counts of what waits for these subscriptions of a topic, and their health.
    pub(crate) async fn add_waiting(
        &self,
        record: &TopicRecord,
        shown: &mut [SubscriptionSettings],
    ) {
        let topic = &record.name;
        let names: Vec<_> = shown
            .iter()
            .filter_map(|settings| settings.name.clone())
            .collect();
        if names.is_empty() {
            return;
        }
        let shards = match in_time(&self.clock, self.links.read_all()).await {
            Ok(shards) => {
                self.add_health(record, shown, &shards).await;
                shards
            }
            Err(error) => {
                log_left_out(topic, &*error, "circuit");
                LinkShards::new()
            }
        };
        match in_time(
            &self.clock,
            self.waiting.waiting_events().count_for(topic, &names),
        )
        .await
        {
            Ok(counts) => {
                let now = self.clock.now();
                let is_unrecorded = self.coverage.is_off(Some(record));
                for ((it, name), mut count) in shown.iter_mut().zip(&names).zip(counts) {
                    if is_unrecorded {
                        count.forget_recorded();
                    }
                    let target = subscription_target(topic, name, it);
                    let next = next_attempt(target.as_ref(), it, &shards, now);
                    let next = next.for_waiting(&count);
                    it.waiting = Some(Box::new(count.waiting_view(next)));
                }
            }
            Err(error) => log_left_out(topic, &*error, "waiting"),
        }
    }

    /// Adds the circuit and the health of these subscriptions.
    async fn add_health(
        &self,
        record: &TopicRecord,
        shown: &mut [SubscriptionSettings],
        shards: &LinkShards,
    ) {
        let topic = &record.name;
        let arrivals = self.links.arrivals();
        let book = match in_time(&self.clock, arrivals.current_book()).await {
            Ok(book) => Some(book),
            Err(error) => {
                log_left_out(topic, &*error, "health");
                None
            }
        };
        let now = self.clock.now();
        let is_seen = arrivals.is_counting() || !self.coverage.is_off(Some(record));
        for it in shown {
            let Some(targets) = targets_of_subscription(topic, it) else {
                continue;
            };
            let conditions = targets
                .each_ref()
                .map(|target| find_condition(shards, target));
            let mut known = targets.iter().zip(conditions);
            it.circuit = known
                .find_map(|(target, found)| Some(LinkView::for_target(target, found?)))
                .map(Box::new);
            let Some(book) = &book else { continue };
            let Some(name) = &it.name else { continue };
            let status = it.status.as_ref().map(|status| status.effective_at(now));
            let known = KnownHealth {
                status: status
                    .as_ref()
                    .map_or(SubscriptionStatus::Active, |it| it.state),
                status_since: status.map(|status| status.since.0),
                health: book.subscription(&book_key(topic, name)),
                conditions,
                is_seen,
            };
            let settings = &self.links.settings().arrivals;
            let view = SubscriptionHealthView::from_known(known, now, settings);
            it.health = Some(Box::new(view));
        }
    }

    /// Shows the true time of the next attempt of deliveries of an event.
    pub(crate) async fn add_next_attempts(
        &self,
        record: Option<&TopicRecord>,
        shown: &mut [DeliveryView],
    ) {
        let mut open: Vec<_> = shown.iter_mut().filter(|it| is_open(it.state)).collect();
        let Some(record) = record.filter(|_| !open.is_empty()) else {
            return;
        };
        let shards = match in_time(&self.clock, self.links.read_all()).await {
            Ok(shards) => shards,
            Err(error) => return log_left_out(&record.name, &*error, "nextAttemptAt"),
        };
        let now = self.clock.now();
        for it in &mut open {
            let Ok(name) = SubscriptionName::parse(&it.subscription) else {
                continue;
            };
            let settings = record.settings.find_subscription(&name);
            // Those of a deleted subscription become dead letters.
            it.next_attempt_at = settings.and_then(|(name, settings)| {
                let target = subscription_target(&record.name, name, settings);
                let next = next_attempt(target.as_ref(), settings, &shards, now);
                let due = it.next_attempt_at.map(|due| due.0);
                next.for_event(due).map(IsoTimestamp)
            });
        }
    }
}

/// A subscription at its endpoint, and the endpoint's link.
fn targets_of_subscription(
    topic: &TopicName,
    shown: &SubscriptionSettings,
) -> Option<[DeliveryTarget; 2]> {
    let of_itself = subscription_target(topic, shown.name.as_ref()?, shown)?;
    let link = DeliveryTarget::Link(of_itself.link().clone());
    Some([of_itself, link])
}

/// A subscription at its endpoint; `None` if the endpoint cannot be read.
fn subscription_target(
    topic: &TopicName,
    name: &SubscriptionName,
    settings: &SubscriptionSettings,
) -> Option<DeliveryTarget> {
    Some(DeliveryTarget::Subscription {
        link: EndpointUrl::parse(&settings.endpoint.url).ok()?.link(),
        topic: topic.clone(),
        name: name.clone(),
    })
}

fn find_condition<'a>(
    shards: &'a LinkShards,
    target: &DeliveryTarget,
) -> Option<&'a TargetCondition> {
    shards.iter().find_map(|(_, shard)| shard.condition(target))
}

/// Whether a delivery in this state is still to be attempted.
fn is_open(state: DeliveryState) -> bool {
    matches!(state, DeliveryState::Waiting | DeliveryState::Held)
}

/// The conditions of the next attempt for a subscription. One without a target, because its
/// endpoint cannot be read, has no link that could keep its events.
fn next_attempt(
    target: Option<&DeliveryTarget>,
    settings: &SubscriptionSettings,
    shards: &LinkShards,
    now: Timestamp,
) -> NextAttempt {
    let status = settings.status.as_ref();
    let state = status.map_or(StatusState::Active, |status| status.effective_at(now).state);
    let Some(target) = target else {
        return NextAttempt::new(state, None, None);
    };
    let index = shard_index(target.link());
    match shards.iter().find(|(of, _)| *of == index) {
        Some((_, shard)) => NextAttempt::for_subscription(state, target, shard),
        None => NextAttempt::new(state, None, None),
    }
}

/// The output of a part, or an error once it takes too long.
async fn in_time<T, E: Error + Send + Sync + 'static>(
    clock: &impl Clock,
    part: impl Future<Output = Result<T, E>>,
) -> Result<T, Box<dyn Error + Send + Sync>> {
    match timeout(clock, HANGING_TIME_MAX, part).await {
        Some(output) => Ok(output?),
        None => Err(PortError::new("get an answer in time", ErrorKind::TimedOut).into()),
    }
}

fn log_left_out(topic: &TopicName, error: &(dyn Error + 'static), member: &str) {
    tracing::warn!(%topic, member, error, "left out of an answer about subscriptions");
}
