//! Producers that publish one event after the other and do not ask whether they should.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use posthaste_tests::api::{Answer, CLOUD_EVENT, Topic};
use posthaste_tests::events::cloud_event;
use posthaste_tests::patience::{rest, wait_until};
use posthaste_tests::server::Server;

/// Most requests of one producer in one flood: it ends also where a test fails.
const REQUESTS_MAX: usize = 3000;

/// Publishes in a row that must go through at once where there is no pressure. The answer to one
/// that waited says so.
const CALM_PUBLISHES: usize = 20;

/// All producers, and what they know.
#[derive(Debug)]
pub(super) struct Producers {
    topic: Topic,
    next: AtomicUsize,
    accepted: Mutex<Vec<String>>,
    heard: Mutex<Vec<Heard>>,
}

/// An answer to a producer.
#[derive(Debug, Clone)]
pub(super) struct Heard {
    pub(super) status: u16,
    pub(super) pressure: Option<String>,
    pub(super) retry_after: Option<String>,
    pub(super) problem: Option<String>,
}

impl Heard {
    fn of(answer: &Answer) -> Self {
        let header = |name| answer.header(name).map(str::to_owned);
        let problem = (answer.status != 200).then(|| answer.json()["type"].to_string());
        Self {
            status: answer.status,
            pressure: header("posthaste-pressure"),
            retry_after: header("retry-after"),
            problem: problem.map(|kind| kind.trim_matches('"').to_owned()),
        }
    }

    fn is_calm(&self) -> bool {
        self.status == 200 && self.pressure.is_none()
    }

    pub(super) fn is_refused(&self) -> bool {
        self.status == 503
    }

    /// The time that its acknowledgement waited, if the answer says so.
    pub(super) fn delay_secs(&self) -> Option<u64> {
        let (_, delay) = self.pressure.as_deref()?.split_once("delay=")?;
        delay.parse().ok()
    }
}

impl Producers {
    pub(super) fn new(topic: Topic) -> Self {
        Self {
            topic,
            next: AtomicUsize::new(0),
            accepted: Mutex::default(),
            heard: Mutex::default(),
        }
    }

    /// Publishes until it is over, with a rest after every answer.
    pub(super) fn publish_until(&self, is_over: &AtomicBool, between: Duration) {
        for _ in 0..REQUESTS_MAX {
            if is_over.load(Ordering::Relaxed) {
                return;
            }
            let heard = self.publish();
            lock(&self.heard).push(heard);
            rest(between);
        }
    }

    /// Publishes as before any flood. The server may have to look at the pressure once more first.
    pub(super) fn publish_calmly(&self) {
        wait_until("publishes in a row without pressure", || {
            let is_calm = (0..CALM_PUBLISHES).all(|_| self.publish().is_calm());
            is_calm.then_some(())
        });
    }

    /// The ids of the events that were accepted.
    pub(super) fn accepted(&self) -> Vec<String> {
        lock(&self.accepted).clone()
    }

    /// The answers in floods, in their order.
    pub(super) fn heard(&self) -> Vec<Heard> {
        lock(&self.heard).clone()
    }

    fn publish(&self) -> Heard {
        let id = self.next.fetch_add(1, Ordering::Relaxed).to_string();
        let answer = self
            .topic
            .send(CLOUD_EVENT, cloud_event(&id).to_string().as_bytes());
        let heard = Heard::of(&answer.expect("the server answers"));
        if heard.status == 200 {
            lock(&self.accepted).push(id);
        }
        heard
    }
}

/// Whether nothing is under pressure, no topic either, and no producer waits.
pub(super) fn calm(server: &Server) -> bool {
    let shown = server.api().show("/pressure");
    shown["level"] == "normal"
        && shown["tarpit"] == "PT0S"
        && shown["refusedTiers"] == serde_json::json!([])
        && shown["topics"].is_null()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
