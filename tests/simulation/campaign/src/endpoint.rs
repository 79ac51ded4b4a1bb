//! The endpoints of all subscriptions: they behave as a course says, and remember each request
//! from its beginning to its end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use parking_lot::Mutex;
use posthaste_core::model::{Link, SendFailure, Timestamp};
use posthaste_ports::{
    Clock, LastLook, LateAnswer, WebhookAnswer, WebhookClient, WebhookRequest, WebhookResponse,
};
use posthaste_testkit::ManualClock;
use serde_json::{Value, json};

use crate::course::{Behaviour, Consent, PAGER, Setting};
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

/// The time for which an endpoint that fell over lies.
const LIES: Duration = Duration::from_mins(10);

/// One event in so many is one of those that some endpoints do not take.
const BAD_EVENTS: u64 = 4;

/// One event in so many brings an endpoint down that falls over.
const WORST_EVENTS: u64 = 400;

/// The beginning of the types of notices.
const NOTICE_TYPES: &str = "dev.posthaste.";

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
    /// The third part of the path: the number of URLs before.
    pub(crate) moves: u32,
    /// Whether it was the second endpoint that got it.
    pub(crate) is_fallback: bool,
    /// The version of the settings that it was made by.
    pub(crate) version: u32,
    pub(crate) ids: Vec<String>,
    /// The events that its answer named as failed, where its subscription lets it.
    pub(crate) named: Vec<String>,
    pub(crate) webhook_id: String,
    pub(crate) attempt: u32,
    pub(crate) is_replayed: bool,
    pub(crate) end: End,
    /// Whether its answer asked to be left alone for a while.
    pub(crate) asks_to_wait: bool,
}

/// A consent, as its endpoint gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Given {
    /// When.
    pub(crate) at: Duration,
    /// The path of its URL: the name of the subscription, which of that name it is, and the number of
    /// URLs that it had before.
    pub(crate) place: (String, u32, u32),
}

/// A notice, as its subscriber got it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) at: Duration,
    /// The type of the notice, without the part that all of them have.
    pub(crate) kind: String,
    /// The subscription that it is about; empty for a link.
    pub(crate) name: String,
    /// The event that was given up.
    pub(crate) event: String,
    /// The reason.
    pub(crate) reason: String,
    /// The object of its dead letter; `None` where it was dropped.
    pub(crate) object: Option<String>,
}

/// The end of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The request is under way, or its sender has died.
    Open,
    /// The sender got this status.
    Answered(u16),
    /// The endpoint answered with this status after the sender had given up.
    AnsweredLate(u16),
    /// Of an event: the answer was a success, and named it as failed.
    Named,
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

    /// The events that the endpoint has taken, as its sender has heard in time.
    pub(crate) fn taken_ids(&self) -> impl Iterator<Item = &str> {
        let ids = self.ids.iter().filter(|id| !self.named.contains(id));
        ids.filter(|_| self.is_taken()).map(String::as_str)
    }

    /// The request as those of its events saw it that its answer named as failed.
    pub(crate) fn of_named(&self) -> Self {
        Self {
            end: End::Named,
            ..self.clone()
        }
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
    /// The times until which endpoints lie that have fallen over.
    lies_until: BTreeMap<String, Duration>,
    /// Those whose subscriptions read which events an answer names.
    reporting: BTreeSet<String>,
    /// The answers to the question whether events are wanted; consents where there is none.
    answers: BTreeMap<String, Consent>,
    /// The URLs that endpoints got with their last questions, below the API's.
    callbacks: BTreeMap<String, ((String, u32, u32), String)>,
    consents: Vec<Given>,
    notices: Vec<Notice>,
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

    /// Notes the events that the answer names, if its subscription reads them.
    fn note_report(&self, report: &Report) {
        let mut shared = self.shared.lock();
        let Shared {
            seen, reporting, ..
        } = &mut *shared;
        let seen = &mut seen[self.place];
        if reporting.contains(&seen.name) {
            seen.named = match report {
                Report::Failed(ids) => ids.clone(),
                // What names an event that was not asked about takes none.
                Report::OfAnother => seen.ids.clone(),
            };
        }
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

    /// The subscription of this name reads which events an answer names as failed.
    pub(crate) fn read_reports_of(&self, name: &str) {
        self.shared.lock().reporting.insert(name.to_owned());
    }

    /// The endpoint of this name answers so whether it wants events, from now on.
    pub(crate) fn consent(&self, name: &str, answer: Consent) {
        self.shared.lock().answers.insert(name.to_owned(), answer);
    }

    /// The path by which the endpoint of this name calls back, if it was asked. It is a consent.
    pub(crate) fn call_back(&self, name: &str) -> Option<String> {
        let at = self.clock.monotonic();
        let mut shared = self.shared.lock();
        let (place, path) = shared.callbacks.get(name).cloned()?;
        shared.consents.push(Given { at, place });
        Some(path)
    }

    /// All notices so far.
    pub(crate) fn notices(&self) -> Vec<Notice> {
        self.shared.lock().notices.clone()
    }

    fn note_notice(&self, request: &WebhookRequest) {
        let notice: Value = serde_json::from_slice(&request.body.concat()).unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let kind = text(&notice["type"]);
        let data = &notice["data"];
        self.shared.lock().notices.push(Notice {
            at: self.clock.monotonic(),
            kind: kind.trim_start_matches(NOTICE_TYPES).to_owned(),
            name: text(&data["subscription"]),
            event: text(&data["id"]),
            reason: text(&data["deadLetterReason"]),
            object: data["deadLetterObject"].as_str().map(str::to_owned),
        });
    }

    /// All consents so far.
    pub(crate) fn consents(&self) -> Vec<Given> {
        self.shared.lock().consents.clone()
    }

    /// Answers the question whether events are wanted.
    fn answer_question(&self, question: &Question, url: &str) -> WebhookResponse {
        let at = self.clock.monotonic();
        let place = place(url);
        let mut shared = self.shared.lock();
        let answer = shared.answers.get(&place.0).copied();
        let answer = answer.unwrap_or(Consent::Given);
        let callback = (place.clone(), question.callback.clone());
        shared.callbacks.insert(place.0.clone(), callback);
        if answer == Consent::Given {
            shared.consents.push(Given { at, place });
        }
        let origin = |origin| Reply {
            header: Some(("webhook-allowed-origin", origin)),
            ..Reply::of(200)
        };
        let reply = match (answer, &question.code) {
            (Consent::Given, None) => origin("posthaste.example"),
            (Consent::Refused, None) => origin("other.example"),
            (Consent::Refused, Some(_)) => Reply::of(400),
            (Consent::Given | Consent::Open, _) => Reply::of(200),
        };
        let mut response = response(&reply);
        if let (Consent::Given, Some(code)) = (answer, &question.code) {
            let body = json!({ "validationResponse": code });
            response.body = body.to_string().into();
        }
        response
    }

    /// All requests so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.shared.lock().seen.clone()
    }

    fn note(&self, request: &WebhookRequest) -> (UnderWay, Behaviour, String, Vec<String>) {
        let seen = self.read(request);
        let mut shared = self.shared.lock();
        let behaviour = match shared.behaviours.get(&seen.name) {
            Some(behaviour) if !seen.is_fallback => *behaviour,
            _ => Behaviour::Well,
        };
        let name = seen.name.clone();
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
        (under_way, behaviour, name, ids)
    }

    fn read(&self, request: &WebhookRequest) -> Seen {
        let url = request.url.as_str();
        let host = url.split('/').nth(2).unwrap_or_default();
        let (name, life, moves) = place(url);
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
            life,
            moves,
            is_fallback: host.starts_with("spare"),
            version: number(VERSION),
            ids,
            named: Vec::new(),
            webhook_id: header("webhook-id"),
            attempt: number("posthaste-attempt"),
            is_replayed: header("posthaste-replayed") == "true",
            end: End::Open,
            asks_to_wait: false,
        }
    }

    /// The report that certain events of these have failed.
    fn report(&self, ids: &[String]) -> Report {
        let bad = ids.iter().filter(|id| is_bad(self.seed, id));
        Report::Failed(bad.cloned().collect())
    }

    fn is_bad(&self, ids: &[String]) -> bool {
        ids.iter().any(|id| is_bad(self.seed, id))
    }

    /// Whether an endpoint lies that falls over where one of certain events is in a request.
    fn lies(&self, name: &str, ids: &[String]) -> bool {
        let now = self.clock.monotonic();
        let lies_until = &mut self.shared.lock().lies_until;
        let lies = lies_until.get(name).is_some_and(|until| now < *until);
        let is_worst = |id: &String| hash(self.seed, &["worst", id]).is_multiple_of(WORST_EVENTS);
        if !lies && ids.iter().any(is_worst) {
            lies_until.insert(name.to_owned(), now + LIES);
            return true;
        }
        lies
    }

    /// The answer that comes at once; `None` for one that takes time.
    fn answer(
        &self,
        name: &str,
        behaviour: Behaviour,
        ids: &[String],
    ) -> Result<Reply, SendFailure> {
        let asked = {
            let mut shared = self.shared.lock();
            shared.asked += 1;
            shared.asked
        };
        let status = |status| Ok(Reply::of(status));
        let with = |status, name, value| {
            Ok(Reply {
                header: Some((name, value)),
                ..Reply::of(status)
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
            Behaviour::BusyForSome => status(if self.is_bad(ids) { 503 } else { 204 }),
            Behaviour::FallsOver => status(if self.lies(name, ids) { 503 } else { 204 }),
            Behaviour::TooLarge => status(if ids.len() > 1 { 413 } else { 204 }),
            Behaviour::Unauthorized => status(401),
            Behaviour::Gone => status(410),
            Behaviour::Silent => Err(SendFailure::TimedOut),
            Behaviour::ClosesForSome if !self.is_bad(ids) => status(204),
            Behaviour::Closes | Behaviour::ClosesForSome => Err(SendFailure::Closed),
            Behaviour::Refused => Err(SendFailure::Refused),
            Behaviour::Flaps => status(if asked.is_multiple_of(2) { 204 } else { 503 }),
            Behaviour::NamesSome | Behaviour::NamesSomeLate => Ok(Reply::with(self.report(ids))),
            Behaviour::NamesOther => Ok(Reply::with(Report::OfAnother)),
            Behaviour::Moved => with(301, "location", "https://elsewhere.example.com/"),
        }
    }
}

/// Whether an event is one of those that some endpoints do not take.
pub(crate) fn is_bad(seed: u64, id: &str) -> bool {
    hash(seed, &[id]).is_multiple_of(BAD_EVENTS)
}

/// Reads the path of a URL: the name of a subscription, which of that name it is, and the number of
/// URLs that it had before.
fn place(url: &str) -> (String, u32, u32) {
    let mut parts = url.split('/').skip(3);
    let name = parts.next().unwrap_or_default().to_owned();
    let mut number = || parts.next().and_then(|part| part.parse().ok());
    let life = number().unwrap_or_default();
    let moves = number().unwrap_or_default();
    (name, life, moves)
}

/// Whether an endpoint that comes and goes is away.
fn is_away(at: Duration) -> bool {
    at.as_secs() % COMES_EVERY.as_secs() < AWAY.as_secs()
}

/// A question whether events are wanted.
struct Question {
    /// The code that an event of Event Grid wants back.
    code: Option<String>,
    /// The path by which the endpoint may consent later.
    callback: String,
}

impl Question {
    /// The question that a request is, if it is one.
    fn of(request: &WebhookRequest) -> Option<Self> {
        let header = |name: &str| request.headers.get(name)?.to_str().ok();
        if request.method == Method::OPTIONS {
            let callback = header("webhook-request-callback")?;
            return Some(Self {
                code: None,
                callback: path_of(callback),
            });
        }
        if header("aeg-event-type") != Some("SubscriptionValidation") {
            return None;
        }
        let body: Value = serde_json::from_slice(&request.body.concat()).ok()?;
        let data = &body[0]["data"];
        Some(Self {
            code: data["validationCode"].as_str().map(str::to_owned),
            callback: path_of(data["validationUrl"].as_str()?),
        })
    }
}

/// The path of a URL.
fn path_of(url: &str) -> String {
    let parts: Vec<_> = url.splitn(4, '/').collect();
    format!("/{}", parts.get(3).unwrap_or(&""))
}

struct Reply {
    status: u16,
    header: Option<(&'static str, &'static str)>,
    report: Option<Report>,
}

impl Reply {
    fn of(status: u16) -> Self {
        Self {
            status,
            header: None,
            report: None,
        }
    }

    fn with(report: Report) -> Self {
        Self {
            report: Some(report),
            ..Self::of(200)
        }
    }
}

/// The report of an answer about the events of a batch.
enum Report {
    /// These have failed.
    Failed(Vec<String>),
    /// One has failed that was not in the request.
    OfAnother,
}

impl Report {
    fn body(&self) -> Bytes {
        let failure = |id: &str| json!({ "itemIdentifier": id });
        let failures: Vec<_> = match self {
            Self::Failed(ids) => ids.iter().map(|id| failure(id)).collect(),
            Self::OfAnother => vec![failure("of another request")],
        };
        json!({ "batchItemFailures": failures }).to_string().into()
    }
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
        if let Some(question) = Question::of(&request) {
            let response = self.answer_question(&question, request.url.as_str());
            return of_result(Ok(response), took());
        }
        if place(request.url.as_str()).0 == PAGER {
            self.note_notice(&request);
            return of_result(Ok(response(&Reply::of(204))), took());
        }
        let (under_way, behaviour, name, ids) = self.note(&request);
        self.trouble.panic_in_client();
        let left = request.timeout.saturating_sub(took());
        match behaviour {
            Behaviour::Slow => self.clock.sleep(SLOW.min(left)).await,
            Behaviour::Silent | Behaviour::Late | Behaviour::NamesSomeLate => {
                self.clock.sleep(left).await;
            }
            _ => {}
        }
        if matches!(behaviour, Behaviour::Late | Behaviour::NamesSomeLate) {
            let report = (behaviour == Behaviour::NamesSomeLate).then(|| self.report(&ids));
            let late = self.late(under_way, report);
            return WebhookAnswer {
                late: Some(late),
                ..of_result(Err(SendFailure::TimedOut), took())
            };
        }
        let answer = self.answer(&name, behaviour, &ids);
        if let Ok(Reply {
            report: Some(report),
            ..
        }) = &answer
        {
            under_way.note_report(report);
        }
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
    fn late(&self, under_way: UnderWay, report: Option<Report>) -> LateAnswer {
        under_way.end(End::None);
        let clock = self.clock.clone();
        let due = clock.monotonic() + LATE;
        LateAnswer::new(async move {
            clock.sleep(due.saturating_sub(clock.monotonic())).await;
            let reply = report.map_or_else(|| Reply::of(204), Reply::with);
            if let Some(report) = &reply.report {
                under_way.note_report(report);
            }
            under_way.end(End::AnsweredLate(reply.status));
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
        body: reply.report.as_ref().map(Report::body).unwrap_or_default(),
        body_is_whole: true,
    }
}
