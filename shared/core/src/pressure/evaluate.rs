//! One poll of the monitor as a decision: the state before and the readings give the state after.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::topics::keep_worst_topics;
use super::transition::level_transitions;
use super::{
    DatabaseSpace, LevelActions, LevelThresholds, LevelTransition, PressureLevel, PressureMeasure,
    PressureSettings, PressureState, Resource, ResourceReadings, ResourceRow, ResourceState,
    STATE_FORGOTTEN_AFTER, TopicDrain, TopicPressure, rows_of_profile,
};
use crate::model::time::whole_millis;
use crate::model::{ProducerTier, Timestamp};

/// A row that acts only while the drain is slow goes on until the drain time is below this part of
/// the threshold at which it began. The tarpit that begins with it makes the drain time shorter by
/// itself, so that it must be well below.
const SLOW_DRAIN_ENDS_BELOW_PART: u64 = 2;

/// The polls after which the share of messages in flight refuses producers: as many as the drain
/// time's.
const IN_FLIGHT_HISTORY_DEPTH: u32 = 30;

/// The level a reading leads to.
///
/// Every border has its hysteresis, so that a reading which flaps around one threshold changes
/// nothing after the first time: High lasts until below *medium*, and whatever is not Normal lasts,
/// as Medium, until below *normal*. Exchange behaves so (its later versions publish the two
/// downward borders by name, `HighToMedium` and `MediumToLow`). Letting High survive below *medium*
/// was rejected: the level would then depend on whether a poll happened to fall between the two
/// thresholds.
pub fn next_level(
    previous: PressureLevel,
    reading: u64,
    thresholds: LevelThresholds,
) -> PressureLevel {
    if reading >= thresholds.high {
        PressureLevel::High
    } else if reading >= thresholds.medium {
        previous.max(PressureLevel::Medium)
    } else if reading >= thresholds.normal {
        previous.min(PressureLevel::Medium)
    } else {
        PressureLevel::Normal
    }
}

/// The state after a poll, and what changed since the state before was written, however long ago.
///
/// A resource that cannot be read keeps its level with the history frozen, and is left out once
/// that has lasted as long as makes a state forgotten. A state that is stale itself is continued
/// with the tarpit at its first step.
pub fn evaluate_pressure(
    previous: &PressureState,
    readings: &ResourceReadings,
    settings: &PressureSettings,
    now: Timestamp,
) -> (PressureState, Vec<LevelTransition>) {
    let state = if settings.enable_resource_monitoring {
        let mut state = state_after_poll(
            &state_to_continue(previous, settings, now),
            readings,
            settings,
            now,
        );
        state.next_tarpit_ms =
            Some(state_after_poll(&state, readings, settings, now + settings.interval).tarpit_ms);
        state
    } else {
        PressureState::unmonitored(now)
    };
    let transitions = level_transitions(previous, &state);
    (state, transitions)
}

/// The topics after a poll, each with a drain time of its own: those that `previous` names, and
/// those that are slow now. A topic of which nothing is left is not named any more. `None` if the
/// drain is not known: then all topics keep their levels, as a resource does that cannot be read.
///
/// If the profile's drain time refuses no producer, no topic's does.
pub fn evaluate_topics(
    previous: &PressureState,
    drains: Option<Vec<TopicDrain>>,
    settings: &PressureSettings,
    now: Timestamp,
) -> Vec<TopicPressure> {
    let row = rows_of_profile(settings.profile)
        .iter()
        .find(|row| row.resource == Resource::DrainTime && row.throttles);
    let Some(row) = row.filter(|_| settings.enable_resource_monitoring) else {
        return Vec::new();
    };
    let is_known = drains.is_some();
    let mut before: BTreeMap<String, TopicPressure> = state_to_continue(previous, settings, now)
        .topics
        .into_iter()
        .map(|of| (of.topic.folded(), of))
        .collect();
    let mut topics = Vec::new();
    for drain in drains.into_iter().flatten() {
        let before = before.remove(&drain.topic.folded());
        topics.extend(topic_after_poll(row, before, Some(drain), settings, now));
    }
    for (_, gone) in before {
        let drain = is_known.then(|| TopicDrain {
            topic: gone.topic.clone(),
            subscription: gone.subscription.clone(),
            due: 0,
            drain_secs: 0,
        });
        topics.extend(topic_after_poll(row, Some(gone), drain, settings, now));
    }
    topics.retain(|topic| !topic.is_at_rest(whole_millis(settings.tarpit.base)));
    keep_worst_topics(topics)
}

/// One topic after a poll.
fn topic_after_poll(
    row: &ResourceRow,
    before: Option<TopicPressure>,
    drain: Option<TopicDrain>,
    settings: &PressureSettings,
    now: Timestamp,
) -> Option<TopicPressure> {
    let readings = ResourceReadings {
        drain_secs: drain.as_ref().map(|drain| drain.drain_secs),
        ..ResourceReadings::default()
    };
    let poll = PressurePoll {
        readings: &readings,
        settings,
        now,
    };
    let drain_time_before = before.as_ref().map(|before| &before.drain_time);
    let tarpit_before_ms = before.as_ref().map_or(0, |before| before.tarpit_ms);
    let (drain_time, tarpit_ms) = poll.next_topic_step(row, drain_time_before, tarpit_before_ms)?;
    let next_poll = PressurePoll {
        now: now + settings.interval,
        ..poll
    };
    let next = next_poll.next_topic_step(row, Some(&drain_time), tarpit_ms);
    let (topic, subscription, due) = match (drain, before) {
        (Some(drain), _) => (drain.topic, drain.subscription, drain.due),
        (None, before) => {
            let before = before?;
            (before.topic, before.subscription, before.due)
        }
    };
    Some(TopicPressure {
        topic,
        subscription,
        due,
        drain_time,
        tarpit_ms,
        next_tarpit_ms: next.map_or(0, |(_, next_tarpit_ms)| next_tarpit_ms),
    })
}

/// The state after a poll that goes on from `previous`.
fn state_after_poll(
    previous: &PressureState,
    readings: &ResourceReadings,
    settings: &PressureSettings,
    now: Timestamp,
) -> PressureState {
    let poll = PressurePoll {
        readings,
        settings,
        now,
    };
    let rows = rows_of_profile(settings.profile).iter();
    let resources: Vec<ResourceState> = rows
        .filter_map(|row| poll.next_resource_state(row, previous.resource(row.resource)))
        .collect();
    PressureState {
        tarpit_ms: whole_millis(poll.next_tarpit(previous.tarpit_wait(), &resources)),
        base_ms: whole_millis(settings.tarpit.base),
        first_step_ms: whole_millis(settings.tarpit.start),
        stale_after_ms: whole_millis(settings.stale_after()),
        resources,
        ..PressureState::normal(now)
    }
}

/// The state to go on from, by its age.
fn state_to_continue(
    previous: &PressureState,
    settings: &PressureSettings,
    now: Timestamp,
) -> PressureState {
    let age = previous.age(now);
    let mut state = previous.clone();
    if age > STATE_FORGOTTEN_AFTER {
        state = PressureState::normal(previous.at);
    } else if age > settings.stale_after() {
        state.tarpit_ms = state.tarpit_ms.min(state.first_step_ms);
        for topic in &mut state.topics {
            topic.tarpit_ms = topic.tarpit_ms.min(state.first_step_ms);
        }
    }
    state
}

struct PressurePoll<'a> {
    readings: &'a ResourceReadings,
    settings: &'a PressureSettings,
    now: Timestamp,
}

impl PressurePoll<'_> {
    /// Whether a row's level has consequences for producers. All places of deliver are taken while
    /// any backlog is worked off, so that their share acts only where that takes long.
    fn affects_producers(&self, row: &ResourceRow, previous: Option<&ResourceState>) -> bool {
        let needs_slow_drain = row.needs_slow_drain || self.is_share_in_flight(row);
        row.throttles && (!needs_slow_drain || self.drains_slowly(previous))
    }

    /// The history depth of a row, in polls.
    fn history_depth(&self, row: &ResourceRow) -> Option<u32> {
        if self.is_share_in_flight(row) {
            Some(IN_FLIGHT_HISTORY_DEPTH)
        } else {
            self.settings.history_depth_of(row)
        }
    }

    /// Whether the drain is slow for a row that acts only then: from the drain time's normal
    /// threshold on, and where the row presses already, until below half of it. An unknown
    /// drain time is taken to be slow, which is the safe side.
    fn drains_slowly(&self, previous: Option<&ResourceState>) -> bool {
        let row = rows_of_profile(self.settings.profile)
            .iter()
            .find(|row| row.resource == Resource::DrainTime);
        let Some((drain_time, thresholds)) = row.and_then(|row| self.reading_and_thresholds(row))
        else {
            return true;
        };
        let presses = previous.is_some_and(|p| p.effective_level() > PressureLevel::Normal);
        let part = if presses {
            SLOW_DRAIN_ENDS_BELOW_PART
        } else {
            1
        };
        drain_time.saturating_mul(part) >= thresholds.normal
    }

    /// A row's reading and thresholds. A disk that became too small for its formula counts as
    /// unreadable here; at the start it was refused.
    fn reading_and_thresholds(&self, row: &ResourceRow) -> Option<(u64, LevelThresholds)> {
        let thresholds = self.settings.thresholds_of(row, self.readings).ok()??;
        Some((self.readings.reading_of(row.resource)?, thresholds))
    }

    fn next_resource_state(
        &self,
        row: &ResourceRow,
        previous: Option<&ResourceState>,
    ) -> Option<ResourceState> {
        let Some((reading, thresholds)) = self.reading_and_thresholds(row) else {
            return previous
                .filter(|p| self.now.since(p.read_at) <= STATE_FORGOTTEN_AFTER)
                .cloned();
        };
        let level = next_level(
            previous.map_or(PressureLevel::Normal, |p| p.level),
            reading,
            thresholds,
        );
        let acts = self.affects_producers(row, previous);
        let presses = acts && level > PressureLevel::Normal;
        let polls = if presses {
            previous.map_or(0, |p| p.polls).saturating_add(1)
        } else {
            0
        };
        let mut state = ResourceState {
            resource: row.resource,
            level,
            since: previous
                .filter(|p| p.level == level)
                .map_or(self.now, |p| p.since),
            reading,
            read_at: self.now,
            thresholds,
            acts,
            watched_only: !row.throttles,
            tarpits: presses && actions_at(row, level).tarpit,
            polls,
            history_depth: self.history_depth(row).filter(|_| row.throttles),
            in_flight: self.is_share_in_flight(row),
            refused_from: None,
            measures: BTreeSet::new(),
        };
        if presses {
            state.refused_from = self.refused_from(row, &state, previous);
        }
        state.measures = self.active_measures(row, &state, previous);
        Some(state)
    }

    fn is_share_in_flight(&self, row: &ResourceRow) -> bool {
        row.resource == Resource::DatabaseDisk
            && matches!(self.readings.database, Some(DatabaseSpace::InFlight { .. }))
    }

    /// The tiers to refuse: those that the level refuses once the history has passed, and those
    /// refused already, since a tier is accepted again only at Normal. But `internal` passes at
    /// Medium whatever was before.
    fn refused_from(
        &self,
        row: &ResourceRow,
        state: &ResourceState,
        previous: Option<&ResourceState>,
    ) -> Option<ProducerTier> {
        let passed = self
            .history_depth(row)
            .is_none_or(|depth| state.polls >= depth);
        let due = actions_at(row, state.level).refuse_from.filter(|_| passed);
        let before = previous.and_then(|p| p.refused_from);
        let before = before.map(|from| match state.level {
            PressureLevel::High => from,
            PressureLevel::Normal | PressureLevel::Medium => from.max(ProducerTier::Standard),
        });
        due.into_iter().chain(before).min()
    }

    /// The state of a topic's drain time and its tarpit, in milliseconds.
    fn next_topic_step(
        &self,
        row: &ResourceRow,
        previous: Option<&ResourceState>,
        previous_tarpit_ms: u64,
    ) -> Option<(ResourceState, u64)> {
        let drain_time = self.next_resource_state(row, previous)?;
        let tarpit = self.next_tarpit(
            Duration::from_millis(previous_tarpit_ms),
            std::slice::from_ref(&drain_time),
        );
        Some((drain_time, whole_millis(tarpit)))
    }

    /// The tarpit ends when refusing the usual producers begins; until then it goes up by a step
    /// with every poll under pressure and down by a step with every one without. Where a
    /// resource that presses could not be read, it stays. At its end is the base, which every
    /// acknowledgement waits.
    fn next_tarpit(&self, previous: Duration, resources: &[ResourceState]) -> Duration {
        let tarpit = self.settings.tarpit;
        if resources
            .iter()
            .any(|r| r.refuses_tier(ProducerTier::Standard))
        {
            return tarpit.base;
        }
        let mut pressing = resources.iter().filter(|r| r.tarpits).peekable();
        if pressing.peek().is_none() {
            let shorter = previous.saturating_sub(tarpit.step);
            return if shorter < tarpit.start {
                tarpit.base
            } else {
                shorter.min(tarpit.max)
            };
        }
        if pressing.any(|r| r.read_at == self.now) {
            let longer = if previous < tarpit.start {
                tarpit.start
            } else {
                previous.saturating_add(tarpit.step)
            };
            return longer.min(tarpit.max);
        }
        previous.clamp(tarpit.base, tarpit.max)
    }

    /// The other measures. Dehydration, once begun, lasts until Normal: payloads that are in
    /// messages again would bring the pressure back.
    fn active_measures(
        &self,
        row: &ResourceRow,
        state: &ResourceState,
        previous: Option<&ResourceState>,
    ) -> BTreeSet<PressureMeasure> {
        let level = state.told_level();
        let mut measures: BTreeSet<PressureMeasure> =
            actions_at(row, level).measures.iter().copied().collect();
        if row.trims_above_normal && state.reading > state.thresholds.normal {
            measures.insert(PressureMeasure::TrimCaches);
        }
        if level > PressureLevel::Normal
            && previous.is_some_and(|p| p.measures.contains(&PressureMeasure::Dehydrate))
        {
            measures.insert(PressureMeasure::Dehydrate);
        }
        if row.resource.is_memory() && !self.settings.dehydrates_for_memory {
            measures.remove(&PressureMeasure::Dehydrate);
        }
        measures
    }
}

fn actions_at(row: &ResourceRow, level: PressureLevel) -> LevelActions {
    match level {
        PressureLevel::Normal => LevelActions {
            tarpit: false,
            refuse_from: None,
            measures: &[],
        },
        PressureLevel::Medium => row.medium,
        PressureLevel::High => row.high,
    }
}
