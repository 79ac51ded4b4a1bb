//! Courses that failed once, as they were shrunk, each with what it found.

use posthaste_simulation_campaign::{
    Action::{self, Create},
    Course,
    Place::{self, Serve},
    Publication,
    Schema::{self, Cloud},
    Setting,
    Step::{self, Act, Publish},
    Subscriber,
};

/// All of them.
pub(crate) fn all() -> Vec<(&'static str, Course)> {
    vec![
        (
            "planted: a subscription was looked up once per invocation, so that a slow connect \
             sent by settings that were changed",
            looked_up_once(),
        ),
        (
            "a large event that was taken back before its time had no id in its records",
            large_event_taken_back(),
        ),
    ]
}

/// A subscription on this host, with the defaults.
const fn plain(host: u8) -> Subscriber {
    Subscriber {
        host,
        is_filtered: false,
        batch: 0,
        rate: 0,
        at_once: 0,
        attempts: 0,
        life: 0,
        is_hasty: false,
        has_fallback: false,
        drops: false,
        drops_expired: false,
        is_binary: false,
        buries_at_once: false,
    }
}

/// One event, at once.
const ONE: Step = Publish(Publication {
    events: 1,
    kind: 0,
    bytes: 0,
    later: 0,
    life: 0,
    has_key: false,
    gone: 0,
});

/// A world in which nothing goes wrong.
const fn calm(seed: u64, place: Place, schema: Schema) -> Setting {
    Setting {
        seed,
        place,
        workers: 1,
        schema,
        tricks: [0; 11],
        slow_connects: 0,
        has_pressure: false,
    }
}

const fn act(of: u8, what: Action) -> Step {
    Act { of, what, gone: 0 }
}

/// Seed 5000.
fn looked_up_once() -> Course {
    Course {
        world: Setting {
            slow_connects: 300,
            ..calm(5000, Serve, Cloud)
        },
        subscribers: vec![plain(0), plain(0), plain(0), plain(1)],
        steps: vec![ONE, act(3, Create)],
    }
}

/// Seed 200333.
fn large_event_taken_back() -> Course {
    let later = Publish(Publication {
        events: 1,
        kind: 0,
        bytes: 70_000,
        later: 90,
        life: 0,
        has_key: false,
        gone: 0,
    });
    Course {
        world: calm(200_333, Serve, Cloud),
        subscribers: vec![plain(0)],
        steps: vec![later, Step::Cancel { back: 0 }],
    }
}
