//! The draw of a course from a seed, swarm style: each seed switches features on and off, so that
//! one run is about few of them, and all runs are about all of them in every mixture.

use posthaste_testkit::Trick;
use posthaste_testkit::adversary::TRICKS;

use crate::additions;
use crate::course::{
    Action, Behaviour, Course, Place, Publication, Question, Schema, Setting, Step, Subscriber,
    Wrong,
};
use crate::draw::{Draw, hash};
use crate::insertions;

/// Steps of a course.
const STEPS_MIN: u64 = 6;
const STEPS_MAX: u64 = 40;

/// Most events of one request.
const EVENTS_MAX: u64 = 12;

/// More than a message takes, so that the event is stored beside it.
const LARGE_BYTES: u32 = 70_000;

/// Most subscriptions.
const SUBSCRIBERS_MAX: u64 = 4;

/// The features that a seed is about.
#[derive(Debug, Clone, Copy)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a feature that a seed turns on or off"
)]
struct Features {
    batches: bool,
    short_lives: bool,
    rates: bool,
    bounds: bool,
    filters: bool,
    large_events: bool,
    schedules: bool,
    keys: bool,
    refusals: bool,
    outages: bool,
    lateness: bool,
    operators: bool,
    edits: bool,
    makers: bool,
    replays: bool,
    cancels: bool,
    restarts: bool,
    kills: bool,
    faults: bool,
    leavers: bool,
    fallbacks: bool,
    long_passes: bool,
    tricks: bool,
    set_backs: bool,
}

impl Features {
    fn draw(draw: &mut Draw) -> Self {
        let mut is_on = |times| draw.is_one_in(times);
        Self {
            batches: is_on(3),
            short_lives: is_on(4),
            rates: is_on(5),
            bounds: is_on(5),
            filters: is_on(3),
            large_events: is_on(4),
            schedules: is_on(4),
            keys: is_on(4),
            refusals: is_on(3),
            outages: !is_on(3),
            lateness: is_on(4),
            operators: is_on(3),
            edits: is_on(4),
            makers: is_on(5),
            replays: is_on(3),
            cancels: is_on(5),
            restarts: is_on(5),
            kills: is_on(4),
            faults: is_on(4),
            leavers: is_on(6),
            fallbacks: is_on(6),
            long_passes: is_on(3),
            tricks: is_on(3),
            set_backs: is_on(12),
        }
    }
}

impl Course {
    /// The course of a seed, the same each time.
    pub fn draw(seed: u64) -> Self {
        let mut draw = Draw::new(seed);
        let features = Features::draw(&mut draw);
        let world = world(seed, &features, &mut draw);
        let subscribers: Vec<_> = (0..=draw.below(SUBSCRIBERS_MAX))
            .map(|_| subscriber(world, &features, &mut draw))
            .collect();
        let count = STEPS_MIN + draw.below(STEPS_MAX - STEPS_MIN);
        let mut steps = vec![Step::Publish(publication(&features, &mut draw))];
        steps.extend((0..count).map(|_| step(&features, subscribers.len(), &mut draw)));
        for (place, step) in steps.iter_mut().enumerate() {
            if hash(seed, &["for some", &place.to_string()]).is_multiple_of(2) {
                fail_for_some(step);
            }
        }
        let mut course = Self {
            world,
            subscribers,
            steps,
        };
        additions::add(&mut course);
        insertions::insert(&mut course);
        course
    }
}

/// Turns the behaviour of an endpoint into one for certain events alone.
fn fail_for_some(step: &mut Step) {
    if let Step::Behave { like, .. } = step {
        *like = match *like {
            Behaviour::Flaps => Behaviour::BusyForSome,
            Behaviour::ComesAndGoes => Behaviour::FallsOver,
            other => other,
        };
    }
}

fn world(seed: u64, features: &Features, draw: &mut Draw) -> Setting {
    let place = draw.one_of(&[Place::Serve, Place::Aws]);
    let mut tricks = [0; TRICKS.len()];
    for trick in TRICKS {
        let is_played = draw.is_one_in(3);
        // The embedded queue is ours: it makes no copies, and settles what it says it settled.
        let is_of_aws = matches!(
            trick,
            Trick::Duplicate | Trick::Resurrect | Trick::ReturnEarly
        );
        if features.tricks && is_played && (place == Place::Aws || !is_of_aws) {
            tricks[trick as usize] = draw.one_of(&[2, 10, 50]);
        }
    }
    tricks[Trick::Yield as usize] = draw.one_of(&[0, 300, 900]);
    Setting {
        seed,
        place,
        workers: 1 + u8::try_from(draw.below(3)).unwrap_or_default(),
        schema: draw.one_of(&[Schema::Cloud, Schema::Cloud, Schema::Grid, Schema::Custom]),
        tricks,
        slow_connects: draw.one_of(&[0, 0, 300]),
        has_pressure: draw.is_one_in(6),
        has_notices: false,
    }
}

fn subscriber(world: Setting, features: &Features, draw: &mut Draw) -> Subscriber {
    let mut chosen = |is_on: bool, values: &[u16]| {
        let value = draw.one_of(values);
        if is_on && draw.is_one_in(2) { value } else { 0 }
    };
    let batch = chosen(features.batches, &[2, 3, 5, 10]);
    let rate = u32::from(chosen(features.rates, &[2, 12, 60, 1200]));
    let at_once = chosen(features.bounds, &[1, 2, 5]);
    let life = chosen(features.short_lives, &[1, 10, 120]);
    let attempts = u8::try_from(chosen(true, &[1, 2, 3, 6, 12])).unwrap_or_default();
    let mut is = |is_on: bool, times: u64| is_on && draw.is_one_in(times);
    Subscriber {
        topic: 0,
        is_filtered: is(features.filters, 2),
        batch,
        reports: false,
        rate,
        at_once,
        attempts,
        life,
        is_hasty: is(true, 4),
        has_fallback: is(features.fallbacks, 2),
        drops: is(true, 8),
        drops_expired: is(true, 10),
        is_binary: is(world.schema == Schema::Cloud && batch == 0, 5),
        buries_at_once: is(true, 3),
        question: Question::None,
        is_reluctant: false,
        idle: 0,
        host: u8::try_from(draw.below(2)).unwrap_or_default(),
    }
}

fn publication(features: &Features, draw: &mut Draw) -> Publication {
    let most = if draw.is_one_in(2) { 1 } else { EVENTS_MAX };
    let events = 1 + draw.below(most);
    let is_large = features.large_events && draw.is_one_in(3);
    let later = draw.one_of(&[1, 90, 3600, 26 * 3600]);
    let life = draw.one_of(&[30, 600]);
    let gone = draw.below(20);
    Publication {
        topic: 0,
        events: u8::try_from(events).unwrap_or(1),
        kind: u8::try_from(draw.below(2)).unwrap_or_default(),
        bytes: if is_large { LARGE_BYTES } else { 0 },
        later: if features.schedules && draw.is_one_in(2) {
            later
        } else {
            0
        },
        life: if features.short_lives && draw.is_one_in(3) {
            life
        } else {
            0
        },
        has_key: features.keys && draw.is_one_in(2),
        gone: if features.leavers {
            u8::try_from(gone).unwrap_or_default()
        } else {
            0
        },
    }
}

fn step(features: &Features, subscribers: usize, draw: &mut Draw) -> Step {
    let of = u8::try_from(draw.index(subscribers)).unwrap_or_default();
    let back = u8::try_from(draw.below(8)).unwrap_or_default();
    let act = |what: Action, draw: &mut Draw| Step::Act {
        of,
        what,
        gone: if features.leavers {
            u8::try_from(draw.below(12)).unwrap_or_default()
        } else {
            0
        },
    };
    match draw.below(18) {
        0..=2 => Step::Publish(publication(features, draw)),
        3 | 4 => Step::Behave {
            of,
            like: behaviour(features, draw),
        },
        5 if features.operators => {
            let what = draw.one_of(&[
                Action::Pause,
                Action::Resume,
                Action::Disable,
                Action::Enable,
                Action::Force,
            ]);
            act(what, draw)
        }
        6 if features.edits => {
            let what = draw.one_of(&[Action::Edit, Action::Move, Action::RotateSecret]);
            act(what, draw)
        }
        7 if features.makers => {
            let what = if draw.is_one_in(8) {
                Action::DeleteTopic
            } else {
                draw.one_of(&[Action::Delete, Action::Create, Action::Create])
            };
            act(what, draw)
        }
        8 if features.replays => match draw.below(7) {
            0..=2 => act(Action::Replay, draw),
            3 => act(Action::ReplayLog, draw),
            4 => act(Action::Resolve, draw),
            5 => act(Action::DeleteLetters, draw),
            _ => act(Action::CancelReplays, draw),
        },
        9 if features.replays => Step::Resend { back, of },
        10 if features.cancels => Step::Cancel { back },
        11 if features.restarts => Step::Restart,
        12 if features.kills && draw.is_one_in(2) => Step::Kill(draw.one_of(&[0, 1, 60, 7200])),
        13 if features.faults => Step::Fault {
            calls: u16::try_from(draw.below(60)).unwrap_or_default(),
            with: wrong(features, draw),
        },
        14 if features.keys => Step::PublishAgain { back: back % 3 },
        15 if features.set_backs => Step::SetBack(draw.one_of(&[1, 60, 3600])),
        _ => Step::Pass(pass(features, draw)),
    }
}

fn wrong(features: &Features, draw: &mut Draw) -> Wrong {
    if features.kills {
        return draw.one_of(&[
            Wrong::Fails,
            Wrong::AnswerLost,
            Wrong::KilledBefore,
            Wrong::KilledAfter,
        ]);
    }
    draw.one_of(&[Wrong::Fails, Wrong::AnswerLost])
}

/// Draws the number of seconds that pass.
fn pass(features: &Features, draw: &mut Draw) -> u32 {
    if features.long_passes && draw.is_one_in(3) {
        return draw.one_of(&[3600, 8 * 3600]);
    }
    draw.one_of(&[2, 15, 70, 400])
}

fn behaviour(features: &Features, draw: &mut Draw) -> Behaviour {
    let outages = [
        Behaviour::Busy,
        Behaviour::AsksToWait,
        Behaviour::TooMany,
        Behaviour::Breaks,
        Behaviour::Silent,
        Behaviour::Closes,
        Behaviour::Refused,
        Behaviour::Flaps,
        Behaviour::ComesAndGoes,
    ];
    let refusals = [
        Behaviour::Refuses,
        Behaviour::RefusesSome,
        Behaviour::CannotReadSome,
        Behaviour::TooLarge,
        Behaviour::Unauthorized,
        Behaviour::Gone,
        Behaviour::Moved,
    ];
    let lateness = [Behaviour::Slow, Behaviour::Late, Behaviour::ClosesForSome];
    match draw.below(6) {
        0 | 1 if features.outages => draw.one_of(&outages),
        2 if features.refusals => draw.one_of(&refusals),
        3 if features.lateness => draw.one_of(&lateness),
        _ => Behaviour::Well,
    }
}
