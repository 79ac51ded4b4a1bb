//! Messages that failed together come back apart, also by the wait of ten seconds, and where a
//! queue delays by whole seconds.

use std::collections::BTreeSet;
use std::time::Duration;

use posthaste_deliver::{DELAY_STEP_AWS, DeliverSettings};
use posthaste_ports::{Clock, QueueName};
use posthaste_simulation::{Answer, Faults, World, event, start};
use serde_json::json;

const DAY: Duration = Duration::from_hours(24);

/// The messages that fail together: fewer than are a streak.
const MESSAGES: usize = 8;

/// A moment that is short beside the waits.
const MOMENT: Duration = Duration::from_millis(5);

/// Sends messages whose first attempts fail in one invocation. Returns the times of their second
/// attempts, in milliseconds since the first.
async fn second_attempts(settings: DeliverSettings, held: Option<f64>) -> Vec<u128> {
    let world = World::bounded(&Faults::none(), settings);
    if let Some(fraction) = held {
        world.chance.hold(fraction);
    }
    world.subscribe(json!({})).await;
    for number in 0..MESSAGES {
        world.publish(&[event(&number.to_string())], DAY).await;
    }
    world.endpoint.answer([Answer::Status(409)]);
    world.deliver().await;
    assert_eq!(world.endpoint.take().len(), MESSAGES);
    world.endpoint.answer([Answer::Status(204)]);
    let mut times = Vec::new();
    while times.len() < MESSAGES {
        world.clock.advance(MOMENT);
        while world.visible(QueueName::Deliveries).await > 0 {
            world.deliver().await;
        }
        let came = world.endpoint.take();
        times.extend(came.iter().map(|it| it.at.since(start()).as_millis()));
        assert!(
            world.clock.now() < start() + Duration::from_mins(1),
            "{times:?}"
        );
    }
    times
}

#[tokio::test]
async fn messages_that_failed_together_come_back_apart() {
    let times = second_attempts(DeliverSettings::default(), None).await;
    assert!(
        times.iter().all(|at| (10_000..=13_000).contains(at)),
        "{times:?}"
    );
    let distinct: BTreeSet<_> = times.iter().collect();
    assert_eq!(distinct.len(), MESSAGES, "{times:?}");
}

/// SQS delays by whole seconds: the second is drawn, and rounding up adds none.
#[tokio::test]
async fn whole_seconds_of_sqs_are_drawn() {
    let settings = || DeliverSettings {
        delay_step: DELAY_STEP_AWS,
        ..DeliverSettings::default()
    };
    let times = second_attempts(settings(), None).await;
    let seconds: BTreeSet<_> = times.iter().copied().collect();
    let all = BTreeSet::from([10_000, 11_000, 12_000, 13_000]);
    assert!(seconds.is_subset(&all) && seconds.len() > 1, "{times:?}");
    for (fraction, expected) in [(0.0, 10_000), (0.3, 11_000), (0.6, 12_000), (0.9, 13_000)] {
        let times = second_attempts(settings(), Some(fraction)).await;
        assert_eq!(times, [expected; MESSAGES], "{fraction}");
    }
}
