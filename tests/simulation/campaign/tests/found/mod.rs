//! Courses that failed once, as they were shrunk, each with what it found.

use posthaste_simulation_campaign::{
    Action::{self, Create},
    Behaviour, Course,
    Place::{self, Serve},
    Publication, Question,
    Schema::{self, Cloud},
    Setting,
    Step::{self, Act, Publish},
    Subscriber, Wrong,
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
        (
            "records were lost with a transaction of the queue that failed once",
            records_in_a_transaction_that_fails(),
        ),
        (
            "on AWS a hold stayed of which the workers that delivered knew nothing",
            hold_of_another_worker(),
        ),
        (
            "planted: a late answer to the last attempt was ignored",
            late_answer_to_the_last_attempt(),
        ),
        (
            "planted: a stored pause was unknown to a worker that had just begun",
            pause_after_a_restart(),
        ),
        (
            "planted: a batch was split on 400 and 413 only",
            batch_of_which_some_cannot_be_read(),
        ),
        (
            "planted: a message was settled before its successor was durable",
            killed_while_a_message_is_replaced(),
        ),
        (
            "planted: a crash between two lanes lost a message",
            killed_between_two_lanes(),
        ),
        (
            "planted: a request that changes something ended with its client",
            clients_that_leave_in_the_middle(),
        ),
        (
            "planted: what was recovered three times was recovered again",
            event_that_brings_its_endpoint_down(),
        ),
        (
            "planted: an invocation in which all failed held back an endpoint that took others",
            some_fail_while_others_arrive(),
        ),
    ]
}

/// A subscription on this host, with the defaults.
const fn plain(host: u8) -> Subscriber {
    Subscriber {
        topic: 0,
        host,
        is_filtered: false,
        batch: 0,
        reports: false,
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
        question: Question::None,
        is_reluctant: false,
        idle: 0,
    }
}

/// One event, at once.
const ONE: Step = Publish(Publication {
    topic: 0,
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
        has_notices: false,
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
        topic: 0,
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

/// So many events, at once.
const fn events(events: u8) -> Step {
    Publish(Publication {
        topic: 0,
        events,
        kind: 0,
        bytes: 0,
        later: 0,
        life: 0,
        has_key: false,
        gone: 0,
    })
}

const fn first_is(like: Behaviour) -> Step {
    Step::Behave { of: 0, like }
}

const fn killed_before(calls: u16) -> Step {
    Step::Fault {
        calls,
        with: Wrong::KilledBefore,
    }
}

/// Seed 500274.
fn records_in_a_transaction_that_fails() -> Course {
    let mut world = calm(500_274, Serve, Cloud);
    // Of a hundred calls one is refused, and others run before one in three.
    world.tricks[8] = 10;
    world.tricks[10] = 300;
    let of_other_kind = |step| match step {
        Publish(publication) => Publish(Publication {
            kind: 1,
            ..publication
        }),
        other => other,
    };
    Course {
        world,
        subscribers: vec![plain(0)],
        steps: vec![
            ONE,
            first_is(Behaviour::Late),
            Step::Kill(7200),
            Step::Pass(140),
            of_other_kind(ONE),
            events(3),
            of_other_kind(events(7)),
            Step::Pass(400),
        ],
    }
}

fn pause_after_a_restart() -> Course {
    Course {
        world: calm(2, Place::Aws, Cloud),
        subscribers: vec![plain(0)],
        steps: vec![
            first_is(Behaviour::AsksToWait),
            ONE,
            Step::Pass(2),
            Step::Restart,
            ONE,
            Step::Pass(15),
        ],
    }
}

fn batch_of_which_some_cannot_be_read() -> Course {
    Course {
        world: calm(1, Serve, Cloud),
        subscribers: vec![Subscriber {
            batch: 10,
            attempts: 3,
            is_hasty: true,
            ..plain(0)
        }],
        steps: vec![
            first_is(Behaviour::CannotReadSome),
            events(10),
            Step::Pass(3600),
        ],
    }
}

fn killed_while_a_message_is_replaced() -> Course {
    Course {
        world: calm(7, Place::Aws, Cloud),
        subscribers: vec![plain(0)],
        steps: vec![
            first_is(Behaviour::Busy),
            killed_before(7),
            ONE,
            Step::Pass(70),
        ],
    }
}

fn killed_between_two_lanes() -> Course {
    Course {
        world: calm(6, Place::Aws, Cloud),
        subscribers: vec![plain(0)],
        steps: vec![
            first_is(Behaviour::Slow),
            events(3),
            Step::Pass(15),
            events(3),
            Step::Pass(15),
            killed_before(5),
            events(2),
            Step::Pass(70),
        ],
    }
}

/// Seed 2420.
fn late_answer_to_the_last_attempt() -> Course {
    Course {
        world: calm(2420, Serve, Cloud),
        subscribers: vec![Subscriber {
            attempts: 2,
            ..plain(0)
        }],
        steps: vec![
            first_is(Behaviour::Breaks),
            ONE,
            first_is(Behaviour::Late),
            Step::Pass(70),
        ],
    }
}

/// By hand: each recovery of certain events makes an outage of its own.
fn event_that_brings_its_endpoint_down() -> Course {
    let mut steps = vec![first_is(Behaviour::FallsOver)];
    for _ in 0..600 {
        steps.extend([events(2), Step::Pass(30)]);
    }
    Course {
        world: calm(1444, Serve, Cloud),
        subscribers: vec![Subscriber {
            attempts: 4,
            ..plain(0)
        }],
        steps,
    }
}

/// By hand: what fails comes again together, and others arrive all the time.
fn some_fail_while_others_arrive() -> Course {
    let mut steps = vec![first_is(Behaviour::BusyForSome)];
    for _ in 0..60 {
        steps.extend([events(4), Step::Pass(15)]);
    }
    Course {
        world: calm(4, Serve, Cloud),
        subscribers: vec![plain(0)],
        steps,
    }
}

/// Seed 600315.
fn clients_that_leave_in_the_middle() -> Course {
    let mut world = calm(600_315, Place::Aws, Cloud);
    // Others run before nine of ten calls, so that a request has several turns.
    world.tricks[10] = 900;
    let leaves = |what, gone| Act { of: 0, what, gone };
    Course {
        world,
        subscribers: vec![plain(1)],
        steps: vec![
            Step::Pass(8 * 3600),
            leaves(Action::Disable, 3),
            leaves(Action::Pause, 9),
        ],
    }
}

/// Seed 502216.
fn hold_of_another_worker() -> Course {
    let published = |events| {
        Publish(Publication {
            topic: 0,
            events,
            kind: 1,
            bytes: 0,
            later: 0,
            life: 0,
            has_key: false,
            gone: 0,
        })
    };
    let mut world = calm(502_216, Place::Aws, Cloud);
    world.workers = 3;
    Course {
        world,
        subscribers: vec![
            Subscriber {
                attempts: 2,
                is_hasty: true,
                ..plain(1)
            },
            plain(0),
            Subscriber {
                at_once: 5,
                ..plain(0)
            },
        ],
        steps: vec![
            published(1),
            first_is(Behaviour::ClosesForSome),
            Step::Behave {
                of: 2,
                like: Behaviour::Slow,
            },
            published(10),
            Step::Pass(70),
        ],
    }
}
