//! Features that were added to courses later. Each draws its chance from a sequence of its own, so
//! that the rest of a course is as it was before there were any.

use crate::course::{Behaviour, Course, Step};
use crate::draw::{Draw, hash};

/// A seed in so many has each of these features.
const ONE_IN: u64 = 4;

/// Events of a batch where a course had none.
const BATCH: u16 = 5;

/// Adds what the seed of a course switches on.
pub(crate) fn add(course: &mut Course) {
    if let Some(draw) = chance_of(course, "reports") {
        add_reports(course, draw);
    }
}

/// The chance of a feature, if the seed of a course switches it on.
fn chance_of(course: &Course, feature: &str) -> Option<Draw> {
    let mut draw = Draw::new(hash(course.world.seed, &[feature]));
    draw.is_one_in(ONE_IN).then_some(draw)
}

/// Endpoints name the events of a batch that failed, some where nobody reads it.
fn add_reports(course: &mut Course, mut draw: Draw) {
    if course.subscribers.iter().all(|it| it.batch == 0) {
        let place = draw.index(course.subscribers.len());
        let subscriber = &mut course.subscribers[place];
        subscriber.batch = BATCH;
        subscriber.is_binary = false;
    }
    let mut batched = Vec::new();
    for (of, subscriber) in (0..).zip(&mut course.subscribers) {
        if subscriber.batch > 0 {
            subscriber.reports = !draw.is_one_in(4);
            batched.push(of);
        }
    }
    for _ in 0..=draw.below(3) {
        let like = draw.one_of(&[
            Behaviour::NamesSome,
            Behaviour::NamesSome,
            Behaviour::NamesSomeLate,
            Behaviour::NamesOther,
        ]);
        let of = draw.one_of(&batched);
        let place = draw.index(course.steps.len());
        course.steps.insert(place, Step::Behave { of, like });
    }
}
