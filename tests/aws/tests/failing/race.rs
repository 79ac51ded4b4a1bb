//! Workers with caches of their own that write what they see of one link and its subscriptions, all
//! at once.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use posthaste_aws::S3Store;
use posthaste_core::circuit::{
    CircuitDecision, DeliveryTarget, Observation, RequestFailure, TargetPhase,
};
use posthaste_core::model::OutcomeName;
use posthaste_ports::Clock;
use posthaste_services::LinkHealth;
use posthaste_system::SystemClock;

use crate::world::{Emulated, wait_until};

const BUSY: RequestFailure = RequestFailure {
    outcome: OutcomeName::Busy,
    status: Some(503),
};

/// Subscriptions on the link, so all in one object.
const SUBSCRIPTIONS: usize = 12;

/// Racers for the right to the probe, in each worker.
const ASKING: usize = 4;

type Book = LinkHealth<S3Store, SystemClock>;

fn target(n: usize) -> DeliveryTarget {
    DeliveryTarget::parse(&format!("https://a.example:443 orders.s{n}")).unwrap()
}

fn failing() -> Observation {
    Observation::Failing {
        failures: 10,
        last: BUSY,
        began: SystemClock.now(),
    }
}

/// The state in the bucket, as a new worker reads it.
async fn phases(emulated: &Emulated) -> BTreeMap<String, (TargetPhase, u32)> {
    let all = emulated.links().read_all().await.unwrap();
    let conditions = all.iter().flat_map(|(_, shard)| shard.conditions());
    conditions
        .map(|(target, it)| (target.to_string(), (it.phase, it.hold)))
        .collect()
}

/// Reports each target from one of the workers in turn, all at once, and answers the number of
/// changes.
async fn observe(books: &[Book], observation: impl Fn(usize) -> Observation) -> usize {
    let seen: Vec<_> = (0..SUBSCRIPTIONS)
        .map(|n| [(target(n), observation(n))])
        .collect();
    let telling = seen
        .iter()
        .enumerate()
        .map(|(n, seen)| books[n % books.len()].observe(seen));
    let changed = join_all(telling).await;
    changed
        .into_iter()
        .map(|changed| changed.unwrap().len())
        .sum()
}

/// Workers that race over one bucket lose no transition, and one of them probes.
#[tokio::test]
async fn racing_workers_on_one_bucket_lose_no_transition() {
    let emulated = Emulated::start().await;
    for workers in [2, 10] {
        let books: Vec<Book> = (0..workers).map(|_| emulated.links()).collect();
        observe(&books, |_| Observation::Succeeded).await;
        assert_eq!(
            observe(&books, |_| failing()).await,
            SUBSCRIPTIONS,
            "{workers} workers"
        );
        let expected =
            |phase, hold| (0..SUBSCRIPTIONS).map(move |n| (target(n).to_string(), (phase, hold)));
        assert_eq!(
            phases(&emulated).await,
            expected(TargetPhase::Glitch, 1).collect(),
            "{workers} workers"
        );

        let last = target(SUBSCRIPTIONS - 1);
        wait_until("the hold to be over for all", async || {
            let gates = join_all(books.iter().map(|book| book.decide(&last, true))).await;
            gates
                .iter()
                .all(|gate| matches!(gate, CircuitDecision::Probe(_)))
                .then_some(())
        })
        .await;
        let names: Vec<String> = (0..workers * ASKING)
            .map(|n| format!("w{workers}-{n}"))
            .collect();
        let claims = names
            .iter()
            .enumerate()
            .map(|(n, by)| books[n % workers].claim_probe(&last, by));
        let claimed: Vec<_> = join_all(claims)
            .await
            .into_iter()
            .map(Result::unwrap)
            .collect();
        let owners: Vec<_> = names
            .iter()
            .zip(&claimed)
            .filter(|(_, it)| it.is_some())
            .collect();
        let [(owner, _)] = owners[..] else {
            panic!("one of them probes, not {owners:?}")
        };

        // Every worker claims the probe; only its owner is believed. The others have no effect on
        // the link.
        let failed = join_all(names.iter().enumerate().map(async |(n, by)| {
            let by = by.clone();
            let seen = [(last.clone(), Observation::ProbeFailed { by, last: BUSY })];
            books[n % workers].observe(&seen).await.unwrap().len()
        }));
        assert_eq!(failed.await.iter().sum::<usize>(), 1, "{owner}");
        assert_eq!(
            phases(&emulated).await[&last.to_string()],
            (TargetPhase::Glitch, 2)
        );
        // A success is reported by any worker that knows of the failure.
        join_all(books.iter().map(LinkHealth::read_all))
            .await
            .into_iter()
            .for_each(|all| drop(all.unwrap()));
        assert_eq!(
            observe(&books, |_| Observation::Succeeded).await,
            SUBSCRIPTIONS
        );
        assert_eq!(
            phases(&emulated).await,
            expected(TargetPhase::Recovering, 1).collect(),
            "{workers} workers"
        );
    }
}
