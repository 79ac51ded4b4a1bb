//! The history of a run, as those outside saw it.

use std::time::Duration;

use posthaste_core::model::{HANDSHAKE_WINDOW, LetterPlace, Timestamp};
use posthaste_testkit::Trick;

use crate::course::{Behaviour, Subscriber};
use crate::endpoint::{Given, Notice, Seen};
use crate::idle::WentFrom;

/// The history of one run. Times without a date are those of the clock's `monotonic`.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// The events that were published, in order.
    pub(crate) events: Vec<PublishedEvent>,
    /// The place of the first event that was published when all was well again.
    pub(crate) last_from: usize,
    /// The subscriptions that there were.
    pub(crate) lives: Vec<Life>,
    /// The requests to endpoints, in order.
    pub(crate) seen: Vec<Seen>,
    /// The changes of behaviour, in order: when, of which subscription, and to what.
    pub(crate) behaviours: Vec<(Duration, u8, Behaviour)>,
    /// The requests to send events again, in order: when, and to which subscription.
    pub(crate) sent_again: Vec<(Duration, u8)>,
    /// The requests to change subscriptions: the action as the audit trail has it, of which
    /// subscription, and whether it was done, by its answer or by what was there then.
    pub(crate) changes: Vec<(&'static str, u8, bool)>,
    /// The requests to have what waits tried at once, in order: when, and of which subscription.
    pub(crate) forced: Vec<(Duration, u8)>,
    /// The requests to delete dead letters, in order: when, and of which subscription.
    pub(crate) deleted_letters: Vec<(Duration, u8)>,
    /// The letters that were sent to find out whether their endpoint is well.
    pub(crate) probes: Vec<LetterPlace>,
    /// The subscriptions that went, by themselves or not, while something lay there for them.
    pub(crate) went_from: Vec<WentFrom>,
    /// The notices that were sent, in order.
    pub(crate) notices: Vec<Notice>,
    /// The consents that endpoints gave, in order.
    pub(crate) consents: Vec<Given>,
    /// The mishaps, in order.
    pub(crate) mishaps: Vec<Mishap>,
    /// Requests that ended with a fault of ours, in words.
    pub(crate) refusals: Vec<String>,
    /// Other lines of the trace.
    pub(crate) notes: Vec<String>,
}

/// Something that went wrong, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mishap {
    pub(crate) at: Duration,
    pub(crate) cause: Cause,
    /// The label of the port; empty where it is the process or the clock.
    pub(crate) port: &'static str,
    /// The object's key or the listing's prefix, of a store.
    pub(crate) key: String,
}

impl Mishap {
    /// One that is of no port.
    pub(crate) fn new(at: Duration, cause: Cause) -> Self {
        Self {
            at,
            cause,
            port: "",
            key: String::new(),
        }
    }
}

/// The cause of a mishap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// A process was killed.
    Killed,
    /// A process began to end in order, or had its rest cut.
    Restarted,
    /// The clock of the machine was set back.
    SetBack,
    /// A call did not happen, or its answer was lost.
    Fault,
    /// The function that made a call panicked.
    Panicked,
    /// The queue or the store misbehaved.
    Trick(Trick),
}

/// A request and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) asked: Duration,
    /// The time at which it is known that it was done.
    pub(crate) sure: Duration,
}

/// An event as its producer knows it.
#[derive(Debug, Clone)]
pub(crate) struct PublishedEvent {
    pub(crate) id: String,
    /// The number of its topic.
    pub(crate) topic: u8,
    pub(crate) window: Window,
    /// The times of day of the request and its answer.
    pub(crate) days: (Timestamp, Timestamp),
    /// The requests that had it: more than one where its request came again.
    pub(crate) posts: usize,
    /// The status of the answer; `None` where the producer has gone.
    pub(crate) status: Option<u16>,
    /// The number of its type.
    pub(crate) kind: u8,
    /// The time before which it is not sent.
    pub(crate) not_before: Option<Timestamp>,
    /// The event's own time to live.
    pub(crate) life: Option<Duration>,
    /// Whether its producer asked to take it back.
    pub(crate) is_cancelled: bool,
}

impl PublishedEvent {
    /// Whether it has to arrive. Otherwise it may, or may not.
    pub(crate) fn is_accepted(&self) -> bool {
        self.status == Some(200)
    }
}

/// One subscription, from its creation to its deletion.
#[derive(Debug, Clone)]
pub(crate) struct Life {
    /// The number of its name.
    pub(crate) of: u8,
    /// The number of this life among those of that name, from 1.
    pub(crate) number: u32,
    pub(crate) settings: Subscriber,
    pub(crate) created: Window,
    pub(crate) deleted: Option<Window>,
    /// Whether it went by itself.
    pub(crate) went_idle: bool,
    /// The last time at which it was seen, where it may go by itself.
    pub(crate) seen_at: Duration,
    /// The versions of its settings, in order: the number, and the write.
    pub(crate) versions: Vec<(u32, Window)>,
    /// The number of URLs that it has had before.
    pub(crate) moves: u32,
    /// The changes of its state, in order.
    pub(crate) states: Vec<(State, Window)>,
    /// The findings about its endpoint's consent after each change, in order, where it is asked.
    pub(crate) looks: Vec<(Found, Window)>,
}

/// A finding about an endpoint's consent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// The subscription is active.
    Active,
    /// The endpoint was asked, and may consent for ten minutes.
    Asked,
    /// The endpoint was not asked to the end, or has not consented.
    Without,
    /// Something else, or nothing.
    Unclear,
}

/// The state of a subscription, as far as it was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Active,
    Paused,
    Disabled,
}

impl Life {
    pub(crate) fn name(&self) -> String {
        name(self.of)
    }

    /// The times in which its endpoint may not have consented, so that new events pass by. While it
    /// may still consent, they wait.
    pub(crate) fn times_without_consent(&self) -> Vec<(Duration, Duration)> {
        let mut times = Vec::new();
        for (place, (found, window)) in self.looks.iter().enumerate() {
            let from = match found {
                Found::Active => continue,
                Found::Asked => window.asked + HANDSHAKE_WINDOW,
                Found::Without | Found::Unclear => window.asked,
            };
            let mut later = self.looks[place + 1..].iter();
            let active = later.find(|it| it.0 == Found::Active);
            let to = active.map_or(Duration::MAX / 2, |it| it.1.sure);
            if from <= to {
                times.push((from, to));
            }
        }
        times
    }

    /// Whether its endpoint may not have consented at some time until then.
    pub(crate) fn is_without_consent_until(&self, until: Duration) -> bool {
        let mut looks = self.looks.iter();
        looks.any(|(found, window)| *found != Found::Active && window.asked <= until)
    }

    /// The state that the last change left.
    pub(crate) fn state(&self) -> State {
        self.states.last().map_or(State::Active, |it| it.0)
    }
}

/// The name of a subscription by its number.
pub(crate) fn name(of: u8) -> String {
    format!("s{of}")
}

impl History {
    /// Whether there is a subscription of this number now.
    pub(crate) fn is_there(&self, of: u8) -> bool {
        let mut lives = self.lives.iter();
        lives.any(|life| life.of == of && life.deleted.is_none())
    }

    /// The life that a request was made for.
    pub(crate) fn life_of(&self, seen: &Seen) -> Option<&Life> {
        let is_it = |life: &&Life| life.name() == seen.name && life.number == seen.life;
        self.lives.iter().find(is_it)
    }
}
