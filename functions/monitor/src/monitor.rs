//! Polls: reads the resources, decides the pressure, writes it, and notifies of changes.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use posthaste_core::model::{Timestamp, TopicName};
use posthaste_core::pressure::{
    DatabaseSpace, PressureSettings, PressureState, Resource, ResourceReadings, SettingsError,
    SlowLaneState, SlowSubscription, TopicDrain, carry_changes, evaluate_pressure, evaluate_topics,
};
use posthaste_core::stored::PRESSURE_KEY;
use posthaste_ports::{
    Clock, DatabaseResource, DrainSource, ETag, ErrorKind, ObjectStore, PortError, Ports,
    PutCondition, QueueCounts, QueueReceiver, ResourceProbe, RevalidatedObject, StoredObject,
};
use posthaste_services::{FanOut, Notifier, SlowLane, TopicRegistry, get_newer};

use crate::change_notices::{notices_time, send_notices};
use crate::drain::{DrainWatch, topic_drains};
use crate::refused::dead_letter_backlog;
use crate::report;

/// The ports of the monitor.
#[derive(Debug)]
pub struct MonitorPorts<P: Ports, R, D> {
    /// The delivery queue, which notices go into as well.
    pub deliveries: P::Queue,
    /// The slow lane, where there is one.
    pub slow_lane: Option<SlowLane<P::Queue, P::Store, P::Clock>>,
    /// The dead-letter queue.
    pub dead_letters: P::Queue,
    /// The state bucket.
    pub state: P::Store,
    /// Disks, memory and gauges.
    pub probe: R,
    /// Time.
    pub clock: P::Clock,
    /// The rate at which deliver settles messages.
    pub drain: D,
    /// Topics: the one that gets notices, and those with a slow subscription. Read only then.
    pub registry: TopicRegistry<P::Store, P::Clock>,
    /// Chance, for the keys of notices.
    pub entropy: P::Entropy,
}

/// Settings of the function.
#[derive(Debug, Clone, Default)]
pub struct MonitorSettings {
    /// The bounds at which producers are slowed and refused.
    pub pressure: PressureSettings,
    /// The topic that gets a notice of every change. Without one there are no notices.
    pub notices_topic: Option<TopicName>,
    /// Most messages of the slow lane that are worked on at once.
    pub slow_places: u64,
}

/// The function.
pub struct Monitor<P: Ports, R, D> {
    ports: MonitorPorts<P, R, D>,
    settings: PressureSettings,
    notices_topic: Option<TopicName>,
    slow_places: u64,
    drain: DrainWatch,
    written: Option<(ETag, PressureState)>,
    /// Whether the written state still carries changes whose notices were sent since.
    carries_notified: bool,
    /// The resources whose thresholds did not fit at the last poll.
    misfits: BTreeSet<Resource>,
}

/// Reasons for which a poll fails. The next poll goes on. Until then the state grows stale, which
/// has rules of its own.
#[derive(Debug, thiserror::Error)]
pub enum MonitorError {
    /// The state before could not be read.
    #[error("failed to read the pressure state")]
    Read(#[source] PortError),
    /// The state after could not be written.
    #[error("failed to write the pressure state")]
    Write(#[source] PortError),
}

/// The readings of a poll.
#[derive(Default)]
struct PollReadings {
    readings: ResourceReadings,
    /// The topics whose drain takes time; `None` if that cannot be known now.
    topics: Option<Vec<TopicDrain>>,
}

/// The state before a poll.
struct PreviousState {
    state: PressureState,
    condition: PutCondition,
    is_ours: bool,
}

impl<P: Ports, R: ResourceProbe, D: DrainSource> Monitor<P, R, D> {
    /// Wires the function up. Settings that make no sense, or disks too small for their formulas,
    /// are refused.
    pub fn new(
        ports: MonitorPorts<P, R, D>,
        settings: MonitorSettings,
    ) -> Result<Self, SettingsError> {
        let MonitorSettings {
            pressure: settings,
            notices_topic,
            slow_places,
        } = settings;
        settings.validate()?;
        if settings.enable_resource_monitoring {
            let sample = ports.probe.sample();
            let counts = Some(QueueCounts::default());
            let database = database_space(sample.database, counts, &settings);
            let machine = ResourceReadings {
                database,
                log_disk: sample.log_disk,
                memory: sample.memory,
                ..ResourceReadings::default()
            };
            settings.validate_machine(&machine)?;
        }
        Ok(Self {
            ports,
            settings,
            notices_topic,
            slow_places,
            drain: DrainWatch::default(),
            written: None,
            carries_notified: false,
            misfits: BTreeSet::new(),
        })
    }

    /// The time between two polls.
    pub fn interval(&self) -> Duration {
        self.settings.interval
    }

    /// Polls once and answers the pressure.
    pub async fn poll_once(&mut self) -> Result<PressureState, MonitorError> {
        let now = self.ports.clock.now();
        let before = self.load_state(now).await.map_err(MonitorError::Read)?;
        if self.is_turn_of_another(&before, now) {
            return Ok(before.state);
        }
        let slow_lane = self.slow_lane(&before.state, now).await;
        if self.is_switched_off(&before) && slow_lane.is_none() {
            return Ok(before.state);
        }
        let PollReadings { readings, topics } = if self.settings.enable_resource_monitoring {
            self.read_resources(now).await
        } else {
            PollReadings::default()
        };
        for (resource, error) in self.new_misfits(&readings) {
            report::log_misfit(resource, &error);
        }
        let (mut after, transitions) =
            evaluate_pressure(&before.state, &readings, &self.settings, now);
        after.topics = evaluate_topics(&before.state, topics, &self.settings, now);
        after.slow_lane = slow_lane;
        let given_up = match &self.notices_topic {
            Some(_) => carry_changes(&mut after, &before.state, &transitions),
            None => 0,
        };
        let put = self
            .ports
            .state
            .put(PRESSURE_KEY, Bytes::from(after.render()), before.condition)
            .await;
        match put {
            Ok(etag) => {
                self.written = Some((etag, after.clone()));
                self.carries_notified = false;
            }
            Err(error) if error.kind == ErrorKind::PreconditionFailed => {
                return Ok(self
                    .load_state(now)
                    .await
                    .map_err(MonitorError::Read)?
                    .state);
            }
            Err(error) => return Err(MonitorError::Write(error)),
        }
        for transition in transitions {
            report::log_transition(transition, &after);
        }
        report::log_topics(&before.state, &after);
        report::set_levels(&after);
        report::clear_forgotten(&before.state, &after);
        report::set_treatment(&after);
        report::given_up(given_up);
        self.notify_of_changes(&after).await;
        Ok(after)
    }

    /// Sends notices of the changes that the written state carries.
    async fn notify_of_changes(&mut self, after: &PressureState) {
        let Some(topic) = self
            .notices_topic
            .as_ref()
            .filter(|_| !after.untold.is_empty())
        else {
            return;
        };
        let MonitorPorts {
            deliveries,
            state: payloads,
            clock,
            entropy,
            registry,
            ..
        } = &self.ports;
        let fan_out = FanOut {
            deliveries,
            slow: None,
            payloads,
            clock,
            entropy,
        };
        let time = notices_time(&self.settings);
        if send_notices::<P>(Notifier { registry, fan_out }, topic, after, time).await
            && let Some((_, state)) = &mut self.written
        {
            // The next poll starts from a state without them, and writes it.
            state.untold.clear();
            self.carries_notified = true;
        }
    }

    async fn load_state(&mut self, now: Timestamp) -> Result<PreviousState, PortError> {
        let known = self.written.as_ref().map(|(etag, _)| etag);
        let read = get_newer(&self.ports.state, PRESSURE_KEY, known).await?;
        let absent = PreviousState {
            state: PressureState::normal(now),
            condition: PutCondition::IfAbsent,
            is_ours: true,
        };
        Ok(match (read, &self.written) {
            (RevalidatedObject::Unchanged, Some((etag, state))) => PreviousState {
                state: state.clone(),
                condition: PutCondition::IfMatch(etag.clone()),
                is_ours: true,
            },
            (RevalidatedObject::Changed(object), _) => state_from_object(object, now),
            (RevalidatedObject::Missing | RevalidatedObject::Unchanged, _) => absent,
        })
    }

    /// Whether another monitor polled so recently that this poll would count its history twice. If
    /// two monitors poll at the same pace, at most one of them finds the other's state older
    /// than three quarters of the interval.
    fn is_turn_of_another(&self, before: &PreviousState, now: Timestamp) -> bool {
        let age = now.since(before.state.at).max(before.state.at.since(now));
        !before.is_ours && age < self.settings.interval.mul_f64(0.75)
    }

    /// Whether nothing is watched and the state says so already, with no notices left and nothing of
    /// a slow lane. Then it is not written again.
    fn is_switched_off(&self, before: &PreviousState) -> bool {
        let is_notified = before.state.untold.is_empty() && !self.carries_notified;
        let is_said = !before.state.monitored && before.state.slow_lane.is_none();
        !self.settings.enable_resource_monitoring && is_said && is_notified
    }

    /// The resources whose thresholds do not fit the readings, and fitted those before. Each is
    /// reported once.
    fn new_misfits(&mut self, readings: &ResourceReadings) -> Vec<(Resource, SettingsError)> {
        let misfits = self.settings.misfit_rows(readings);
        let known = std::mem::replace(
            &mut self.misfits,
            misfits.iter().map(|(resource, _)| *resource).collect(),
        );
        misfits
            .into_iter()
            .filter(|(resource, _)| !known.contains(resource))
            .collect()
    }

    /// Reads the resources, and how fast each topic drains.
    async fn read_resources(&mut self, now: Timestamp) -> PollReadings {
        let sample = self.ports.probe.sample();
        let MonitorPorts {
            deliveries: queue,
            drain,
            clock,
            ..
        } = &self.ports;
        let deliveries = queue_counts(queue, "deliveries").await;
        let dead_letters = match queue_counts(&self.ports.dead_letters, "deadletters").await {
            Some(counts) => dead_letter_backlog(&self.ports.state, counts, now).await,
            None => None,
        };
        let leaves_out = self.settings.leaves_out_self_limited();
        let drained = match deliveries {
            Some(counts) => {
                let look = self
                    .drain
                    .measure_drain(queue, drain, clock, counts, leaves_out);
                Some(look.await)
            }
            None => None,
        };
        let slow = drained.as_ref().and_then(|drained| drained.slow.clone());
        let readings = ResourceReadings {
            visible: drained.as_ref().and_then(|drained| drained.visible),
            version_buckets: sample.version_buckets,
            batch_points: sample.batch_points,
            database: database_space(sample.database, deliveries, &self.settings),
            log_disk: sample.log_disk,
            process_bytes: sample.process_bytes,
            memory: sample.memory,
            dead_letters,
            drain_secs: drained.and_then(|drained| drained.drain_secs),
        };
        let topics = match slow {
            Some(slow) => Some(self.topic_drains(slow, &readings, now).await),
            None => None,
        };
        PollReadings { readings, topics }
    }

    /// The slow lane, if a target is slow or its queue has messages that are known of. It bounds no
    /// producer: a slow target holds up nobody else. What could not be counted is as it was.
    async fn slow_lane(&self, before: &PressureState, now: Timestamp) -> Option<SlowLaneState> {
        let lane = self.ports.slow_lane.as_ref()?;
        let targets = lane.lanes.refreshed_targets().await.count_at(now);
        let counts = queue_counts(&lane.queue, "deliveries-slow").await;
        let counts = counts.unwrap_or_else(|| slow_lane_counts(before.slow_lane));
        (targets > 0 || counts.total() > 0).then_some(SlowLaneState {
            targets,
            due: counts.visible,
            delayed: counts.delayed,
            in_flight: counts.in_flight,
            places: self.slow_places,
        })
    }

    async fn topic_drains(
        &self,
        slow: Vec<SlowSubscription>,
        readings: &ResourceReadings,
        now: Timestamp,
    ) -> Vec<TopicDrain> {
        let bytes_max = self.settings.subscription_bytes_max(readings.database);
        let secs_min = self.settings.slow_drain_secs();
        topic_drains(&self.ports.registry, slow, secs_min, bytes_max, now).await
    }
}

/// The messages of the slow lane that were counted.
fn slow_lane_counts(lane: Option<SlowLaneState>) -> QueueCounts {
    lane.map_or_else(QueueCounts::default, |lane| QueueCounts {
        visible: lane.due,
        delayed: lane.delayed,
        in_flight: lane.in_flight,
    })
}

/// The place that can fill up, with its use.
fn database_space(
    database: Option<DatabaseResource>,
    deliveries: Option<QueueCounts>,
    settings: &PressureSettings,
) -> Option<DatabaseSpace> {
    match database? {
        DatabaseResource::Disk(usage) => Some(DatabaseSpace::Disk(usage)),
        DatabaseResource::InFlight => deliveries.map(|counts| DatabaseSpace::InFlight {
            messages: counts.in_flight,
            max: settings.in_flight_max,
        }),
    }
}

/// The state before a poll, written by another monitor, or by this one before a restart.
fn state_from_object(object: StoredObject, now: Timestamp) -> PreviousState {
    let state = PressureState::parse(&object.bytes).inspect_err(|error| {
        tracing::error!(
            error = error as &dyn std::error::Error,
            "pressure state unusable, replaced"
        );
    });
    let is_ours = state.is_err();
    let state = state.unwrap_or_else(|_| PressureState::normal(now));
    PreviousState {
        state,
        condition: PutCondition::IfMatch(object.etag),
        is_ours,
    }
}

/// The counts of a queue; `None` if they could not be read. Then its resources keep their levels.
async fn queue_counts(queue: &impl QueueReceiver, name: &'static str) -> Option<QueueCounts> {
    let counts = queue.counts().await.inspect_err(|error| {
        tracing::warn!(
            queue = name,
            error = error as &dyn std::error::Error,
            "queue not counted"
        );
    });
    counts.ok()
}

#[cfg(test)]
mod tests;
