//! Features that were added to courses later. Each draws its chance from a sequence of its own, so
//! that the rest of a course is as it was before there were any.

use crate::course::{Action, Behaviour, Consent, Course, Question, Step};
use crate::draw::{Draw, hash};

/// A seed in so many may have these features, so that most seeds have the course that they had
/// before.
const ONE_IN: u64 = 3;

/// Events of a batch where a course had none.
const BATCH: u16 = 5;

/// Adds what the seed of a course switches on.
pub(crate) fn add(course: &mut Course) {
    if !Draw::new(hash(course.world.seed, &["additions"])).is_one_in(ONE_IN) {
        return;
    }
    if let Some(draw) = chance_of(course, "reports") {
        add_reports(course, draw);
    }
    if let Some(draw) = chance_of(course, "consent") {
        add_consent(course, draw);
    }
    if let Some(draw) = chance_of(course, "topics") {
        add_topic(course, draw);
    }
    if let Some(draw) = chance_of(course, "idle") {
        add_idle_times(course, draw);
    }
    course.world.has_notices = chance_of(course, "notices").is_some();
}

/// The chance of a feature, if the seed of a course switches it on: every other one does.
fn chance_of(course: &Course, feature: &str) -> Option<Draw> {
    let mut draw = Draw::new(hash(course.world.seed, &[feature]));
    draw.is_one_in(2).then_some(draw)
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

/// Endpoints are asked whether they want events, and do not all consent at once.
fn add_consent(course: &mut Course, mut draw: Draw) {
    let questions = [Question::Options, Question::Event];
    for subscriber in &mut course.subscribers {
        if draw.is_one_in(2) {
            subscriber.question = draw.one_of(&questions);
            subscriber.is_reluctant = draw.is_one_in(2);
        }
    }
    if course
        .subscribers
        .iter()
        .all(|it| it.question == Question::None)
    {
        let place = draw.index(course.subscribers.len());
        course.subscribers[place].question = draw.one_of(&questions);
        course.subscribers[place].is_reluctant = true;
    }
    // A second endpoint on another host is refused where the first one is asked.
    for subscriber in &mut course.subscribers {
        subscriber.has_fallback &= subscriber.question == Question::None;
    }
    let asked: Vec<u8> = (0..)
        .zip(&course.subscribers)
        .filter(|(_, it)| it.question != Question::None)
        .map(|(of, _)| of)
        .collect();
    for _ in 0..=draw.below(6) {
        let of = draw.one_of(&asked);
        let like = draw.one_of(&[Consent::Given, Consent::Open, Consent::Refused]);
        let what = draw.one_of(&[
            Action::Validate,
            Action::Validate,
            Action::Move,
            Action::Enable,
        ]);
        let step = match draw.below(6) {
            0 | 1 => Step::Consent { of, like },
            2 | 3 => Step::CallBack { of },
            _ => Step::Act { of, what, gone: 0 },
        };
        let place = draw.index(course.steps.len());
        course.steps.insert(place, step);
    }
}

/// Some subscriptions and some events are of another topic.
fn add_topic(course: &mut Course, mut draw: Draw) {
    if course.subscribers.len() == 1 {
        course.subscribers.push(course.subscribers[0]);
    }
    for subscriber in &mut course.subscribers {
        subscriber.topic = u8::from(draw.is_one_in(2));
    }
    // There is one of each at least.
    course.subscribers[0].topic = 0;
    course.subscribers[1].topic = 1;
    for step in &mut course.steps {
        if let Step::Publish(publication) = step {
            publication.topic = u8::from(draw.is_one_in(2));
        }
    }
}

/// Some subscriptions go by themselves when nobody uses them.
fn add_idle_times(course: &mut Course, mut draw: Draw) {
    for subscriber in &mut course.subscribers {
        subscriber.idle = draw.one_of(&[0, 5, 20]);
    }
}
