//! Capacity of posthaste on AWS. Many invocations of the real deliver run at once on the manual
//! clock, as Lambda's pollers run them. docs/src/operating/aws-capacity.md shows every table, and
//! is held to it here.

mod case;
mod clockwork;
mod endpoints;
mod formula;
mod lambda;
mod loads;
mod published;
mod queue;
mod tables;

use std::thread;
use std::time::Duration;

use case::{Case, Measured};
use formula::delivering;
use loads::{
    CHEAP, FAILING, FAST, HEALTHY, LANES, LIMITED, LONGER, OPEN_MOST, RATE, SLOW, SUSTAINED,
};
use posthaste_settings::profiles::PROFILES;
use tables::Isolation;

use crate::world::BATCH_MAX;

/// The page that shows the tables.
const PAGE: &str = include_str!("../../../../docs/src/operating/aws-capacity.md");

/// The longest wait of a healthy endpoint's event where one setting bounds what a slow one takes.
const BOUNDED_WAIT_MAX: Duration = Duration::from_millis(1_250);

/// The first loads of [`LANES`] have healthy endpoints beside slow ones that have a lane.
const ISOLATED: usize = 5;

/// The longest waits of half of the healthy endpoints' events, and of all of them, once slow ones
/// are known.
const ISOLATED_HALF_MAX: Duration = Duration::from_millis(200);
const ISOLATED_WAIT_MAX: Duration = Duration::from_secs(1);

/// The most that the lane costs while nothing is slow: of the price without it, and in dollars a
/// million deliveries.
const QUICK_PRICE_MAX: f64 = 1.03;
const QUICK_DOLLARS_MAX: f64 = 0.03;

/// Room for the functions' unoptimised futures, and more.
const STACK_BYTES: usize = 16 << 20;

fn assert_shown(table: &str) {
    assert!(
        PAGE.contains(table),
        "docs/src/operating/aws-capacity.md does not show this:\n{table}"
    );
}

/// Runs all of them side by side, each on a clock of its own. In none is anything lost, or
/// delivered twice.
fn run(cases: &[Case]) -> Vec<Measured> {
    thread::scope(|scope| {
        let run = |case: Case| {
            let thread = thread::Builder::new().stack_size(STACK_BYTES);
            thread
                .spawn_scoped(scope, move || case.run())
                .expect("a thread")
        };
        let threads: Vec<_> = cases.iter().map(|case| run(*case)).collect();
        let measured: Vec<_> = threads
            .into_iter()
            .map(|thread| thread.join().expect("a run that ends"))
            .collect();
        cases
            .iter()
            .zip(&measured)
            .for_each(|(case, measured)| measured.assert_whole(case));
        measured
    })
}

#[test]
fn the_rule_of_thumb_is_a_table() {
    assert_shown(&tables::thumb());
}

/// Invocations times requests, divided by their time, are the deliveries of a second.
#[test]
fn invocations_times_requests_by_time_are_deliveries_a_second() {
    let measured = run(&HEALTHY);
    // A backlog in full batches ends with the formula's figure; one that is not always there, below
    // it.
    let full = |invocations, seconds| Some(formula::per_second(invocations, BATCH_MAX, seconds));
    let by_formula = [
        full(5, 0.1),
        full(50, 0.1),
        None,
        full(50, 1.0),
        full(50, 10.0),
        Some(formula::per_second_of_one(10, 100, 0.1)),
        None,
        None,
        None,
    ];
    for (run, formula) in measured.iter().zip(by_formula) {
        assert!(
            formula.is_none_or(|it| (run.per_second() / it - 1.0).abs() < 1e-9),
            "{}",
            run.per_second()
        );
    }
    assert_shown(&tables::healthy(&HEALTHY, &measured, &by_formula));
}

/// A slow endpoint delays healthy ones unless its rate or the batches are bounded.
#[test]
fn slow_endpoint_delays_healthy_ones_unless_bounded() {
    let measured = run(&SLOW);
    let longest = |n: usize| {
        *measured[n]
            .healthy_waits(&SLOW[n])
            .last()
            .expect("a delivery")
    };
    let [quick, slow, rate, many, small, plain] = [0, 1, 2, 3, 4, 5].map(longest);
    assert!(
        [quick, rate, many, small]
            .iter()
            .all(|wait| *wait <= BOUNDED_WAIT_MAX)
    );
    assert!([slow, plain].iter().all(|wait| *wait > BOUNDED_WAIT_MAX));
    assert_shown(&tables::slow(&SLOW, &measured));
}

/// The waits grow with the load's length: there is no end to them while it lasts.
#[test]
fn healthy_waits_beside_a_slow_endpoint_grow_with_the_load() {
    let measured = run(&LONGER);
    assert_shown(&tables::longer(&LONGER, &measured));
}

#[test]
fn slow_endpoints_with_a_lane_hold_up_no_healthy_one() {
    let measured = run(&LANES);
    for (case, run) in LANES.iter().zip(&measured).take(ISOLATED) {
        let seen = Isolation::of(case, run);
        assert!(
            seen.half <= ISOLATED_HALF_MAX,
            "{}: {:?}",
            case.name,
            seen.half
        );
        assert!(
            seen.longest <= ISOLATED_WAIT_MAX,
            "{}: {:?}",
            case.name,
            seen.longest
        );
    }
    let place = |name: &str| {
        LANES
            .iter()
            .position(|case| case.name == name)
            .expect("a load")
    };
    let carried = |name: &str| measured[place(name)].per_second();
    assert!(carried("all ten do") >= carried("all ten do, without the lane"));
    let price = |name: &str| delivering(&LANES[place(name)], &measured[place(name)]);
    let with = price("all ten are quick");
    let without = price("all ten are quick, without the lane");
    assert!(
        with / without <= QUICK_PRICE_MAX,
        "${with:.4}, ${without:.4}"
    );
    assert!(
        with - without <= QUICK_DOLLARS_MAX,
        "${with:.4}, ${without:.4}"
    );
    assert_shown(&tables::lanes(&LANES, &measured));
}

#[test]
fn rate_and_open_request_bound_hold_over_fifty_invocations() {
    let measured = run(&LIMITED);
    assert!(measured[1].most_in_a_second() as f64 <= RATE);
    assert_eq!(measured[2].open_most(), OPEN_MOST as usize);
    assert_shown(&tables::limited(&LIMITED, &measured));
}

#[test]
fn silent_endpoints_cost_little_more_with_time_and_lose_nothing() {
    let measured = run(&FAILING);
    assert_shown(&tables::failing(&FAILING[0], &measured[0]));
}

/// The loads under a profile are of what the template sets.
#[test]
fn loads_of_profiles_have_their_batch_and_memory() {
    let set = |parameter: &str| {
        let mut rows = PROFILES.iter();
        let row = rows.find(|row| row.parameter == parameter);
        row.expect("a parameter that profiles set")
    };
    let batch = set("DeliverBatchSize");
    let publish = set("PublishMemory");
    let deliver = set("DeliverMemory");
    for (case, batch, publish, deliver) in [
        (CHEAP, batch.cheap, publish.cheap, deliver.cheap),
        (FAST, batch.fast, publish.fast, deliver.fast),
    ] {
        assert_eq!(case.batch, batch as usize, "{}", case.name);
        for (gb, mb) in [(case.publish_gb, publish), (case.deliver_gb, deliver)] {
            let difference = gb * 1024.0 - f64::from(mb);
            assert!(difference.abs() < 1e-9, "{}: {mb} MB", case.name);
        }
    }
}

#[test]
fn five_thousand_events_a_second_need_and_cost_so_much() {
    let measured = run(&SUSTAINED);
    assert_shown(&tables::sustained(&SUSTAINED, &measured));
}
