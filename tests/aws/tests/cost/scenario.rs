//! Scenarios until 1,000 events are delivered.

use std::iter::Peekable;
use std::time::Duration;
use std::vec::IntoIter;

use posthaste_core::model::Timestamp;
use posthaste_ports::Clock;
use serde_json::{Map, Value, json};

use crate::arrivals::batches;
use crate::bill::Bill;
use crate::event::event;
use crate::prices::DELIVER_SECONDS;
use crate::world::{BATCH_MAX, START, World};

/// Events that every scenario delivers.
pub(crate) const DELIVERED: usize = 1000;

const SECOND_MS: u64 = 1_000;
const MINUTE_MS: u64 = 60 * SECOND_MS;

/// Longest time of a scenario.
const LENGTH_MAX: Duration = Duration::from_hours(24);

/// A scenario.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scenario {
    /// The name in the tables.
    pub(crate) name: &'static str,
    /// The number of subscriptions that receive every event.
    pub(crate) subscribers: usize,
    /// True if they want batches of up to 100 events and 64 KB.
    pub(crate) is_batching: bool,
    /// Events of one publish request.
    pub(crate) events_per_publish: usize,
    /// The time between two publish requests.
    pub(crate) pace: Duration,
    /// When deliver is invoked.
    pub(crate) received: Received,
    /// The events that the endpoint refuses.
    pub(crate) refused: Refused,
    /// `maxConcurrentRequests` of each subscription.
    pub(crate) concurrency: Option<u32>,
    /// True if each publish request has an `Idempotency-Key`.
    pub(crate) is_named: bool,
    /// The length of an invocation of deliver, with endpoints that answer in 100 ms.
    pub(crate) deliver_seconds: f64,
}

/// When deliver is invoked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Received {
    /// As messages come: a poller takes what is there as soon as there is something.
    AsTheyCome,
    /// In full batches, for which `DeliverBatchWindow` waits.
    InFullBatches,
    /// Whenever a publish request has brought something.
    AfterEachPublish,
}

/// The events that an endpoint refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// None.
    Nothing,
    /// The first attempt of each tenth event.
    TenPercentOnce,
    /// Everything, for an hour from the first event on.
    AnHour,
}

/// One subscriber, one event per publish request.
const ONE: Scenario = Scenario {
    name: "one subscriber, 100 events/s",
    subscribers: 1,
    is_batching: false,
    events_per_publish: 1,
    pace: Duration::from_millis(10),
    received: Received::AsTheyCome,
    refused: Refused::Nothing,
    concurrency: None,
    is_named: false,
    deliver_seconds: DELIVER_SECONDS,
};

/// One subscriber, a hundred events in each publish request.
const TOGETHER: Scenario = Scenario {
    name: "one subscriber, published by the hundred",
    events_per_publish: 100,
    pace: Duration::from_secs(1),
    received: Received::AfterEachPublish,
    // Of its hundred requests to one endpoint, fourteen are open at once: `capacity.rs` measures
    // it.
    deliver_seconds: 0.820,
    ..ONE
};

/// One event after the other, each in an invocation of its own.
const TEN: Scenario = Scenario {
    name: "one subscriber, 10 events/s",
    pace: Duration::from_millis(100),
    received: Received::AfterEachPublish,
    ..ONE
};

/// The same, and so rarely that each looks up its topic.
const RARE: Scenario = Scenario {
    name: "one subscriber, an event every 10 s",
    pace: Duration::from_secs(10),
    ..TEN
};

/// All scenarios, in the order of the tables.
pub(crate) const ALL: [Scenario; 14] = [
    ONE,
    TEN,
    Scenario {
        name: "100 events/s with `DeliverBatchWindow=1`",
        received: Received::InFullBatches,
        ..ONE
    },
    Scenario {
        name: "100 events/s with `Idempotency-Key`",
        is_named: true,
        ..ONE
    },
    RARE,
    TOGETHER,
    Scenario {
        name: "ten subscribers, 10 events/s",
        subscribers: 10,
        pace: Duration::from_millis(100),
        received: Received::AfterEachPublish,
        ..ONE
    },
    Scenario {
        name: "batching, 100 events/s",
        is_batching: true,
        ..ONE
    },
    Scenario {
        name: "batching, published by the hundred",
        is_batching: true,
        deliver_seconds: DELIVER_SECONDS,
        ..TOGETHER
    },
    Scenario {
        name: "10 % retried, 100 events/s",
        refused: Refused::TenPercentOnce,
        ..ONE
    },
    Scenario {
        name: "100 events/s with `maxConcurrentRequests: 5`",
        concurrency: Some(5),
        ..ONE
    },
    Scenario {
        name: "10 events/s with `maxConcurrentRequests: 5`",
        concurrency: Some(5),
        ..TEN
    },
    Scenario {
        name: "an outage of an hour, 100 events/s",
        refused: Refused::AnHour,
        ..ONE
    },
    Scenario {
        name: "an outage of an hour, batching, by the hundred",
        deliver_seconds: DELIVER_SECONDS,
        refused: Refused::AnHour,
        is_batching: true,
        ..TOGETHER
    },
];

/// The result of a scenario.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outcome {
    pub(crate) name: &'static str,
    /// The requests.
    pub(crate) bill: Bill,
    /// Requests to the endpoint.
    pub(crate) posts: usize,
    /// The length of an invocation of deliver.
    pub(crate) deliver_seconds: f64,
}

impl Scenario {
    /// Runs it until everything is delivered.
    pub(crate) async fn run(&self) -> Outcome {
        let mut world = World::new(&self.subscriptions()).await;
        let publishes = DELIVERED / self.subscribers / self.events_per_publish;
        let mut batches = self.batches(publishes);
        let mut waiting = 0;
        for n in 0..publishes {
            let name = self.is_named.then(|| format!("request-{n}"));
            world
                .publish_named(&self.events(n, &world), name.as_deref())
                .await;
            waiting += 1;
            while let Some(size) = batches.next_if(|size| *size <= waiting) {
                world.deliver_batch(size).await;
                waiting -= size;
            }
            if self.received == Received::AfterEachPublish {
                world.deliver_all().await;
            }
            world.clock.advance(self.pace);
        }
        world.deliver_all().await;
        let mut delivered = world.take_delivered();
        while delivered < DELIVERED {
            pass_time(&mut world).await;
            delivered += world.take_delivered();
        }
        assert_eq!(delivered, DELIVERED, "no event is delivered twice");
        let Self {
            name,
            deliver_seconds,
            ..
        } = *self;
        Outcome {
            name,
            bill: world.bill,
            posts: world.posts(),
            deliver_seconds,
        }
    }

    /// Sizes of the batches in which messages are received that come one with each publish request.
    fn batches(&self, publishes: usize) -> Peekable<IntoIter<usize>> {
        let sizes = match self.received {
            Received::AsTheyCome => {
                batches(publishes.try_into().expect("a thousand at most"), self.pace)
            }
            Received::InFullBatches => vec![BATCH_MAX; publishes / BATCH_MAX],
            Received::AfterEachPublish => Vec::new(),
        };
        sizes.into_iter().peekable()
    }

    fn subscriptions(&self) -> Value {
        let batching = self
            .is_batching
            .then(|| json!({ "maxEventsPerBatch": 100 }));
        let subscription = |n: usize| {
            let mut endpoint = json!({ "url": format!("https://s{n}.example.com/hook") });
            if let Some(most) = self.concurrency {
                endpoint["maxConcurrentRequests"] = json!(most);
            }
            (
                format!("s{n}"),
                json!({ "endpoint": endpoint, "batching": batching }),
            )
        };
        (0..self.subscribers)
            .map(subscription)
            .collect::<Map<_, _>>()
            .into()
    }

    fn events(&self, publish: usize, world: &World) -> Vec<String> {
        let first = publish * self.events_per_publish;
        let refused_until = |id: usize| match self.refused {
            Refused::TenPercentOnce if id.is_multiple_of(10) => {
                world.clock.now() + Duration::from_secs(1)
            }
            Refused::Nothing | Refused::TenPercentOnce => START,
            Refused::AnHour => START + Duration::from_hours(1),
        };
        (first..first + self.events_per_publish)
            .map(|id| event(id, refused_until(id)))
            .collect()
    }
}

/// Moves the clock to the next whole second at which something is due, or wake runs, and lets it
/// happen.
async fn pass_time(world: &mut World) {
    let now = world.clock.now();
    let next_minute = Timestamp::from_millis((now.minute_rounded_down() + 1) * MINUTE_MS);
    let next = world.next_due().map_or(next_minute, |due| {
        next_second(due.max(now)).min(next_minute)
    });
    world.clock.advance_to(next);
    assert!(
        world.clock.monotonic() < LENGTH_MAX,
        "something is never delivered"
    );
    if next == next_minute {
        world.wake().await;
    }
    world.deliver_all().await;
}

/// The first whole second after a time: the delays of messages are whole seconds, rounded up.
fn next_second(time: Timestamp) -> Timestamp {
    Timestamp::from_millis((time.as_millis() / SECOND_MS + 1) * SECOND_MS)
}
