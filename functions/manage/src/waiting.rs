//! The events that wait for subscriptions, their health, and the end of their last attempt.
//!
//! Nothing here fails a request: what cannot be read is logged and left out of the answer.

mod objects;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use posthaste_core::api::events::AttemptView;
use posthaste_core::api::{
    LastOutcomeView, LinkView, SubscriptionSettings, WaitingCount, WaitingPlace, WaitingView,
};
use posthaste_core::circuit::{Shard, Target};
use posthaste_core::delivery_log::{Kind, RecordFilter};
use posthaste_core::model::{EndpointUrl, SubscriptionName, Timestamp, TopicName, group};
use posthaste_core::stored::TopicRecord;
use posthaste_core::stored::delivery::parse_delivery;
use posthaste_ports::{Clock, ErrorKind, PortError, Ports, QueueReceiver};
use posthaste_services::timeout;

use crate::manage::Manage;

/// Longest time for reading what waits. A read that begins just before its end still ends before
/// the request's time limit.
const READING_TIME: Duration = Duration::from_secs(2);

/// Longest time for each part of an answer. It is longer only where a call to the store hangs,
/// which may take as long as a whole request.
const HANGING_TIME_MAX: Duration = Duration::from_secs(4);

/// Most messages that are read, of all subscriptions of an answer. Reading so many takes about a
/// second embedded.
const MESSAGES_MAX: usize = 100_000;

/// Longest time for finding the last attempt in the delivery log.
const LAST_TIME: Duration = Duration::from_secs(1);

/// The age of the oldest attempt that is looked for.
const LAST_AGE_MAX: Duration = Duration::from_hours(24);

/// What is known of links, part by part.
type Shards = Vec<(usize, Arc<Shard>)>;

impl<P: Ports> Manage<P> {
    /// Adds what waits for these subscriptions of a topic, and their health.
    pub(crate) async fn add_waiting(&self, topic: &TopicName, shown: &mut [SubscriptionSettings]) {
        let names: Vec<_> = shown
            .iter()
            .filter_map(|settings| settings.name.clone())
            .collect();
        if names.is_empty() {
            return;
        }
        match in_time(&self.clock, self.waiting(topic, &names)).await {
            Ok(views) => {
                shown
                    .iter_mut()
                    .zip(views)
                    .for_each(|(it, view)| it.waiting = Some(Box::new(view)));
            }
            Err(error) => left_out(topic, &*error, "waiting"),
        }
        match in_time(&self.clock, self.links.all()).await {
            Ok(shards) => {
                for it in shown.iter_mut() {
                    it.health = health(topic, it, &shards).map(Box::new);
                }
            }
            Err(error) => left_out(topic, &*error, "health"),
        }
    }

    /// The end of the last attempt of a subscription, if the delivery log has it and it is not old.
    pub(crate) async fn last_outcome(
        &self,
        record: &TopicRecord,
        name: &SubscriptionName,
    ) -> Option<LastOutcomeView> {
        if self.is_log_off(Some(record)) {
            return None;
        }
        let day_ms = u64::try_from(LAST_AGE_MAX.as_millis()).unwrap_or(u64::MAX);
        let from = Timestamp::from_millis(self.clock.now().as_millis().saturating_sub(day_ms));
        let filter = RecordFilter {
            topic: Some(record.name.folded()),
            subscription: Some(name.folded()),
            kind: Some(Kind::Attempt),
            from: Some(from),
            without_payload: true,
            ..RecordFilter::default()
        };
        let until = self.clock.monotonic() + LAST_TIME;
        let listed = self.log.list(&filter, 1, || self.clock.monotonic() < until);
        match timeout(&self.clock, HANGING_TIME_MAX, listed).await? {
            Ok(page) => page.records.first().map(|record| {
                let AttemptView {
                    at,
                    outcome,
                    status,
                    ..
                } = AttemptView::from(record);
                LastOutcomeView {
                    at,
                    outcome,
                    status,
                }
            }),
            // It was logged when it became a problem.
            Err(_) => None,
        }
    }

    /// Counts what waits for each of these subscriptions, as far as there is time.
    async fn waiting(
        &self,
        topic: &TopicName,
        names: &[SubscriptionName],
    ) -> Result<Vec<WaitingView>, PortError> {
        let until = self.clock.monotonic() + READING_TIME;
        let mut counts = vec![WaitingCount::default(); names.len()];
        let with_queue = self.count_queue(topic, names, &mut counts, until).await?;
        let objects = self
            .waiting_objects(topic, names, with_queue, until)
            .await?;
        for (count, objects) in counts.iter_mut().zip(objects) {
            self.count_objects(objects, with_queue, count, until)
                .await?;
        }
        Ok(counts.iter().map(|count| count.view(with_queue)).collect())
    }

    /// Adds what is in the queue; whether it could be asked.
    async fn count_queue(
        &self,
        topic: &TopicName,
        names: &[SubscriptionName],
        counts: &mut [WaitingCount],
        until: Duration,
    ) -> Result<bool, PortError> {
        let groups: Vec<_> = names.iter().map(|name| group(topic, name)).collect();
        let mut seen = vec![0; names.len()];
        let see = |place: usize, body: Option<&Bytes>| {
            seen[place] += 1;
            match body.map(parse_delivery) {
                // Two subscriptions with the longest names may share a group.
                Some(Ok(delivery)) if delivery.subscription.folded() != names[place].folded() => {}
                Some(Ok(delivery)) => counts[place].add(WaitingPlace::Queue, &delivery),
                Some(Err(_)) => counts[place].add_unread(WaitingPlace::Queue, 1),
                None => {}
            }
            self.clock.monotonic() < until
        };
        let Some(found) = self.deliveries.waiting(&groups, MESSAGES_MAX, see).await? else {
            return Ok(false);
        };
        for ((count, of_group), seen) in counts.iter_mut().zip(found).zip(seen) {
            count.add_unread(WaitingPlace::Queue, of_group.messages.saturating_sub(seen));
            of_group.next_due.into_iter().for_each(|due| count.due(due));
        }
        Ok(true)
    }
}

/// The health of a subscription at its endpoint, or of the endpoint's link.
fn health(topic: &TopicName, shown: &SubscriptionSettings, shards: &Shards) -> Option<LinkView> {
    let link = EndpointUrl::parse(&shown.endpoint.url).ok()?.link();
    let name = shown.name.clone()?;
    let of_itself = Target::Subscription {
        link: link.clone(),
        topic: topic.clone(),
        name,
    };
    let view = |target: Target| {
        let condition = shards
            .iter()
            .find_map(|(_, shard)| shard.condition(&target))?;
        Some(LinkView::of(&target, condition))
    };
    view(of_itself).or_else(|| view(Target::Link(link)))
}

/// The output of a part, or an error once it takes too long.
async fn in_time<T, E: Error + Send + Sync + 'static>(
    clock: &impl Clock,
    part: impl Future<Output = Result<T, E>>,
) -> Result<T, Box<dyn Error + Send + Sync>> {
    let late = || Err(PortError::new("get an answer in time", ErrorKind::TimedOut).into());
    timeout(clock, HANGING_TIME_MAX, part)
        .await
        .map_or_else(late, |output| output.map_err(Into::into))
}

fn left_out(topic: &TopicName, error: &(dyn Error + 'static), member: &str) {
    tracing::warn!(%topic, member, error, "left out of an answer about subscriptions");
}
