//! The course of a run: who subscribes, what is published, how endpoints behave, what operators do,
//! and what goes wrong.
//!
//! All of it is plain numbers and words, so that a course can be printed as Rust and kept.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use posthaste_testkit::Trick;
use posthaste_testkit::adversary::TRICKS;

/// The greatest age of a topic on AWS before it is looked up again: the template's default.
const TOPIC_MAX_AGE: Duration = Duration::from_secs(5);

/// The types of events, by which filters choose.
pub(crate) const TYPES: [&str; 2] = ["paid", "sent"];

/// The topic of notices, and its subscription.
pub(crate) const NOTICES_TOPIC: &str = "ops";
pub(crate) const PAGER: &str = "pager";

/// The names of topics. Courses that do not say otherwise have the first one only.
pub(crate) const TOPICS: [&str; 2] = ["orders", "returns"];

/// The course of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Course {
    /// The world in which it happens.
    pub world: Setting,
    /// The subscriptions. Those are made at first that a step does not make.
    pub subscribers: Vec<Subscriber>,
    /// The steps, in order.
    pub steps: Vec<Step>,
}

/// The world of a course.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// The seed of all chance in it.
    pub seed: u64,
    /// The adapters that it is like.
    pub place: Place,
    /// Workers of deliver.
    pub workers: u8,
    /// The schema of the topics.
    pub schema: Schema,
    /// The chance of each trick of queues and stores, in thousandths.
    pub tricks: [u16; TRICKS.len()],
    /// The chance of an endpoint to connect slowly, in thousandths.
    pub slow_connects: u16,
    /// Whether few messages in the queue are pressure.
    pub has_pressure: bool,
    /// Whether notices are sent to a topic of their own, which has one subscription.
    pub has_notices: bool,
}

/// The adapters that a world is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// One process, whose queue shares transactions and tells what waits by group.
    Serve,
    /// SQS and S3, with the slow lane; topics are looked up every five seconds.
    Aws,
}

/// The schema of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schema {
    /// CloudEvents.
    Cloud,
    /// Event Grid's.
    Grid,
    /// One of the producer's own.
    Custom,
}

/// A subscription. A number of 0 is the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a setting that a seed turns on or off"
)]
pub struct Subscriber {
    /// The number of its topic.
    pub topic: u8,
    /// The number of its host: those of one host share a link.
    pub host: u8,
    /// Whether it takes events of the first type only.
    pub is_filtered: bool,
    /// Most events of a batch.
    pub batch: u16,
    /// Whether an answer of it may name the events of a batch that failed.
    pub reports: bool,
    /// Most requests a minute.
    pub rate: u32,
    /// Most requests at once.
    pub at_once: u16,
    /// Most attempts.
    pub attempts: u8,
    /// The time to live, in minutes.
    pub life: u16,
    /// Whether it tries again within seconds.
    pub is_hasty: bool,
    /// Whether it has a second endpoint.
    pub has_fallback: bool,
    /// Whether what it gives up is dropped.
    pub drops: bool,
    /// Whether what expires is dropped.
    pub drops_expired: bool,
    /// Whether its events lie in headers.
    pub is_binary: bool,
    /// Whether dead letters are written at once.
    pub buries_at_once: bool,
    /// The handshake with its endpoint.
    pub question: Question,
    /// Whether its endpoint does not consent at first.
    pub is_reluctant: bool,
    /// The minutes without use after which it goes by itself; 0 for never.
    pub idle: u16,
}

/// The handshake that asks an endpoint whether it wants events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// There is none.
    None,
    /// As by the web hook specification of CloudEvents.
    Options,
    /// By an event, as Event Grid does.
    Event,
}

/// The answer of an endpoint to a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// The endpoint wants events.
    Given,
    /// The endpoint says nothing to it, and may call back.
    Open,
    /// The endpoint does not want events.
    Refused,
}

/// One step. `of` is the number of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A request of a producer.
    Publish(Publication),
    /// The request of an earlier step comes again, under the same idempotency key.
    PublishAgain {
        /// Counted back from the last request that had a key.
        back: u8,
    },
    /// An endpoint behaves like that from now on.
    Behave {
        /// The subscription.
        of: u8,
        /// The answers of the endpoint.
        like: Behaviour,
    },
    /// An endpoint answers the question whether it wants events like that from now on.
    Consent {
        /// The subscription.
        of: u8,
        /// The answer of the endpoint.
        like: Consent,
    },
    /// An endpoint consents by the URL that it was given with the last question.
    CallBack {
        /// The subscription.
        of: u8,
    },
    /// So many seconds pass.
    Pass(u32),
    /// An operator acts on a subscription.
    Act {
        /// The subscription.
        of: u8,
        /// The action.
        what: Action,
        /// The number of turns after which the operator's client goes away; 0 for never.
        gone: u8,
    },
    /// A producer takes an event back.
    Cancel {
        /// Counted back from the last event.
        back: u8,
    },
    /// An operator sends one event again.
    Resend {
        /// Counted back from the last event.
        back: u8,
        /// The subscription.
        of: u8,
    },
    /// All processes end in order, and others begin over what they left.
    Restart,
    /// All processes are killed, and others begin after so many seconds.
    Kill(u32),
    /// A call of a port fails, so many calls from now.
    Fault {
        /// The number of calls until then.
        calls: u16,
        /// The kind of fault.
        with: Wrong,
    },
    /// The clock of the machine is set back by so many seconds.
    SetBack(u32),
    /// The program is replaced by a former one: what waits is of versions that it does not know.
    Downgrade,
    /// The program that knows these versions is there again.
    Upgrade,
}

/// A fault of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrong {
    /// The call does not happen.
    Fails,
    /// The call happens, and its answer is lost.
    AnswerLost,
    /// The process is killed before it happens.
    KilledBefore,
    /// The process is killed after it has happened.
    KilledAfter,
    /// The function that makes it panics.
    Panics,
    /// The client of endpoints panics in a request, of which only these calls are counted.
    ClientPanics,
}

/// Events that are published in one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Publication {
    /// The number of the topic.
    pub topic: u8,
    /// The number of events.
    pub events: u8,
    /// The number of the type of all of them.
    pub kind: u8,
    /// The bytes of data in each.
    pub bytes: u32,
    /// The seconds until they are to be sent; 0 for at once.
    pub later: u32,
    /// The seconds that they live; 0 for what the subscription says.
    pub life: u32,
    /// Whether the request has an idempotency key.
    pub has_key: bool,
    /// The number of turns after which the producer goes away; 0 for never.
    pub gone: u8,
}

/// The behaviour of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Behaviour {
    /// With 204.
    Well,
    /// With 204 after three seconds.
    Slow,
    /// With 503.
    Busy,
    /// With 503, and asks to be left alone for two minutes.
    AsksToWait,
    /// With 429, and asks to be left alone for twenty seconds.
    TooMany,
    /// With 500.
    Breaks,
    /// With 400.
    Refuses,
    /// With 400 where one of certain events is in the request.
    RefusesSome,
    /// With 422 where one of certain events is in the request.
    CannotReadSome,
    /// With 413 where there is more than one event in the request.
    TooLarge,
    /// With 401.
    Unauthorized,
    /// With 410, which disables its subscription.
    Gone,
    /// Not at all, until the request is given up.
    Silent,
    /// With 204, twenty seconds after the request was given up.
    Late,
    /// By closing the connection.
    Closes,
    /// By closing the connection where one of certain events is in the request.
    ClosesForSome,
    /// By refusing connections.
    Refused,
    /// With 503 every other time.
    Flaps,
    /// With 301.
    Moved,
    /// With 200, and names certain events of the request as failed.
    NamesSome,
    /// The same, twenty seconds after the request was given up.
    NamesSomeLate,
    /// With 200, and names an event that was not in the request as failed.
    NamesOther,
    /// With 503 for fourteen minutes, then for six as it should, and so on.
    ComesAndGoes,
    /// With 503 where one of certain events is in the request.
    BusyForSome,
    /// With 503, from the moment on at which one of a few events is in a request, for ten minutes.
    FallsOver,
}

/// An action of an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Pauses the subscription.
    Pause,
    /// Resumes it.
    Resume,
    /// Disables it.
    Disable,
    /// Enables it.
    Enable,
    /// Has what waits tried at once.
    Force,
    /// Replays its dead letters.
    Replay,
    /// Replays what failed, from the delivery log.
    ReplayLog,
    /// Marks its dead letters as resolved.
    Resolve,
    /// Deletes its dead letters.
    DeleteLetters,
    /// Writes its settings again, with another header.
    Edit,
    /// Has its endpoint asked again whether it wants events.
    Validate,
    /// Gives it another URL.
    Move,
    /// Gives it a new secret.
    RotateSecret,
    /// Deletes it.
    Delete,
    /// Makes it, if it is not there, and its topic.
    Create,
    /// Deletes the topic of the subscription, with all that it has.
    DeleteTopic,
    /// Ends the replays of all topics.
    CancelReplays,
}

impl Place {
    /// The longest time for which a function goes by what it knows of a topic.
    pub(crate) fn topic_max_age(self) -> Duration {
        match self {
            Self::Serve => Duration::ZERO,
            Self::Aws => TOPIC_MAX_AGE,
        }
    }
}

impl Course {
    /// The topics that it has, by their numbers.
    pub(crate) fn topics(&self) -> BTreeSet<u8> {
        let topics = self.subscribers.iter().map(|it| it.topic);
        topics.chain([0]).collect()
    }
}

impl Setting {
    /// The tricks with their chances.
    pub(crate) fn tricks(&self) -> Vec<(Trick, u64)> {
        let chances = self.tricks.iter().map(|chance| u64::from(*chance));
        TRICKS.into_iter().zip(chances).collect()
    }
}

/// A course as Rust that makes it: what the list of regressions takes.
impl fmt::Display for Course {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Course {{")?;
        writeln!(f, "    world: {:?},", self.world)?;
        writeln!(f, "    subscribers: vec![")?;
        for subscriber in &self.subscribers {
            writeln!(f, "        {subscriber:?},")?;
        }
        writeln!(f, "    ],")?;
        writeln!(f, "    steps: vec![")?;
        for step in &self.steps {
            writeln!(f, "        {step:?},")?;
        }
        writeln!(f, "    ],")?;
        write!(f, "}}")
    }
}
