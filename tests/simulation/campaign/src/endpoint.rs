//! The endpoints of all subscriptions: they behave as a course says, and remember each request
//! from its beginning to its end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use parking_lot::Mutex;
use posthaste_core::attempt::SendFailure;
use posthaste_core::model::{Link, Timestamp};
use posthaste_ports::{
    Clock, LastLook, LateAnswer, WebhookAnswer, WebhookClient, WebhookRequest, WebhookResponse,
};
use posthaste_testkit::ManualClock;
use serde_json::Value;

use crate::course::{Behaviour, Setting};
use crate::draw::hash;
use crate::trouble::Trouble;

/// The time of a slow answer: longer than what makes a target slow.
const SLOW: Duration = Duration::from_secs(3);

/// The time after a timeout at which a late answer comes.
const LATE: Duration = Duration::from_secs(20);

/// The time of a slow connect.
const CONNECT: Duration = Duration::from_millis(400);

/// The period of an endpoint that comes and goes, and the time in it for which it is away. What is
/// recovered after five minutes of health meets it away again, more often than not.
const COMES_EVERY: Duration = Duration::from_mins(20);
const AWAY: Duration = Duration::from_mins(14);

/// One event in so many is one of those that some endpoints do not take.
const BAD_EVENTS: u64 = 4;

/// The header by which a request says of which settings it was made.
pub(crate) const VERSION: &str = "x-version";

/// A request that an endpoint saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The time of day.
    pub(crate) day: Timestamp,
    /// The time of the clock's `monotonic`.
    pub(crate) at: Duration,
    /// The same of its end; `None` while it is under way.
    pub(crate) ended_at: Option<Duration>,
    /// The first part of the path: the name of the subscription.
    pub(crate) name: String,
    /// The second part of the path: which subscription of that name it is.
    pub(crate) life: u32,
    /// Whether it was the second endpoint that got it.
    pub(crate) is_fallback: bool,
    /// The version of the settings that it was made by.
    pub(crate) version: u32,
    pub(crate) ids: Vec<String>,
    pub(crate) webhook_id: String,
    pub(crate) attempt: u32,
    pub(crate) is_replayed: bool,
    pub(crate) end: End,
    /// Whether its answer asked to be left alone for a while.
    pub(crate) asks_to_wait: bool,
}

/// The end of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// It is under way, or its sender has died.
    Open,
    /// Its sender got this status.
    Answered(u16),
    /// The endpoint answered with this status after the sender had given up.
    AnsweredLate(u16),
    /// There was no answer.
    None,
}

impl Seen {
    /// Whether the endpoint has taken its events, and its sender has heard that in time.
    pub(crate) fn is_taken(&self) -> bool {
        matches!(self.end, End::Answered(200..=204))
    }

    /// Whether the endpoint has taken its events, whatever its sender knows.
    pub(crate) fn is_taken_somehow(&self) -> bool {
        self.is_taken() || matches!(self.end, End::AnsweredLate(200..=204))
    }
}

/// The client of all endpoints. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Endpoints {
    clock: ManualClock,
    seed: u64,
    slow_connects: u64,
    trouble: Trouble,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    behaviours: BTreeMap<String, Behaviour>,
    seen: Vec<Seen>,
    asked: u64,
}

/// A request under way. One that is dropped has its end noted too.
struct UnderWay {
    shared: Arc<Mutex<Shared>>,
    clock: ManualClock,
    place: usize,
}

impl UnderWay {
    fn end(&self, end: End) {
        let seen = &mut self.shared.lock().seen[self.place];
        seen.ended_at.get_or_insert(self.clock.monotonic());
        seen.end = end;
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let seen = &mut self.shared.lock().seen[self.place];
        seen.ended_at.get_or_insert(self.clock.monotonic());
    }
}

impl Endpoints {
    pub(crate) fn new(clock: ManualClock, setting: &Setting, trouble: &Trouble) -> Self {
        Self {
            clock,
            seed: setting.seed,
            slow_connects: u64::from(setting.slow_connects),
            trouble: trouble.clone(),
            shared: Arc::default(),
        }
    }

    /// The endpoint of this name behaves so from now on.
    pub(crate) fn behave(&self, name: &str, behaviour: Behaviour) {
        let behaviours = &mut self.shared.lock().behaviours;
        behaviours.insert(name.to_owned(), behaviour);
    }

    /// All requests so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.shared.lock().seen.clone()
    }

    fn note(&self, request: &WebhookRequest) -> (UnderWay, Behaviour, Vec<String>) {
        let seen = self.read(request);
        let mut shared = self.shared.lock();
        let behaviour = match shared.behaviours.get(&seen.name) {
            Some(behaviour) if !seen.is_fallback => *behaviour,
            _ => Behaviour::Well,
        };
        let ids = seen.ids.clone();
        shared.seen.push(Seen {
            asks_to_wait: behaviour == Behaviour::AsksToWait,
            ..seen
        });
        let under_way = UnderWay {
            shared: Arc::clone(&self.shared),
            clock: self.clock.clone(),
            place: shared.seen.len() - 1,
        };
        (under_way, behaviour, ids)
    }

    fn read(&self, request: &WebhookRequest) -> Seen {
        let url = request.url.as_str();
        let mut parts = url.split('/').skip(2);
        let host = parts.next().unwrap_or_default();
        let name = parts.next().unwrap_or_default().to_owned();
        let life = parts.next().and_then(|life| life.parse().ok());
        let header = |name: &str| {
            let value = request.headers.get(name);
            let value = value.and_then(|value| value.to_str().ok());
            value.unwrap_or_default().to_owned()
        };
        let number = |name: &str| header(name).parse().unwrap_or_default();
        let body = request.body.concat();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let ids = if header("ce-id").is_empty() {
            let events = body
                .as_array()
                .map_or_else(|| vec![body.clone()], Vec::clone);
            let ids = events.iter().filter_map(|event| event["id"].as_str());
            ids.map(str::to_owned).collect()
        } else {
            vec![header("ce-id")]
        };
        Seen {
            day: self.clock.now(),
            at: self.clock.monotonic(),
            ended_at: None,
            name,
            life: life.unwrap_or_default(),
            is_fallback: host.starts_with("spare"),
            version: number(VERSION),
            ids,
            webhook_id: header("webhook-id"),
            attempt: number("posthaste-attempt"),
            is_replayed: header("posthaste-replayed") == "true",
            end: End::Open,
            asks_to_wait: false,
        }
    }

    fn is_bad(&self, ids: &[String]) -> bool {
        ids.iter().any(|id| is_bad(self.seed, id))
    }

    /// The answer that comes at once; `None` for one that takes time.
    fn answer(&self, behaviour: Behaviour, ids: &[String]) -> Result<Reply, SendFailure> {
        let asked = {
            let mut shared = self.shared.lock();
            shared.asked += 1;
            shared.asked
        };
        let status = |status| {
            Ok(Reply {
                status,
                header: None,
            })
        };
        let with = |status, name, value| {
            Ok(Reply {
                status,
                header: Some((name, value)),
            })
        };
        match behaviour {
            Behaviour::Well | Behaviour::Slow | Behaviour::Late => status(204),
            Behaviour::Busy => status(503),
            Behaviour::AsksToWait => with(503, "retry-after", "120"),
            Behaviour::TooMany => with(429, "retry-after", "20"),
            Behaviour::Breaks => status(500),
            Behaviour::Refuses => status(400),
            Behaviour::RefusesSome => status(if self.is_bad(ids) { 400 } else { 204 }),
            Behaviour::CannotReadSome => status(if self.is_bad(ids) { 422 } else { 204 }),
            Behaviour::ComesAndGoes => status(if is_away(self.clock.monotonic()) {
                503
            } else {
                204
            }),
            Behaviour::TooLarge => status(if ids.len() > 1 { 413 } else { 204 }),
            Behaviour::Unauthorized => status(401),
            Behaviour::Gone => status(410),
            Behaviour::Silent => Err(SendFailure::TimedOut),
            Behaviour::ClosesForSome if !self.is_bad(ids) => status(204),
            Behaviour::Closes | Behaviour::ClosesForSome => Err(SendFailure::Closed),
            Behaviour::Refused => Err(SendFailure::Refused),
            Behaviour::Flaps => status(if asked.is_multiple_of(2) { 204 } else { 503 }),
            Behaviour::Moved => with(301, "location", "https://elsewhere.example.com/"),
        }
    }
}

/// Whether an event is one of those that some endpoints do not take.
pub(crate) fn is_bad(seed: u64, id: &str) -> bool {
    hash(seed, &[id]).is_multiple_of(BAD_EVENTS)
}

/// Whether an endpoint that comes and goes is away.
fn is_away(at: Duration) -> bool {
    at.as_secs() % COMES_EVERY.as_secs() < AWAY.as_secs()
}

struct Reply {
    status: u16,
    header: Option<(&'static str, &'static str)>,
}

impl WebhookClient for Endpoints {
    async fn send_if(&self, request: WebhookRequest, look: &impl LastLook) -> WebhookAnswer {
        let began = self.clock.monotonic();
        let took = || self.clock.monotonic().saturating_sub(began);
        let chance = hash(self.seed, &[&began.as_millis().to_string()]) % 1000;
        if chance < self.slow_connects {
            self.clock.sleep(CONNECT).await;
        }
        if !look.may_begin().await {
            return of_result(Err(SendFailure::Withdrawn), took());
        }
        let (under_way, behaviour, ids) = self.note(&request);
        self.trouble.panic_in_client();
        let left = request.timeout.saturating_sub(took());
        match behaviour {
            Behaviour::Slow => self.clock.sleep(SLOW.min(left)).await,
            Behaviour::Silent | Behaviour::Late => self.clock.sleep(left).await,
            _ => {}
        }
        if behaviour == Behaviour::Late {
            let late = self.late(under_way);
            return WebhookAnswer {
                late: Some(late),
                ..of_result(Err(SendFailure::TimedOut), took())
            };
        }
        let answer = self.answer(behaviour, &ids);
        under_way.end(match &answer {
            Ok(reply) => End::Answered(reply.status),
            Err(_) => End::None,
        });
        of_result(answer.map(|reply| response(&reply)), took())
    }

    fn drop_link(&self, _: &Link) {}
}

impl Endpoints {
    /// The rest of a request that had no answer in time. Its time runs from now.
    fn late(&self, under_way: UnderWay) -> LateAnswer {
        under_way.end(End::None);
        let clock = self.clock.clone();
        let due = clock.monotonic() + LATE;
        LateAnswer::new(async move {
            clock.sleep(due.saturating_sub(clock.monotonic())).await;
            under_way.end(End::AnsweredLate(204));
            let reply = Reply {
                status: 204,
                header: None,
            };
            Ok(response(&reply))
        })
    }
}

fn of_result(result: Result<WebhookResponse, SendFailure>, took: Duration) -> WebhookAnswer {
    WebhookAnswer {
        failure_text: None,
        result,
        took,
        late: None,
    }
}

fn response(reply: &Reply) -> WebhookResponse {
    let pair = |(name, value)| {
        (
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        )
    };
    let headers: HeaderMap = reply.header.map(pair).into_iter().collect();
    WebhookResponse {
        status: StatusCode::from_u16(reply.status).unwrap_or_default(),
        headers,
        body: Bytes::new(),
        body_is_whole: true,
    }
}
