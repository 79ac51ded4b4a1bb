//! The cost of each dimension. The delivery log is off, and requests have one event.

use std::time::Duration;

use posthaste_tests::home::Home;
use posthaste_tests::patience::rest;

use super::dimension::{Dimension, doubled, doubled_to};
use super::series::{Point, Series};
use crate::arguments::Arguments;
use crate::backlog::{self, Course};
use crate::process::cpu_seconds;
use crate::rounds::{Runs, in_turns, spread};
use crate::setup::{Mode, Setup};
use crate::shape::Shape;
use crate::sink::Sink;
use crate::traffic::Traffic;
use crate::trial;

/// Time for which an idle server is watched.
const IDLE: Duration = Duration::from_secs(5);

/// The least of subscriptions; doubled five times they are less than a topic's most.
const SUBSCRIPTIONS_MIN: usize = 15;
const TOPICS_MIN: usize = 32;
const ENDPOINTS_MIN: usize = 32;
const BYTES_MIN: usize = 1024;
/// 64 KiB, one doubling more than the others.
const BYTES_MAX: usize = 64 * 1024;

/// The part of the most events that is published where another number is doubled.
const EVENTS_SHARE: usize = 8;

/// Everything that the dimensions share.
pub(super) struct Bench<'a> {
    sink: &'a Sink,
    arguments: &'a Arguments,
    /// CPU time of an idle server, in seconds per second.
    idle_cpu: f64,
}

impl<'a> Bench<'a> {
    pub(super) fn new(sink: &'a Sink, arguments: &'a Arguments) -> Self {
        let home = Home::new();
        let server = arguments.setup(Mode::Off).start(&home);
        let before = cpu_seconds(server.pid());
        rest(IDLE);
        let idle_cpu = (cpu_seconds(server.pid()) - before) / IDLE.as_secs_f64();
        Self {
            sink,
            arguments,
            idle_cpu,
        }
    }

    pub(super) fn measure(&self, dimension: Dimension) -> Vec<Series> {
        let events = self.arguments.growth_events;
        let all = |_| events / EVENTS_SHARE;
        let url = self.sink.url();
        let series = match dimension {
            Dimension::Backlog => return self.backlog(),
            Dimension::Events => {
                let traffic = |_| Traffic::of_shape(Shape::One, &url);
                self.cpu(
                    dimension,
                    doubled_to(events),
                    traffic,
                    |count| count,
                    self.sink,
                )
            }
            Dimension::Subscriptions => {
                let traffic = |count| Traffic::matching_one_of(count, &url);
                self.cpu(
                    dimension,
                    doubled(SUBSCRIPTIONS_MIN),
                    traffic,
                    all,
                    self.sink,
                )
            }
            Dimension::Topics => {
                let traffic = |count| Traffic::on_topics(count, &url);
                self.cpu(dimension, doubled(TOPICS_MIN), traffic, all, self.sink)
            }
            Dimension::Size => {
                let traffic = |bytes| Traffic::of_shape(Shape::One, &url).with_event_bytes(bytes);
                let values = [doubled(BYTES_MIN), vec![BYTES_MAX]].concat();
                self.cpu(dimension, values, traffic, all, self.sink)
            }
            Dimension::Endpoints => self.endpoints(all),
        };
        vec![series]
    }

    fn endpoints(&self, events: impl Fn(usize) -> usize) -> Series {
        let values = doubled(ENDPOINTS_MIN);
        let sink = Sink::start(values.iter().copied().max().unwrap_or(1));
        let url = |host| format!("{}/s", sink.url_of(host));
        let traffic = |count| Traffic::spread_over(&(0..count).map(url).collect::<Vec<_>>(), 1);
        self.cpu(Dimension::Endpoints, values, traffic, events, &sink)
    }

    /// CPU time of a run at each value.
    fn cpu(
        &self,
        dimension: Dimension,
        values: Vec<usize>,
        traffic: impl Fn(usize) -> Traffic,
        events: impl Fn(usize) -> usize,
        sink: &Sink,
    ) -> Series {
        let runs = self.in_turns(dimension, values, |value, setup| {
            trial::run(sink, &traffic(value), events(value), setup)
        });
        let point = |(at, runs): &(usize, Runs<trial::Measured>)| {
            let idle = spread(runs, |it| it.secs).median * self.idle_cpu;
            Point {
                at: *at,
                total: spread(runs, |it| it.cpu_secs).median,
                idle,
            }
        };
        let points = runs.iter().map(point).collect();
        Series {
            cost: "CPU",
            unit: "s",
            dimension: dimension.name(),
            points,
        }
    }

    /// Memory, restart and drain of events that wait.
    fn backlog(&self) -> Vec<Series> {
        let dimension = Dimension::Backlog;
        let batch = self.arguments.backlog_batch;
        let values = doubled_to(self.arguments.growth_backlog);
        let runs = self.in_turns(dimension, values, |events, setup| {
            backlog::run(self.sink, events, batch, setup)
        });
        let series = |cost, unit, total: fn(&Course) -> f64, idle: fn(&Course) -> f64| {
            let point = |(at, runs): &(usize, Runs<Course>)| Point {
                at: *at,
                total: spread(runs, total).median,
                idle: spread(runs, idle).median,
            };
            Series {
                cost,
                unit,
                dimension: dimension.name(),
                points: runs.iter().map(point).collect(),
            }
        };
        vec![
            series("Memory", "MiB", |it| it.full.now_mib, |it| it.idle.now_mib),
            series("Restart", "s", |it| it.restart_secs, |it| it.start_secs),
            series("Drain", "s", |it| it.drain_secs, |_| 0.0),
        ]
    }

    fn in_turns<T>(
        &self,
        dimension: Dimension,
        values: Vec<usize>,
        measure: impl Fn(usize, &Setup<'_>) -> T,
    ) -> Vec<(usize, Runs<T>)> {
        let setup = self.arguments.setup(Mode::Off);
        let named = |value: &usize| (format!("{value} {}", dimension.name()), *value);
        let cases: Vec<_> = values.iter().map(named).collect();
        let runs = in_turns(self.arguments.growth_rounds, &cases, |value| {
            measure(*value, &setup)
        });
        values.into_iter().zip(runs).collect()
    }
}
