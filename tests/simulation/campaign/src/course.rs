//! What happens in a run, drawn from a seed: who subscribes, what is published, how endpoints
//! behave, what operators do, and what goes wrong.
//!
//! Each seed switches features on and off, so that one run is about few of them, and all runs are
//! about all of them in every mixture.

use std::time::Duration;

use serde_json::{Value, json};

use crate::draw::Draw;

/// Steps of a course.
const STEPS_MIN: u64 = 8;
const STEPS_MAX: u64 = 40;

/// Most events of one request.
const EVENTS_MAX: u64 = 12;

/// More than a message takes, so that the event is stored beside it.
const LARGE_BYTES: usize = 70_000;

/// The types of events, by which filters choose.
pub(crate) const TYPES: [&str; 2] = ["paid", "sent"];

/// What happens in one run, in order.
#[derive(Debug, Clone)]
pub struct Course {
    /// The seed that it was drawn from.
    pub seed: u64,
    /// The subscriptions, as they are made at first.
    pub subscribers: Vec<Subscriber>,
    /// Workers of deliver.
    pub workers: usize,
    /// What happens.
    pub steps: Vec<Step>,
}

/// A subscription of the topic.
#[derive(Debug, Clone)]
pub struct Subscriber {
    /// Its name, and the path of its endpoint.
    pub name: &'static str,
    /// Its settings beside the endpoint's URL.
    pub settings: Value,
}

/// One step.
#[derive(Debug, Clone)]
pub enum Step {
    /// A request of a producer.
    Publish(Publication),
    /// The endpoint of a subscription behaves differently from now on.
    Behave {
        /// The subscription.
        subscriber: usize,
        /// Its answers.
        behaviour: Behaviour,
    },
    /// Time passes.
    Pass(Duration),
    /// An operator acts on a subscription.
    Act {
        /// The subscription.
        subscriber: usize,
        /// What is done.
        action: Action,
    },
    /// A producer takes an event back.
    Cancel {
        /// Counted back from the last event.
        back: usize,
    },
    /// An operator sends one event again.
    Resend {
        /// Counted back from the last event.
        back: usize,
        /// The subscription.
        subscriber: usize,
    },
    /// All processes end in order, and others begin over what they left.
    Restart,
    /// A call of a port fails, so many calls from now.
    Fault {
        /// The number of calls until then.
        calls: u64,
        /// Whether it happens all the same.
        is_done: bool,
    },
}

/// Events that are published in one request.
#[derive(Debug, Clone)]
pub struct Publication {
    /// The number of events.
    pub events: usize,
    /// The type of all of them.
    pub event_type: &'static str,
    /// The bytes of data in each.
    pub bytes: usize,
    /// How far ahead they are to be sent.
    pub later: Option<Duration>,
    /// Their time to live, where they have one of their own.
    pub time_to_live: Option<Duration>,
}

/// How an endpoint answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    /// With 204.
    Well,
    /// With 503.
    Busy,
    /// With 503, and asks to be left alone for two minutes.
    AsksToWait,
    /// With 429.
    TooMany,
    /// With 400.
    Refuses,
    /// With 401.
    Unauthorized,
    /// With 410, which disables its subscription.
    Gone,
    /// Not at all, until the request is given up.
    Silent,
    /// By closing the connection.
    Closes,
    /// With 204 after three seconds.
    Slow,
}

impl Behaviour {
    /// Whether it takes events.
    pub(crate) fn takes_events(self) -> bool {
        matches!(self, Self::Well | Self::Slow)
    }
}

/// What an operator does.
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
    /// Writes its settings again, as they are.
    PutAgain,
    /// Gives it a new secret.
    RotateSecret,
}

/// What a seed is about.
#[derive(Debug, Clone)]
struct Features {
    batches: bool,
    short_lives: bool,
    rates: bool,
    filters: bool,
    large_events: bool,
    schedules: bool,
    refusals: bool,
    outages: bool,
    operators: bool,
    replays: bool,
    cancels: bool,
    restarts: bool,
    faults: bool,
    fallbacks: bool,
    long_passes: bool,
}

impl Features {
    fn draw(draw: &mut Draw) -> Self {
        let mut is_on = || draw.is_one_in(3);
        Self {
            batches: is_on(),
            short_lives: is_on(),
            rates: is_on(),
            filters: is_on(),
            large_events: is_on(),
            schedules: is_on(),
            refusals: is_on(),
            outages: !is_on(),
            operators: is_on(),
            replays: is_on(),
            cancels: is_on(),
            restarts: is_on(),
            faults: is_on(),
            fallbacks: is_on(),
            long_passes: is_on(),
        }
    }
}

impl Course {
    /// The course of a seed, the same each time.
    pub fn draw(seed: u64) -> Self {
        let mut draw = Draw::new(seed);
        let features = Features::draw(&mut draw);
        let names = &["billing", "crm", "search"][..=draw.index(3)];
        let subscribers = names
            .iter()
            .map(|name| Subscriber::draw(name, &features, &mut draw))
            .collect::<Vec<_>>();
        let count = STEPS_MIN + draw.below(STEPS_MAX - STEPS_MIN);
        let mut steps = vec![Step::Publish(Publication::draw(&features, &mut draw))];
        steps.extend((0..count).map(|_| Step::draw(&features, subscribers.len(), &mut draw)));
        Self {
            seed,
            subscribers,
            workers: 1 + draw.index(3),
            steps,
        }
    }
}

impl Subscriber {
    fn draw(name: &'static str, features: &Features, draw: &mut Draw) -> Self {
        let mut settings = json!({ "endpoint": { "url": url(name) } });
        if features.batches && draw.is_one_in(2) {
            let most = 2 + draw.below(9);
            settings["batching"] = json!({ "maxEventsPerBatch": most });
        }
        if features.rates && draw.is_one_in(2) {
            settings["endpoint"]["maxRequestsPerSecond"] = json!(draw.one_of(&[0.2, 1.0, 20.0]));
        }
        if features.fallbacks && draw.is_one_in(2) {
            let fallback = format!("https://fallback.example.com/spare-{name}/");
            settings["endpoint"]["fallbackUrl"] = json!(fallback);
        }
        if features.filters && draw.is_one_in(2) {
            settings["filter"] = json!({ "includedEventTypes": [TYPES[0]] });
        }
        if features.short_lives && draw.is_one_in(2) {
            let minutes = draw.one_of(&[1, 10, 120]);
            settings["retryPolicy"] = json!({ "eventTimeToLiveInMinutes": minutes });
        } else if draw.is_one_in(3) {
            let attempts = 1 + draw.below(6);
            settings["retryPolicy"] = json!({ "maxDeliveryAttempts": attempts });
        }
        if draw.is_one_in(6) {
            settings["deadLetter"] = json!({ "enabled": false });
        }
        Self { name, settings }
    }

    /// Whether it takes events of this type.
    pub(crate) fn takes(&self, event_type: &str) -> bool {
        self.settings["filter"].is_null() || event_type == TYPES[0]
    }

    /// Whether what it gives up becomes a dead letter.
    pub(crate) fn keeps_dead_letters(&self) -> bool {
        self.settings["deadLetter"]["enabled"] != json!(false)
    }
}

/// The URL of a subscription's endpoint.
fn url(name: &str) -> String {
    format!("https://hooks.example.com/{name}/")
}

impl Publication {
    fn draw(features: &Features, draw: &mut Draw) -> Self {
        let bytes = if features.large_events && draw.is_one_in(3) {
            LARGE_BYTES
        } else {
            0
        };
        let later = (features.schedules && draw.is_one_in(2))
            .then(|| Duration::from_secs(draw.one_of(&[1, 90, 3600, 26 * 3600])));
        let time_to_live = (features.short_lives && draw.is_one_in(3))
            .then(|| Duration::from_secs(draw.one_of(&[30, 600])));
        Self {
            events: 1 + draw.index(usize::try_from(EVENTS_MAX).unwrap_or(1)),
            event_type: draw.one_of(&TYPES),
            bytes,
            later,
            time_to_live,
        }
    }
}

impl Step {
    fn draw(features: &Features, subscribers: usize, draw: &mut Draw) -> Self {
        let subscriber = draw.index(subscribers);
        match draw.below(10) {
            0 | 1 => Self::Publish(Publication::draw(features, draw)),
            2 | 3 => Self::Behave {
                subscriber,
                behaviour: Behaviour::draw(features, draw),
            },
            4 if features.operators => Self::Act {
                subscriber,
                action: draw.one_of(&[
                    Action::Pause,
                    Action::Resume,
                    Action::Disable,
                    Action::Enable,
                    Action::Force,
                    Action::PutAgain,
                    Action::RotateSecret,
                ]),
            },
            5 if features.replays => match draw.below(2) {
                0 => Self::Act {
                    subscriber,
                    action: Action::Replay,
                },
                _ => Self::Resend {
                    back: draw.index(8),
                    subscriber,
                },
            },
            6 if features.cancels => Self::Cancel {
                back: draw.index(8),
            },
            7 if features.restarts && draw.is_one_in(2) => Self::Restart,
            7 if features.faults => Self::Fault {
                calls: draw.below(60),
                is_done: draw.is_one_in(2),
            },
            _ => Self::Pass(pass(features, draw)),
        }
    }
}

/// How long time passes.
fn pass(features: &Features, draw: &mut Draw) -> Duration {
    let lengths = [2, 15, 70, 400];
    if features.long_passes && draw.is_one_in(3) {
        return Duration::from_secs(draw.one_of(&[3600, 8 * 3600]));
    }
    Duration::from_secs(draw.one_of(&lengths))
}

impl Behaviour {
    fn draw(features: &Features, draw: &mut Draw) -> Self {
        let outages = [
            Self::Busy,
            Self::AsksToWait,
            Self::TooMany,
            Self::Silent,
            Self::Closes,
            Self::Slow,
        ];
        match draw.below(4) {
            0 if features.refusals => {
                draw.one_of(&[Self::Refuses, Self::Unauthorized, Self::Gone])
            }
            1 | 2 if features.outages => draw.one_of(&outages),
            _ => Self::Well,
        }
    }
}
