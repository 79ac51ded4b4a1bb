//! Metrics that are looked up for each page: how things stand now. Those that cannot be read are
//! logged and left out.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::sync::Arc;

use posthaste_core::api::WaitingCount;
use posthaste_core::circuit::{DeliveryTarget, LinkShard, TargetPhase};
use posthaste_core::health::{HealthBook, HealthState, book_key, health_state};
use posthaste_core::model::metric::{self, SUBSCRIPTION, TOPIC};
use posthaste_core::model::{
    ArrivalSettings, Subscription, SubscriptionStatus, Timestamp, Topic, message_group_id,
};
use posthaste_core::pressure::{PressureLevel, PressureState};
use posthaste_core::stored::PRESSURE_KEY;
use posthaste_ports::{Clock, ObjectStore, PortError, QueueCounts, QueueReceiver};
use posthaste_services::{LinkHealth, WaitingEvents};

use super::by::{OTHER, SeriesBy};
use super::exposition::{MetricLine, MetricValue, labels_text};

/// Most subscriptions of which a page says whether they are up, and what waits for them. What waits
/// for others is shown in one sum.
const SUBSCRIPTIONS_MAX: usize = 1000;

/// The same where a setting asks for every topic or subscription.
const SUBSCRIPTIONS_MAX_BY_SETTING: usize = 10_000;

/// Most links of which a page says whether they are up; those that are not come first.
const LINKS_MAX: usize = 1000;

/// The metrics that are looked up.
pub struct LookedUpMetrics<S, Q, C> {
    /// The state store, with the pressure.
    pub state: S,
    /// The delivery queue.
    pub deliveries: Q,
    /// The queues of events that are given up.
    pub given_up: [Q; 2],
    /// The queue of records.
    pub records: Q,
    /// Links that are not well.
    pub links: LinkHealth<S, C>,
    pub clock: C,
}

/// The events that wait for a subscription, or for several together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct WaitingFigure {
    number: u64,
    /// The time at which the oldest event was accepted, as far as that is known.
    oldest: Option<Timestamp>,
}

/// Counts of what waits for some subscriptions, in their order, and for the others together.
struct WaitingFigures {
    each: Vec<WaitingFigure>,
    others: WaitingFigure,
}

impl<S: ObjectStore, Q: QueueReceiver, C: Clock> LookedUpMetrics<S, Q, C> {
    /// The lines of a page. `topics` are those that have series of their own.
    pub(super) async fn read_lines(&self, by: SeriesBy, topics: &[Arc<Topic>]) -> Vec<MetricLine> {
        let now = self.clock.now();
        let subscriptions = shown_subscriptions(by, topics);
        let mut lines = MetricLines::default();
        let version = [("version", env!("CARGO_PKG_VERSION"))];
        lines.add_line("posthaste_build_info", version, 1.0);
        match self.waiting_figures(&subscriptions).await {
            Ok(figures) => lines.add_waiting(by, &subscriptions, &figures, now),
            Err(error) => log_left_out("posthaste_waiting", &error),
        }
        self.add_queues(&mut lines).await;
        match self.links.read_all().await {
            Ok(shards) => {
                lines.add_links(&subscriptions, &links_down(&shards));
                match self.links.arrivals().current_book().await {
                    Ok(book) => {
                        let settings = &self.links.settings().arrivals;
                        let health = PageHealth {
                            book,
                            settings,
                            shards: &shards,
                            now,
                        };
                        lines.add_health(&subscriptions, &health);
                    }
                    Err(error) => log_left_out("posthaste_subscription_up", &error),
                }
            }
            Err(error) => log_left_out("posthaste_link_up", &error),
        }
        match self.state.get(PRESSURE_KEY).await {
            Ok(object) => {
                let state = object.and_then(|object| PressureState::parse(&object.bytes).ok());
                lines.add_slowed_topics(by, state.as_ref());
            }
            Err(error) => log_left_out("posthaste_topic_pressure_level", &error),
        }
        lines.0
    }

    /// Counts the events that wait for each of these subscriptions, and for all others together.
    async fn waiting_figures(
        &self,
        subscriptions: &[Arc<Subscription>],
    ) -> Result<WaitingFigures, PortError> {
        let waiting = WaitingEvents {
            deliveries: &self.deliveries,
            slow_deliveries: None,
            state: &self.state,
            clock: &self.clock,
            recorded_until: None,
        };
        let mut by_group = waiting.count_all().await?.by_group;
        let each = subscriptions.iter().map(|subscription| {
            let count = by_group.remove(&message_group_id(&subscription.topic, &subscription.name));
            WaitingFigure::from_count(&count.unwrap_or_default())
        });
        let each = each.collect();
        let others = by_group.values().map(WaitingFigure::from_count);
        let others = others.fold(WaitingFigure::default(), |sum, one| sum.combined_with(&one));
        Ok(WaitingFigures { each, others })
    }

    async fn add_queues(&self, lines: &mut MetricLines) {
        match self.deliveries.counts().await {
            Ok(counts) => lines.add_plain("posthaste_deliveries_in_flight", counts.in_flight),
            Err(error) => log_left_out("posthaste_deliveries_in_flight", &error),
        }
        match self.records.counts().await {
            Ok(counts) => lines.add_plain("posthaste_records_waiting", total_messages(counts)),
            Err(error) => log_left_out("posthaste_records_waiting", &error),
        }
        let [letters, redriven] = &self.given_up;
        let counts =
            async { Ok::<_, PortError>((letters.counts().await?, redriven.counts().await?)) };
        match counts.await {
            Ok((letters, redriven)) => {
                let waiting = total_messages(letters) + total_messages(redriven);
                lines.add_plain("posthaste_dead_letters_waiting", waiting);
            }
            Err(error) => log_left_out("posthaste_dead_letters_waiting", &error),
        }
    }
}

/// The subscriptions of these topics, all of a topic or none.
fn shown_subscriptions(by: SeriesBy, topics: &[Arc<Topic>]) -> Vec<Arc<Subscription>> {
    let most = match by {
        SeriesBy::Total => 0,
        SeriesBy::FewTopics => SUBSCRIPTIONS_MAX,
        SeriesBy::Topic | SeriesBy::Subscription => SUBSCRIPTIONS_MAX_BY_SETTING,
    };
    let mut subscriptions = Vec::new();
    for topic in topics {
        if subscriptions.len() + topic.subscriptions.len() <= most {
            subscriptions.extend(topic.subscriptions.values().cloned());
        }
    }
    subscriptions
}

fn total_messages(counts: QueueCounts) -> u64 {
    counts.total()
}

/// The links that get no requests because they fail, as texts.
fn links_down(shards: &[(usize, Arc<LinkShard>)]) -> BTreeSet<String> {
    let conditions = shards.iter().flat_map(|(_, shard)| shard.conditions());
    let down = conditions.filter(|(target, condition)| {
        matches!(target, DeliveryTarget::Link(_)) && condition.phase != TargetPhase::Recovering
    });
    down.map(|(target, _)| target.to_string()).collect()
}

/// The facts that are known of the health of subscriptions.
struct PageHealth<'a> {
    book: HealthBook,
    settings: &'a ArrivalSettings,
    shards: &'a [(usize, Arc<LinkShard>)],
    now: Timestamp,
}

impl PageHealth<'_> {
    /// The state of a subscription.
    fn state_of(&self, subscription: &Subscription) -> HealthState {
        let key = book_key(&subscription.topic, &subscription.name);
        let status = subscription.status_at(self.now);
        self.state_for_key(
            status,
            &key,
            Some(&DeliveryTarget::for_subscription(subscription)),
        )
    }

    /// The number of subscriptions whose webhooks do not arrive: of these, and of all others in the
    /// book, which forgets those that an operator stopped. Their circuits may stay.
    fn failing_count(&self, subscriptions: &[Arc<Subscription>]) -> usize {
        let shown = subscriptions.iter().map(|subscription| {
            let key = book_key(&subscription.topic, &subscription.name);
            (key, self.state_of(subscription))
        });
        let mut states: BTreeMap<String, HealthState> = shown.collect();
        let conditions = self.shards.iter().flat_map(|(_, shard)| shard.conditions());
        let targets = conditions.filter_map(|(target, _)| match &target {
            DeliveryTarget::Subscription { topic, name, .. } => {
                Some((book_key(topic, name), target))
            }
            DeliveryTarget::Link(_) => None,
        });
        let targets: BTreeMap<_, _> = targets.collect();
        for (key, _) in self.book.subscriptions() {
            if !states.contains_key(key) {
                let state = self.state_for_key(SubscriptionStatus::Active, key, targets.get(key));
                states.insert(key.to_owned(), state);
            }
        }
        states.values().filter(|state| state.is_failing()).count()
    }

    fn state_for_key(
        &self,
        status: SubscriptionStatus,
        key: &str,
        target: Option<&DeliveryTarget>,
    ) -> HealthState {
        let link = target.map(|target| DeliveryTarget::Link(target.link().clone()));
        let conditions = [target, link.as_ref()].map(|target| {
            let mut shards = self.shards.iter();
            shards.find_map(|(_, shard)| shard.condition(target?))
        });
        let health = self.book.subscription(key);
        health_state(status, health, &conditions, self.now, self.settings)
    }
}

/// The lines of a page, as they are gathered.
#[derive(Default)]
struct MetricLines(Vec<MetricLine>);

impl MetricLines {
    fn add_line<'a>(
        &mut self,
        name: &str,
        labels: impl IntoIterator<Item = (&'a str, &'a str)>,
        value: f64,
    ) {
        let place = metric::looked_up_metric_index(name);
        self.0.extend(place.map(|place| MetricLine {
            place,
            labels: labels_text(labels),
            value: MetricValue::Number(value),
        }));
    }

    fn add_plain(&mut self, name: &str, number: u64) {
        self.add_line(name, [], as_f64(number));
    }

    fn add_waiting(
        &mut self,
        by: SeriesBy,
        subscriptions: &[Arc<Subscription>],
        waiting: &WaitingFigures,
        now: Timestamp,
    ) {
        let mut figures: Vec<(Vec<(&str, &str)>, WaitingFigure)> = Vec::new();
        for (subscription, figure) in subscriptions.iter().zip(&waiting.each) {
            let topic = (TOPIC, subscription.topic.as_str());
            let name = (SUBSCRIPTION, subscription.name.as_str());
            let labels = [topic, name]
                .into_iter()
                .filter(|(label, _)| by.keeps_label(label));
            let labels: Vec<_> = labels.collect();
            match figures.last_mut() {
                Some((last, sum)) if *last == labels => *sum = sum.combined_with(figure),
                _ => figures.push((labels, *figure)),
            }
        }
        let labels = [TOPIC, SUBSCRIPTION].map(|label| (label, OTHER));
        let labels = labels
            .into_iter()
            .filter(|(label, _)| by.keeps_label(label));
        figures.push((labels.collect(), waiting.others));
        for (labels, WaitingFigure { number, oldest }) in figures {
            let age = oldest.map_or(0.0, |oldest| now.since(oldest).as_secs_f64());
            self.add_line("posthaste_waiting", labels.iter().copied(), as_f64(number));
            self.add_line("posthaste_oldest_waiting_seconds", labels, age);
        }
    }

    fn add_health(&mut self, subscriptions: &[Arc<Subscription>], health: &PageHealth<'_>) {
        for subscription in subscriptions {
            let topic = (TOPIC, subscription.topic.as_str());
            let name = (SUBSCRIPTION, subscription.name.as_str());
            let is_up = as_number(health.state_of(subscription).is_up());
            self.add_line("posthaste_subscription_up", [topic, name], is_up);
        }
        let number = health.failing_count(subscriptions) as u64;
        self.add_plain("posthaste_subscriptions_down", number);
    }

    fn add_links(&mut self, subscriptions: &[Arc<Subscription>], down: &BTreeSet<String>) {
        self.add_plain("posthaste_links_down", down.len() as u64);
        let up: BTreeSet<_> = subscriptions
            .iter()
            .map(|subscription| subscription.endpoint.link().to_string())
            .filter(|link| !down.contains(link))
            .collect();
        let links = down.iter().map(|link| (link, false));
        let links = links.chain(up.iter().map(|link| (link, true)));
        for (link, is_up) in links.take(LINKS_MAX) {
            let labels = [("link", link.as_str())];
            self.add_line("posthaste_link_up", labels, as_number(is_up));
        }
    }

    /// There are few of them, which the state bounds.
    fn add_slowed_topics(&mut self, by: SeriesBy, state: Option<&PressureState>) {
        let topics = state.map(|state| &*state.topics).unwrap_or_default();
        let slowed: Vec<_> = topics
            .iter()
            .filter(|topic| topic.effective_level() > PressureLevel::Normal)
            .collect();
        self.add_plain("posthaste_topics_slowed", slowed.len() as u64);
        if !by.keeps_label(TOPIC) {
            return;
        }
        for topic in slowed {
            let labels = [(TOPIC, topic.topic.as_str())];
            let drain = as_f64(topic.drain_time.reading);
            self.add_line(
                "posthaste_topic_pressure_level",
                labels,
                topic.effective_level().as_number().into(),
            );
            self.add_line("posthaste_topic_drain_seconds", labels, drain);
        }
    }
}

impl WaitingFigure {
    fn from_count(count: &WaitingCount) -> Self {
        Self {
            number: count.total(),
            oldest: count.oldest,
        }
    }

    /// The two together.
    fn combined_with(self, other: &Self) -> Self {
        Self {
            number: self.number + other.number,
            oldest: self.oldest.into_iter().chain(other.oldest).min(),
        }
    }
}

fn as_number(is_true: bool) -> f64 {
    f64::from(u8::from(is_true))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "numbers are far below 2^52, and a gauge is for looking at"
)]
fn as_f64(number: u64) -> f64 {
    number as f64
}

fn log_left_out(metric: &str, error: &(dyn Error + 'static)) {
    tracing::warn!(metric, error, "left out of a page of metrics");
}

#[cfg(test)]
mod tests;
