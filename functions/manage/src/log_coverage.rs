//! The times of which the delivery log has records.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRef;
use posthaste_core::api::IsoTimestamp;
use posthaste_core::delivery_log::{LogGap, LogRecord};
use posthaste_core::model::Timestamp;
use posthaste_core::model::time::whole_millis;
use posthaste_core::stored::TopicRecord;
use posthaste_ports::{Clock, Ports};

use crate::manage::{Manage, ManageSettings};
use crate::shared_port::SharedPort;

/// Most times without records in an answer, the newest.
const GAPS_SHOWN_MAX: usize = 20;

/// A period. `None` is an open end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeBounds {
    pub(crate) from: Option<Timestamp>,
    pub(crate) to: Option<Timestamp>,
}

/// The times of which the delivery log has records, by its settings.
pub(crate) struct LogCoverage<P: Ports> {
    clock: P::Clock,
    settings: SharedPort<P, ManageSettings>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for LogCoverage<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            clock: manage.clock.clone(),
            settings: SharedPort::new(manage, |it| &it.settings),
        }
    }
}

impl<P: Ports> LogCoverage<P> {
    /// The longest time from an attempt until the log has its record.
    pub(crate) fn delay(&self) -> Duration {
        self.settings.log.delay
    }

    /// The time for which records are kept, if it is known.
    pub(crate) fn retention(&self) -> Option<Duration> {
        self.settings.log.retention
    }

    /// The time from which on every record of an event was found. Earlier ones may be outside of
    /// what was asked for, beyond the most that an answer has, or gone by now.
    pub(crate) fn complete_from(
        &self,
        records: &[LogRecord],
        is_cut: bool,
        [searched_from, asked_from]: [Option<Timestamp>; 2],
    ) -> Option<Timestamp> {
        let oldest = records.iter().map(|record| record.time).min();
        let after_cut = oldest.filter(|_| is_cut);
        let retained = self.settings.log.retention.map(|kept| {
            let kept = whole_millis(kept);
            Timestamp::from_millis(self.clock.now().as_millis().saturating_sub(kept))
        });
        let bounds = [asked_from, searched_from, after_cut, retained];
        bounds.into_iter().flatten().max()
    }

    /// The time as of which a period tells what became of an event. It says nothing of later
    /// records.
    pub(crate) fn end_of(&self, period: TimeBounds) -> Timestamp {
        let now = self.clock.now();
        period.to.map_or(now, |to| to.min(now))
    }

    /// The time up to which every record has come into the log.
    pub(crate) fn complete_until(&self) -> IsoTimestamp {
        let delay = whole_millis(self.settings.log.delay);
        IsoTimestamp(Timestamp::from_millis(
            self.clock.now().as_millis().saturating_sub(delay),
        ))
    }

    /// The times in a period of which the log may lack records, at most the newest
    /// [`GAPS_SHOWN_MAX`]. Of a time before the retention it has no records anyway.
    pub(crate) fn gaps(&self, from: Option<Timestamp>, to: Option<Timestamp>) -> Vec<LogGap> {
        let log = &self.settings.log;
        let now = self.clock.now().as_millis();
        let oldest = log.retention.map_or(Timestamp::EPOCH, |kept| {
            let kept = whole_millis(kept);
            Timestamp::from_millis(now.saturating_sub(kept))
        });
        let asked = log
            .gaps
            .iter()
            .filter(|gap| gap.to >= oldest && gap.is_within(from, to));
        let mut shown: Vec<_> = asked.rev().take(GAPS_SHOWN_MAX).cloned().collect();
        shown.reverse();
        shown
    }

    /// Whether nothing is recorded of a topic.
    pub(crate) fn is_off(&self, record: Option<&TopicRecord>) -> bool {
        let mode = record.map(|record| {
            record
                .settings
                .delivery_log
                .unwrap_or(self.settings.log.mode)
        });
        mode.is_some_and(|mode| !mode.keeps_attempts())
    }
}
