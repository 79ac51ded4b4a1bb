//! Features that only insert steps. Each draws from a stream of its own, so that a seed without them
//! plays the course that it played before there were any.

use posthaste_testkit::Trick;

use crate::course::{Action, Course, Step, Wrong};
use crate::draw::{Draw, hash};

/// One seed in so many has each of them.
const SEEDS_PER_FEATURE: u64 = 8;

/// Most panics of a course.
const PANICS_MAX: u64 = 4;

/// Most requests of a course whose clients go away, and the turns after which they do.
const DEPARTURES_MAX: u64 = 6;
const TURNS_MAX: u64 = 60;

/// The chance of a call to wait, in thousandths, where clients go away.
const WAITS: u16 = 900;

/// The requests of clients that go away.
const ASKED: [Action; 14] = [
    Action::Pause,
    Action::Resume,
    Action::Disable,
    Action::Enable,
    Action::Force,
    Action::Replay,
    Action::ReplayLog,
    Action::Resolve,
    Action::DeleteLetters,
    Action::Edit,
    Action::Move,
    Action::RotateSecret,
    Action::Delete,
    Action::Create,
];

/// Inserts the steps of the features that a seed has.
pub(crate) fn insert(course: &mut Course) {
    let seed = course.world.seed;
    if let Some(mut draw) = stream(seed, "departures") {
        insert_departures(&mut draw, course);
    }
    if let Some(mut draw) = stream(seed, "panics") {
        insert_panics(&mut draw, &mut course.steps);
    }
    if let Some(mut draw) = stream(seed, "downgrades") {
        insert_downgrade(&mut draw, &mut course.steps);
    }
}

/// The chance of a feature; `None` if the seed does not have it.
fn stream(seed: u64, feature: &str) -> Option<Draw> {
    let mut draw = Draw::new(hash(seed, &[feature]));
    draw.is_one_in(SEEDS_PER_FEATURE).then_some(draw)
}

/// Clients of the API go away, at any wait of what they asked for.
fn insert_departures(draw: &mut Draw, course: &mut Course) {
    course.world.tricks[Trick::Yield as usize] = WAITS;
    for _ in 0..=draw.below(DEPARTURES_MAX) {
        let place = draw.index(course.steps.len() + 1);
        let step = Step::Act {
            of: u8::try_from(draw.index(course.subscribers.len())).unwrap_or_default(),
            what: draw.one_of(&ASKED),
            gone: u8::try_from(1 + draw.below(TURNS_MAX)).unwrap_or_default(),
        };
        course.steps.insert(place, step);
    }
}

/// Functions panic at some calls, or in requests to endpoints.
fn insert_panics(draw: &mut Draw, steps: &mut Vec<Step>) {
    for _ in 0..=draw.below(PANICS_MAX) {
        let (with, most) = draw.one_of(&[(Wrong::Panics, 60), (Wrong::ClientPanics, 8)]);
        let calls = u16::try_from(draw.below(most)).unwrap_or_default();
        let place = draw.index(steps.len() + 1);
        steps.insert(place, Step::Fault { calls, with });
    }
}

/// A former program is there for a while.
fn insert_downgrade(draw: &mut Draw, steps: &mut Vec<Step>) {
    let end = 1 + draw.index(steps.len());
    let begin = draw.index(end + 1);
    steps.insert(end, Step::Upgrade);
    steps.insert(begin, Step::Pass(draw.one_of(&[1, 70, 1200])));
    steps.insert(begin, Step::Downgrade);
}
