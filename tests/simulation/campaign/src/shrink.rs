//! Leaves out of a course that fails what it fails without.

use crate::check::rules;
use crate::course::{Course, Question, Setting, Step, Subscriber};
use crate::run::{Outcome, run};

/// The same course with as little as it still fails with, by one of the same rules. It is played
/// once for each part that is tried.
pub fn shrunk(course: &Course) -> Course {
    shrunk_by(course, &|course| run(course))
}

/// The same, with what it is played by.
pub fn shrunk_by(course: &Course, play: &dyn Fn(&Course) -> Outcome) -> Course {
    let broken = rules(&play(course).faults);
    let fails = |course: &Course| {
        let faults = rules(&play(course).faults);
        faults.keys().any(|rule| broken.contains_key(rule))
    };
    if broken.is_empty() {
        return course.clone();
    }
    let mut least = course.clone();
    loop {
        let before = least.clone();
        least = with_fewer_steps(least, &fails);
        least = with_plainer_parts(least, &fails);
        if least == before {
            return least;
        }
    }
}

fn with_fewer_steps(mut least: Course, fails: &dyn Fn(&Course) -> bool) -> Course {
    let mut length = (least.steps.len() / 2).max(1);
    loop {
        let mut place = 0;
        while place < least.steps.len() {
            let mut shorter = least.clone();
            let end = (place + length).min(shorter.steps.len());
            shorter.steps.drain(place..end);
            if fails(&shorter) {
                least = shorter;
            } else {
                place += length;
            }
        }
        if length == 1 {
            return least;
        }
        length = (length / 2).max(1);
    }
}

/// Turns off what the world, the subscriptions and the steps have beyond the least.
fn with_plainer_parts(mut least: Course, fails: &dyn Fn(&Course) -> bool) -> Course {
    let mut plainer = Vec::<Box<dyn Fn(&mut Course)>>::new();
    for trick in 0..least.world.tricks.len() {
        plainer.push(Box::new(move |it| it.world.tricks[trick] = 0));
    }
    plainer.push(Box::new(|it| it.world.slow_connects = 0));
    plainer.push(Box::new(in_one_topic));
    plainer.push(Box::new(|it| it.world.has_pressure = false));
    plainer.push(Box::new(|it| it.world.has_notices = false));
    plainer.push(Box::new(|it| it.world.workers = 1));
    plainer.push(Box::new(|it| {
        it.world = Setting {
            schema: crate::course::Schema::Cloud,
            ..it.world
        };
    }));
    for place in 0..least.subscribers.len() {
        for change in PLAINER {
            plainer.push(Box::new(move |it| {
                if let Some(subscriber) = it.subscribers.get_mut(place) {
                    change(subscriber);
                }
            }));
        }
    }
    plainer.push(Box::new(|it| {
        it.subscribers.pop();
    }));
    for place in 0..least.steps.len() {
        for change in PLAINER_STEPS {
            plainer.push(Box::new(move |it| change(&mut it.steps[place])));
        }
    }
    for change in plainer {
        let mut changed = least.clone();
        change(&mut changed);
        if changed != least && is_whole(&changed) && fails(&changed) {
            least = changed;
        }
    }
    least
}

const PLAINER: [fn(&mut Subscriber); 16] = [
    |it| it.idle = 0,
    |it| it.question = Question::None,
    |it| it.is_reluctant = false,
    |it| it.reports = false,
    |it| it.is_filtered = false,
    |it| {
        it.batch = 0;
        it.reports = false;
    },
    |it| it.rate = 0,
    |it| it.at_once = 0,
    |it| it.attempts = 0,
    |it| it.life = 0,
    |it| it.is_hasty = false,
    |it| it.has_fallback = false,
    |it| it.drops = false,
    |it| it.drops_expired = false,
    |it| it.is_binary = false,
    |it| it.buries_at_once = false,
];

const PLAINER_STEPS: [fn(&mut Step); 4] = [
    |it| {
        if let Step::Publish(publication) = it {
            publication.events = 1;
        }
    },
    |it| {
        if let Step::Publish(publication) = it {
            publication.bytes = 0;
            publication.life = 0;
        }
    },
    |it| {
        if let Step::Publish(publication) = it {
            publication.later = 0;
            publication.has_key = false;
        }
    },
    |it| match it {
        Step::Publish(publication) => publication.gone = 0,
        Step::Act { gone, .. } => *gone = 0,
        _ => {}
    },
];

/// Puts everything into one topic.
fn in_one_topic(course: &mut Course) {
    for subscriber in &mut course.subscribers {
        subscriber.topic = 0;
    }
    for step in &mut course.steps {
        if let Step::Publish(publication) = step {
            publication.topic = 0;
        }
    }
}

/// Whether each step names a subscription that there is.
fn is_whole(course: &Course) -> bool {
    let is_there = |of: &u8| usize::from(*of) < course.subscribers.len();
    course.steps.iter().all(|step| match step {
        Step::Behave { of, .. }
        | Step::Consent { of, .. }
        | Step::CallBack { of }
        | Step::Act { of, .. }
        | Step::Resend { of, .. } => is_there(of),
        _ => true,
    })
}
