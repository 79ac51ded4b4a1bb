//! An endpoint that answers by script and remembers what it was sent.

use std::collections::{BTreeMap, VecDeque};
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_ENCODING;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use posthaste_core::model::{Link, SendFailure, Timestamp};
use posthaste_ports::{
    Clock, LastLook, LateAnswer, WebhookAnswer, WebhookClient, WebhookRequest, WebhookResponse,
};
use posthaste_testkit::ManualClock;

/// One answer of the script.
#[derive(Debug, Clone)]
pub enum Answer {
    /// A status.
    Status(u16),
    /// A status with a header.
    With(u16, &'static str, &'static str),
    /// A 200 with this body.
    Body(String),
    /// 200 with these bytes, which have this content coding.
    Coded(&'static str, &'static [u8]),
    /// A 200 whose body breaks off after this.
    BodyCutOff(String),
    /// No answer.
    Failure(SendFailure),
    /// A status by what the body says and when it came.
    By(fn(&str, Timestamp) -> u16),
    /// A connection that is closed after the request where the body says so, and 204 otherwise.
    ClosedFor(fn(&str) -> bool),
    /// A host that a request brings down whose body says so: its connection is closed, and others are
    /// refused for so long. 204 otherwise.
    CrashesFor(fn(&str) -> bool, Duration),
    /// A status by what the body says, after so long.
    SlowBy(Duration, fn(&str) -> u16),
    /// A status after so long, as the clock tells, also when the request was given up meanwhile.
    Late(Duration, u16),
    /// A status after the clock has moved on by so much.
    After(Duration, u16),
    /// A status with a header, after so long.
    LateWith(Duration, u16, &'static str, &'static str),
    /// 204, after so long where the URL has this in it, and at once elsewhere.
    SlowAt(&'static str, Duration),
    /// Nothing, ever: the client must give up.
    Never,
    /// Nothing, ever: the client gives up at the timeout.
    Hangs,
}

/// A request as it was sent.
#[derive(Debug, Clone)]
pub struct Request {
    /// The time.
    pub at: Timestamp,
    /// The URL.
    pub url: String,
    pub headers: HeaderMap,
    pub body: String,
}

/// A webhook client whose other side is a script. Clones share it.
#[derive(Debug, Clone)]
pub struct ScriptedEndpoint {
    clock: ManualClock,
    script: Arc<Mutex<Script>>,
}

#[derive(Debug)]
struct Script {
    next: VecDeque<Answer>,
    then: Answer,
    at: BTreeMap<String, Answer>,
    seen: Vec<Request>,
    under_way: usize,
    most_at_once: usize,
    dropped: Vec<Link>,
    /// The end of the time for which a host is down that has crashed.
    down_until: Option<Timestamp>,
}

/// A request under way, also one whose sender gives up.
struct UnderWay(Arc<Mutex<Script>>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .under_way -= 1;
    }
}

impl ScriptedEndpoint {
    /// An endpoint that answers 204.
    pub fn new(clock: ManualClock) -> Self {
        let script = Script {
            next: VecDeque::new(),
            then: Answer::Status(204),
            at: BTreeMap::new(),
            seen: Vec::new(),
            under_way: 0,
            most_at_once: 0,
            dropped: Vec::new(),
            down_until: None,
        };
        Self {
            clock,
            script: Arc::new(Mutex::new(script)),
        }
    }

    /// Answers these, one after the other, and then the last one for ever.
    pub fn answer(&self, answers: impl IntoIterator<Item = Answer>) {
        let mut script = self.lock();
        script.next = answers.into_iter().collect();
        if let Some(last) = script.next.pop_back() {
            script.next.push_back(last.clone());
            script.then = last;
        }
    }

    /// Answers this, for ever, where the URL has `place` in it.
    pub fn answer_at(&self, place: impl Into<String>, answer: Answer) {
        self.lock().at.insert(place.into(), answer);
    }

    /// The most requests that were under way at once since the last call.
    pub fn most_at_once(&self) -> usize {
        let mut script = self.lock();
        let under_way = script.under_way;
        std::mem::replace(&mut script.most_at_once, under_way)
    }

    /// Takes what was sent since the last time.
    pub fn take(&self) -> Vec<Request> {
        std::mem::take(&mut self.lock().seen)
    }

    fn lock(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of requests that were sent to it and not taken yet.
    pub fn seen(&self) -> usize {
        self.lock().seen.len()
    }

    /// Takes the links that the client had to forget since the last time.
    pub fn take_dropped(&self) -> Vec<Link> {
        std::mem::take(&mut self.lock().dropped)
    }

    /// An answer that comes after so long. Its time runs from now, not from when it is first
    /// polled.
    fn late(&self, after: Duration, status: u16) -> LateAnswer {
        let clock = self.clock.clone();
        let due = clock.monotonic() + after;
        LateAnswer::new(async move {
            clock.sleep(due.saturating_sub(clock.monotonic())).await;
            Ok(response(status, None))
        })
    }

    fn note(&self, request: WebhookRequest) -> (Answer, String) {
        let body = String::from_utf8_lossy(&request.body.concat()).into_owned();
        let seen = Request {
            at: self.clock.now(),
            url: request.url.as_str().to_owned(),
            headers: request.headers,
            body: body.clone(),
        };
        let mut script = self.lock();
        let at = script
            .at
            .iter()
            .find(|(place, _)| seen.url.contains(place.as_str()))
            .map(|(_, it)| it.clone());
        script.seen.push(seen);
        let next = |script: &mut Script| {
            script
                .next
                .pop_front()
                .unwrap_or_else(|| script.then.clone())
        };
        let answer = at.unwrap_or_else(|| next(&mut script));
        (answer, body)
    }

    /// The answer of a host that crashes: it is down for a while.
    fn crash(&self, crashes: bool, length: Duration) -> Result<WebhookResponse, SendFailure> {
        let now = self.clock.now();
        let mut script = self.lock();
        if script.down_until.is_some_and(|until| now < until) {
            return Err(SendFailure::Socket);
        }
        if crashes {
            script.down_until = Some(now + length);
            return Err(SendFailure::Closed);
        }
        Ok(response(204, None))
    }

    fn begin(&self) -> UnderWay {
        let mut script = self.lock();
        script.under_way += 1;
        script.most_at_once = script.most_at_once.max(script.under_way);
        UnderWay(Arc::clone(&self.script))
    }
}

impl WebhookClient for ScriptedEndpoint {
    /// The connections of this endpoint are there before they are needed.
    async fn send_if(&self, request: WebhookRequest, _: &impl LastLook) -> WebhookAnswer {
        let timeout = request.timeout;
        let url = request.url.clone();
        let is_at = |place: &str| url.as_str().contains(place);
        let _under_way = self.begin();
        let (answer, body) = self.note(request);
        let result = match answer {
            Answer::Status(status) => Ok(response(status, None)),
            Answer::With(status, name, value) => Ok(response(status, Some((name, value)))),
            Answer::Coded(coding, bytes) => {
                let mut answer = WebhookResponse {
                    body: Bytes::from_static(bytes),
                    ..response(200, None)
                };
                answer
                    .headers
                    .insert(CONTENT_ENCODING, HeaderValue::from_static(coding));
                Ok(answer)
            }
            Answer::Body(text) => Ok(WebhookResponse {
                body: text.into(),
                ..response(200, None)
            }),
            Answer::BodyCutOff(text) => Ok(WebhookResponse {
                body: text.into(),
                body_is_whole: false,
                ..response(200, None)
            }),
            Answer::Failure(failure) => Err(failure),
            Answer::By(status) => Ok(response(status(&body, self.clock.now()), None)),
            Answer::ClosedFor(is_meant) if is_meant(&body) => Err(SendFailure::Closed),
            Answer::ClosedFor(_) => Ok(response(204, None)),
            Answer::CrashesFor(is_meant, length) => self.crash(is_meant(&body), length),
            Answer::SlowBy(length, status) => {
                self.clock.sleep(length).await;
                Ok(response(status(&body), None))
            }
            Answer::Late(length, status) if length > timeout => {
                self.clock.sleep(timeout).await;
                let late = Some(self.late(length.saturating_sub(timeout), status));
                return WebhookAnswer {
                    failure_text: None,
                    result: Err(SendFailure::TimedOut),
                    took: timeout,
                    late,
                };
            }
            Answer::Late(length, status) => {
                self.clock.sleep(length).await;
                Ok(response(status, None))
            }
            Answer::LateWith(length, status, name, value) => {
                self.clock.sleep(length).await;
                Ok(response(status, Some((name, value))))
            }
            Answer::SlowAt(place, length) => {
                if is_at(place) {
                    self.clock.sleep(length).await;
                }
                Ok(response(204, None))
            }
            Answer::Never => pending().await,
            Answer::Hangs => {
                self.clock.sleep(timeout).await;
                Err(SendFailure::TimedOut)
            }
            Answer::After(length, status) => {
                self.clock.advance(length);
                Ok(response(status, None))
            }
        };
        WebhookAnswer {
            failure_text: None,
            result,
            took: Duration::ZERO,
            late: None,
        }
    }

    fn drop_link(&self, link: &Link) {
        self.lock().dropped.push(link.clone());
    }
}

fn response(status: u16, header: Option<(&'static str, &'static str)>) -> WebhookResponse {
    let pair = |(name, value)| {
        (
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        )
    };
    WebhookResponse {
        status: StatusCode::from_u16(status).unwrap_or_default(),
        headers: header.map(pair).into_iter().collect(),
        body: Bytes::new(),
        body_is_whole: true,
    }
}
