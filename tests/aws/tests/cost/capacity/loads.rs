//! The loads that are measured.

use std::time::Duration;

use super::case::{BACKLOG, Case, SLOW_HOST};
use super::lambda::{Pollers, QUICK, SLOW_POLLERS, SlowPollers};
use super::queue::Order;

/// The time for which all endpoints are silent.
pub(super) const SILENCE: Duration = Duration::from_mins(10);

/// The rate of the subscription that has one.
pub(super) const RATE: f64 = 50.0;

/// The answer time of an endpoint that works, slowly.
pub(super) const SLOW_ANSWER: Duration = Duration::from_secs(10);

/// An answer that comes after every timeout.
const NEVER: Duration = Duration::from_hours(1);

/// Healthy endpoints.
pub(super) const HEALTHY: [Case; 9] = [
    Case {
        name: "a backlog, 5 invocations (a new account)",
        pollers: Pollers::Ready(5),
        ..BACKLOG
    },
    Case {
        name: "a backlog, 50 invocations",
        ..BACKLOG
    },
    Case {
        name: "the same, scaled up from 5",
        pollers: Pollers::Scaling(50),
        ..BACKLOG
    },
    Case {
        name: "a backlog, 50 invocations, answers in 1 s",
        answer_time: |_, _| Duration::from_secs(1),
        ..BACKLOG
    },
    Case {
        name: "the same, answers in 10 s",
        answer_time: |_, _| SLOW_ANSWER,
        ..BACKLOG
    },
    Case {
        name: "one subscriber, by the hundred, 10 invocations",
        pollers: Pollers::Ready(10),
        events: 1_000,
        per_request: 100,
        ..ONE
    },
    Case {
        name: "the same with `batching`, 2 invocations",
        pollers: Pollers::Ready(2),
        events: 1_000,
        per_request: 100,
        is_batching: true,
        ..ONE
    },
    Case {
        name: "100 events/s, one by one",
        events: 300,
        pace: Duration::from_millis(10),
        ..ONE
    },
    Case {
        name: "1,000 events/s, one by one",
        events: 1_000,
        pace: Duration::from_millis(1),
        ..ONE
    },
];

const ONE: Case = Case {
    subscribers: 1,
    ..BACKLOG
};

/// The settings of `Profile=cheap`.
pub(super) const CHEAP: Case = Case {
    name: "the same with `Profile=cheap`",
    events: 5_000,
    batch: 100,
    publish_gb: 0.125,
    deliver_gb: 0.25,
    ..ONE
};

/// The settings of `Profile=fast`.
pub(super) const FAST: Case = Case {
    name: "the same with `Profile=fast`",
    events: 500,
    publish_gb: 1769.0 / 1024.0,
    deliver_gb: 1769.0 / 1024.0,
    ..ONE
};

/// The loads of which the needs of 5,000 events a second are computed: full batches.
pub(super) const SUSTAINED: [Case; 6] = [
    Case {
        name: "published one by one",
        events: 500,
        ..ONE
    },
    CHEAP,
    FAST,
    Case {
        name: "the same with `DeliverBatchSize=1`",
        events: 500,
        batch: 1,
        order: Order::Fair,
        ..ONE
    },
    Case {
        name: "published by the hundred",
        events: 5_000,
        per_request: 100,
        ..ONE
    },
    Case {
        name: "the same with `batching`",
        events: 500,
        per_request: 100,
        is_batching: true,
        ..ONE
    },
];

/// Ten subscribers get 20 events a second each, for six seconds. The endpoint of the first is slow.
const ONE_SLOW: Case = Case {
    name: "one of ten answers in 10 s",
    subscribers: 10,
    events: 120,
    pace: Duration::from_millis(50),
    answer_time: |host, _| {
        if host == SLOW_HOST {
            SLOW_ANSWER
        } else {
            QUICK
        }
    },
    ..BACKLOG
};

/// One slow endpoint beside healthy ones.
pub(super) const SLOW: [Case; 6] = [
    Case {
        name: "all ten are quick",
        answer_time: |_, _| QUICK,
        ..ONE_SLOW
    },
    ONE_SLOW,
    Case {
        name: "the same with `maxRequestsPerSecond: 2`",
        rate: Some(2.0),
        ..ONE_SLOW
    },
    Case {
        name: "200 invocations",
        pollers: Pollers::Ready(200),
        ..ONE_SLOW
    },
    Case {
        name: "the same with `DeliverBatchSize=1`",
        batch: 1,
        order: Order::Fair,
        ..ONE_SLOW
    },
    Case {
        name: "the last, in a queue that is not fair",
        batch: 1,
        ..ONE_SLOW
    },
];

/// The same load beside the slow endpoint, for longer.
pub(super) const LONGER: [Case; 4] = [
    ONE_SLOW,
    Case {
        events: 600,
        ..ONE_SLOW
    },
    Case {
        events: 1_200,
        ..ONE_SLOW
    },
    Case {
        events: 2_400,
        ..ONE_SLOW
    },
];

/// The bound on the open requests of the subscription that has one.
pub(super) const OPEN_MOST: u32 = 5;

/// A backlog of one subscription, without a bound, with a rate, and with a bound on open requests.
pub(super) const LIMITED: [Case; 3] = [
    Case {
        name: "no rate",
        events: 500,
        ..ONE
    },
    Case {
        name: "`maxRequestsPerSecond: 50`",
        events: 500,
        rate: Some(RATE),
        ..ONE
    },
    Case {
        name: "`maxConcurrentRequests: 5`",
        events: 500,
        concurrency: Some(OPEN_MOST),
        ..ONE
    },
];

/// All endpoints are silent, so that every request times out after 30 s. Ten subscribers get an
/// event a second each, for a minute.
pub(super) const FAILING: [Case; 1] = [Case {
    name: "all endpoints are silent for ten minutes",
    subscribers: 10,
    events: 60,
    pace: Duration::from_secs(1),
    answer_time: |_, at| if at < SILENCE { NEVER } else { QUICK },
    ..BACKLOG
}];

/// The time at which an endpoint becomes slow that was quick at first.
const SLOW_FROM: Duration = Duration::from_mins(1);

/// Two minutes of the load, with the slow lane of the template.
const WITH_LANE: Case = Case {
    name: "one of ten answers in 10 s",
    events: 2_400,
    slow: Some(SlowPollers { max: SLOW_POLLERS }),
    ..ONE_SLOW
};

/// The same load with the slow lane and, for comparison, without it.
pub(super) const LANES: [Case; 10] = [
    WITH_LANE,
    Case {
        name: "three of ten do",
        unhealthy: 3,
        answer_time: |host, _| {
            slow_if(matches!(
                host,
                "s0.example.com" | "s1.example.com" | "s2.example.com"
            ))
        },
        ..WITH_LANE
    },
    Case {
        name: "one of ten does from 60 s on",
        slow_from: SLOW_FROM,
        answer_time: |host, at| slow_if(host == SLOW_HOST && at >= SLOW_FROM),
        ..WITH_LANE
    },
    Case {
        name: "one of ten changes every minute",
        answer_time: |host, at| slow_if(host == SLOW_HOST && (at.as_secs() + 30) / 60 % 2 == 0),
        ..WITH_LANE
    },
    Case {
        name: "ten of 1,000 do, an event every 5 s, 100 invocations",
        pollers: Pollers::Ready(100),
        subscribers: 1_000,
        unhealthy: 10,
        events: 24,
        pace: Duration::from_secs(5),
        answer_time: |host, _| slow_if(host.len() == SLOW_HOST.len()),
        ..WITH_LANE
    },
    Case {
        name: "all ten do",
        unhealthy: 0,
        answer_time: |_, _| SLOW_ANSWER,
        ..WITH_LANE
    },
    Case {
        name: "all ten do, without the lane",
        unhealthy: 0,
        slow: None,
        answer_time: |_, _| SLOW_ANSWER,
        ..WITH_LANE
    },
    Case {
        name: "all ten are quick",
        unhealthy: 0,
        answer_time: |_, _| QUICK,
        ..WITH_LANE
    },
    Case {
        name: "all ten are quick, without the lane",
        unhealthy: 0,
        slow: None,
        answer_time: |_, _| QUICK,
        ..WITH_LANE
    },
    Case {
        name: "one of ten answers in 10 s, without the lane",
        slow: None,
        ..WITH_LANE
    },
];

/// The time of an endpoint that is slow or not.
fn slow_if(is_slow: bool) -> Duration {
    if is_slow { SLOW_ANSWER } else { QUICK }
}
