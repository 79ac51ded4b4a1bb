//! The evidence for the rules: a run, and one event of one subscription in it.

use std::fmt;
use std::time::Duration;

use crate::check::excuse::{Excuse, Span};
use crate::course::Course;
use crate::endpoint::{End, Seen};
use crate::ends::{Ends, Letter, Told};
use crate::history::{History, Life, PublishedEvent, State, Window};

/// The time to live of events where nothing says another.
const LIFE: Duration = Duration::from_hours(24);

/// The time after its time in which a scheduled event is released: wake runs once a minute.
pub(super) const RELEASED_WITHIN: Duration = Duration::from_mins(3);

/// The longest time in which a mishap shows after the last request that had an event: a message
/// that was in flight returns after 12 minutes on AWS.
const SHOWN_WITHIN: Duration = Duration::from_mins(15);

/// A run, as the rules look at it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Evidence<'a> {
    pub(super) course: &'a Course,
    pub(super) history: &'a History,
    pub(super) ends: &'a Ends,
}

/// Whether a subscription gets an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wants {
    Yes,
    No,
    /// The subscription was made, changed or stopped at the time.
    Maybe,
}

impl Evidence<'_> {
    /// The greatest age of what functions know of a topic.
    pub(super) fn slack(self) -> Duration {
        self.course.world.place.topic_max_age()
    }

    /// Whether a subscription has to get an event.
    pub(super) fn wants(self, life: &Life, event: &PublishedEvent) -> Wants {
        let asked = event.window.asked;
        let sure = event.window.sure;
        let slack = self.slack();
        let is_filtered = life.settings.is_filtered && event.kind != 0;
        let is_before = life.created.asked > sure;
        let is_after = life.deleted.is_some_and(|it| it.sure + slack < asked);
        let is_elsewhere = life.settings.topic != event.topic;
        if is_elsewhere || is_filtered || is_before || is_after {
            return Wants::No;
        }
        let is_new = life.created.sure + slack >= asked;
        let is_going = life.deleted.is_some_and(|it| it.asked <= sure);
        let mut disabled = self.disabled(life).into_iter();
        let is_disabled = disabled.any(|(from, to)| from <= sure && asked <= to + slack);
        // Those that are there from the beginning are known before anything is published.
        if (is_new && life.created.asked > Duration::ZERO) || is_going || is_disabled {
            Wants::Maybe
        } else {
            Wants::Yes
        }
    }

    /// The times in which a subscription may have been disabled.
    pub(super) fn disabled(self, life: &Life) -> Vec<(Duration, Duration)> {
        let ends_after = |from: Duration| {
            let is_end = |it: &&(State, Window)| it.0 == State::Active && it.1.asked >= from;
            let enabled = life.states.iter().find(is_end);
            enabled.map_or(Duration::MAX / 2, |(_, window)| window.sure)
        };
        let asked = life.states.iter().filter(|it| it.0 == State::Disabled);
        let asked = asked.map(|(_, window)| window.asked);
        let gone = self.gone(life);
        asked
            .chain(gone)
            .map(|from| (from, ends_after(from)))
            .chain(life.times_without_consent())
            .collect()
    }

    /// The times at which the endpoint of a subscription said that it is gone.
    pub(super) fn gone(self, life: &Life) -> Vec<Duration> {
        let is_of = |seen: &&Seen| {
            seen.name == life.name() && seen.life == life.number && !seen.is_fallback
        };
        let gone = self.history.seen.iter().filter(is_of);
        let gone = gone.filter(|seen| seen.end == End::Answered(410));
        gone.filter_map(|seen| seen.ended_at).collect()
    }

    /// The requests of operators to send events of a subscription again.
    pub(super) fn times_sent_again(self, life: &Life) -> usize {
        let sent_again = self.history.sent_again.iter();
        sent_again.filter(|(_, of)| *of == life.of).count()
    }
}

/// An event of a subscription.
pub(super) struct Case<'a> {
    pub(super) evidence: Evidence<'a>,
    pub(super) life: &'a Life,
    pub(super) event: &'a PublishedEvent,
    /// The requests that had it.
    pub(super) seen: Vec<&'a Seen>,
}

impl Case<'_> {
    pub(super) fn is_taken(&self) -> bool {
        self.seen.iter().any(|it| it.is_taken())
    }

    pub(super) fn is_taken_somehow(&self) -> bool {
        self.seen.iter().any(|it| it.is_taken_somehow())
    }

    /// Whether the producer of the event was told that it was not accepted.
    pub(super) fn is_refused(&self) -> bool {
        let status = self.event.status;
        status.is_some_and(|status| (400..500).contains(&status))
    }

    /// The time in which mishaps may have to do with the event: from its publication until it has
    /// long arrived.
    pub(super) fn span(&self) -> Span {
        let ends = self.seen.iter().filter_map(|it| it.ended_at);
        let end = if self.is_taken() {
            ends.max().map(|end| end + SHOWN_WITHIN)
        } else {
            None
        };
        self.event.window.asked..=end.unwrap_or(Duration::MAX)
    }

    /// Whether there was one of these mishaps in that time.
    pub(super) fn is_excused(&self, by: &[Excuse]) -> bool {
        self.evidence.history.is_excused(&self.span(), by)
    }

    pub(super) fn letters(&self) -> impl Iterator<Item = &Letter> {
        let name = self.life.name();
        let letters = self.evidence.ends.letters.iter();
        letters.filter(move |it| it.id == self.event.id && it.name == name)
    }

    pub(super) fn told(&self) -> impl Iterator<Item = &Told> {
        let name = self.life.name();
        let told = self.evidence.ends.told.iter();
        told.filter(move |it| it.id == self.event.id && it.name == name)
    }

    /// The attempts that the subscription allows.
    pub(super) fn attempts_max(&self) -> usize {
        match self.life.settings.attempts {
            0 => ATTEMPTS_MAX,
            attempts => usize::from(attempts),
        }
    }

    /// The time for which the event lives.
    pub(super) fn lifetime(&self) -> Duration {
        let minutes = u64::from(self.life.settings.life);
        let of_life = if minutes > 0 {
            Duration::from_mins(minutes)
        } else {
            LIFE
        };
        self.event.life.map_or(of_life, |own| own.min(of_life))
    }
}

/// The attempts of a delivery where nothing says another number.
const ATTEMPTS_MAX: usize = 30;

impl fmt::Display for Case<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = &self.event.id;
        let name = self.life.name();
        write!(f, "{id} of {name} ({})", self.life.number)
    }
}
