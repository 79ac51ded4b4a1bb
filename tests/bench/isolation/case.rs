//! One case: a server of its own, a hundred subscriptions, and the hundredth's fault.

use std::time::Duration;

use posthaste_tests::api::{Api, Topic};
use posthaste_tests::events::subscription_with;
use posthaste_tests::home::Home;
use posthaste_tests::patience::wait_until;
use posthaste_tests::server::Server;
use serde_json::{Map, Value, json};

use crate::Arguments;
use crate::arrived::Seen;
use crate::endpoints::Endpoints;
use crate::fault::Fault;
use crate::load::Load;
use crate::wire::MEASURED;

/// Subscriptions that are well.
pub(crate) const HEALTHY: usize = 99;

/// Events of the warm-up, in which the hundredth is well: connections and caches are there before
/// anything is measured.
const WARM_UP: u32 = 10;
const WARM_UP_SECS: u32 = 2;

/// The log filter: only warnings, and the line that says where the server listens.
const LOG_FILTER: &str = "warn,posthaste_server=info";

/// Words of the log for a link and for a subscription that gets no requests for a while.
const LEFT_ALONE: [&str; 2] = ["to the link failed", "after the link was reached"];

/// One case.
#[derive(Debug)]
pub(crate) struct Case {
    /// The name in the table.
    pub(crate) name: &'static str,
    /// The fault of the hundredth endpoint.
    pub(crate) fault: Fault,
    /// Whether the hundredth is a path of a host and port where healthy ones are.
    is_shared: bool,
}

/// The result of a case.
#[derive(Debug)]
pub(crate) struct Measured {
    /// The events at the endpoints.
    pub(crate) seen: Seen,
    /// Requests to the hundredth that failed.
    pub(crate) failed: u64,
    /// The number of holds of its link, and of the subscription.
    pub(crate) left_alone: [usize; 2],
    /// The deliveries that were held in the end, and those that waited in the queue.
    pub(crate) held: u64,
    pub(crate) queued: u64,
}

/// All cases. The first is run again in the end: what differs between the two is the machine's.
pub(crate) const CASES: [Case; 9] = [
    Case {
        name: "is well",
        fault: Fault::Nothing,
        is_shared: false,
    },
    Case {
        name: "refuses connections",
        fault: Fault::Refuses,
        is_shared: false,
    },
    Case {
        name: "hangs (timeout 5 s)",
        fault: Fault::Hangs,
        is_shared: false,
    },
    Case {
        name: "answers 503",
        fault: Fault::Busy,
        is_shared: false,
    },
    Case {
        name: "answers 503, on a link with 9 others",
        fault: Fault::Busy,
        is_shared: true,
    },
    Case {
        name: "answers 200 after 4 s",
        fault: Fault::Slow,
        is_shared: false,
    },
    Case {
        name: "answers 200 after 4 s, on a link with 9 others",
        fault: Fault::Slow,
        is_shared: true,
    },
    Case {
        name: "flaps (4 s down, 4 s up)",
        fault: Fault::Flaps,
        is_shared: false,
    },
    Case {
        name: "is well, again",
        fault: Fault::Nothing,
        is_shared: false,
    },
];

impl Case {
    /// Runs it, and wants every healthy event to arrive once.
    pub(crate) fn run(&self, arguments: &Arguments) -> Measured {
        let home = Home::new();
        let endpoints = Endpoints::start();
        let profile = &arguments.pressure_profile;
        let server = Server::start(
            home.path(),
            &["--pressure-profile", profile, "--log-filter", LOG_FILTER],
        );
        let topic = self.topic(server.api(), &endpoints);
        let load = Load::new(server.url(), &topic);
        load.publish(WARM_UP_SECS, WARM_UP, 0);
        wait_for(&endpoints, WARM_UP as usize * HEALTHY);
        endpoints.reset();
        endpoints.turn(self.fault);
        let secs = arguments.secs_of(self);
        let events = arguments.rate * secs;
        let pressing = load.publish(secs, events, arguments.pressing_rate * secs);
        wait_for(&endpoints, events as usize * HEALTHY);
        let seen = endpoints.seen();
        let all = events as usize * HEALTHY;
        assert_eq!(
            (seen.arrived, seen.distinct),
            (all, all),
            "every event arrives, and once"
        );
        let log = server.log();
        let held = server.api().metric("posthaste_held_deliveries_total") as u64;
        Measured {
            failed: server
                .api()
                .metric("posthaste_deliveries_total{outcome=\"failed\"}")
                as u64,
            left_alone: LEFT_ALONE
                .map(|said| log.iter().filter(|line| line.contains(said)).count()),
            held,
            queued: u64::from(events + pressing).saturating_sub(seen.taken + held),
            seen,
        }
    }

    fn topic(&self, api: &Api, endpoints: &Endpoints) -> Topic {
        let measured = json!({ "filter": { "includedEventTypes": [MEASURED] } });
        let healthy = |n: usize| {
            (
                format!("s{n}"),
                subscription_with(&endpoints.healthy(n), &measured),
            )
        };
        let mut subscriptions: Map<String, Value> = (0..HEALTHY).map(healthy).collect();
        let url = endpoints.hundredth(self.is_shared);
        let hundredth = subscription_with(&url, &json!({ "endpoint": { "timeout": "PT5S" } }));
        subscriptions.insert("hundredth".to_owned(), hundredth);
        api.create_topic("bench", &json!({ "subscriptions": subscriptions }))
    }
}

/// Waits for so many arrivals, for as long as there are more of them.
fn wait_for(endpoints: &Endpoints, count: usize) {
    let mut arrived = endpoints.seen().arrived;
    while arrived < count {
        let before = arrived;
        arrived = wait_until("more arrivals", || {
            posthaste_tests::patience::rest(Duration::from_millis(100));
            Some(endpoints.seen().arrived).filter(|arrived| *arrived > before)
        });
    }
}
