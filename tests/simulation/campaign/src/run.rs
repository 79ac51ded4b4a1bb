//! Plays a course, lets everything become well, and has the checker look at the run.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use axum::body::Body;
use http::Request as HttpRequest;
use serde_json::{Value, json};

use crate::check::faults_of;
use crate::course::{
    Action, Behaviour, Consent, Course, NOTICES_TOPIC, PAGER, Publication, Question, Schema, Step,
};
use crate::history::{Found, History, Life, PublishedEvent, State, Window, name};
use crate::installation::Installation;
use crate::reading::Reader;
use crate::request::{
    consent_of, content_type, event, pager, path, settings, state_of, topic_name, topic_path,
    version_of,
};

/// The time for which all is well at the end, and the parts of it in which the run looks whether
/// nothing waits any more. Scheduled events are due within a day, and live for a day.
const WELL_PARTS: [u64; 12] = [1, 1, 2, 4, 8, 8, 12, 12, 24, 24, 24, 24];

/// Events that are published at the end, and the time in which they have arrived.
const LAST_EVENTS: usize = 4;
const LAST_TIME: Duration = Duration::from_mins(10);

/// The time in which the log has everything.
const LOG_TIME: Duration = Duration::from_mins(1);

/// The time in which wake has disabled subscriptions whose endpoints are gone.
const GONE_TIME: Duration = Duration::from_mins(10);

/// The time for which requests come again under their keys.
const KEY_TIME: Duration = Duration::from_hours(23);

/// Tries to learn what became of a request without an answer.
const LOOKS_MAX: u32 = 50;

/// The outcome of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The faults; none if all holds.
    pub faults: Vec<String>,
    /// Each request that an endpoint saw and each step, in words, in order: the same for the same
    /// course.
    pub trace: Vec<String>,
}

/// Plays a course. A panic in it is a fault.
pub fn run(course: &Course) -> Outcome {
    let played = catch_unwind(AssertUnwindSafe(|| Run::new(course).play()));
    played.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
        Outcome {
            faults: vec![format!("it panicked: {}", text.unwrap_or_default())],
            trace: Vec::new(),
        }
    })
}

/// A request of a producer, as it may come again.
#[derive(Debug, Clone)]
struct KeyedRequest {
    /// The number of its topic.
    topic: u8,
    key: String,
    headers: Vec<(&'static str, String)>,
    body: String,
    /// The events of the request, by their places in the history.
    events: std::ops::Range<usize>,
}

struct Run<'a> {
    course: &'a Course,
    installation: Installation,
    history: History,
    /// The keys of the topics that there are, by their numbers.
    publish_keys: BTreeMap<u8, String>,
    keyed: Vec<KeyedRequest>,
    version: u32,
}

impl<'a> Run<'a> {
    fn new(course: &'a Course) -> Self {
        let mut run = Self {
            course,
            installation: Installation::new(course.world),
            history: History {
                last_from: usize::MAX,
                ..History::default()
            },
            publish_keys: BTreeMap::new(),
            keyed: Vec::new(),
            version: 0,
        };
        run.set_up();
        run
    }

    fn schema(&self) -> Schema {
        self.course.world.schema
    }

    /// Makes the topic and its subscriptions. Nothing goes wrong yet.
    fn set_up(&mut self) {
        let mood = self.installation.shared().mood.clone();
        mood.switch(false);
        if self.course.world.has_notices {
            self.create_pager();
        }
        let topics = self.course.topics();
        for topic in &topics {
            self.create_topic(*topic);
        }
        let made = self.publish_keys.len();
        assert_eq!(made, topics.len(), "nothing goes wrong yet");
        for (of, subscriber) in (0..).zip(&self.course.subscribers) {
            if subscriber.reports {
                let endpoints = &self.installation.shared().endpoints;
                endpoints.read_reports_of(&name(of));
            }
            if subscriber.is_reluctant {
                self.consent(of, Consent::Open);
            }
            self.create(of, 0);
        }
        assert_eq!(self.history.lives.len(), self.course.subscribers.len());
        mood.switch(true);
    }

    /// Makes the topic of notices, and its subscription.
    fn create_pager(&mut self) {
        let topic = format!("/topics/{NOTICES_TOPIC}");
        let pager_path = format!("{topic}/subscriptions/{PAGER}");
        self.ask("PUT", &topic, &json!({}), 0);
        self.ask("PUT", &pager_path, &pager(), 0);
        assert_eq!(self.history.refusals, Vec::<String>::new());
    }

    /// Makes a topic, and learns its key. If that fails, there is none.
    fn create_topic(&mut self, topic: u8) {
        let path = topic_path(topic);
        let mut settings = match self.schema() {
            Schema::Cloud => json!({}),
            Schema::Grid => json!({ "inputSchema": "EventGrid" }),
            Schema::Custom => json!({
                "inputSchema": "Custom",
                "inputMapping": {
                    "id": { "sourceField": "id" },
                    "eventType": { "sourceField": "kind" },
                },
            }),
        };
        if self.course.world.has_notices {
            settings["noticesTopic"] = json!(NOTICES_TOPIC);
            settings["deliveryFailedNotices"] = json!(true);
        }
        self.ask("PUT", &path, &settings, 0);
        let keys_path = format!("{path}/keys");
        for _ in 0..LOOKS_MAX {
            match self.ask("GET", &keys_path, &Value::Null, 0) {
                Some((200, keys)) => {
                    let key = keys["key1"].as_str().unwrap_or_default();
                    self.publish_keys.insert(topic, key.to_owned());
                    return;
                }
                Some((404, _)) => return,
                _ => self.installation.pass(Duration::from_secs(1)),
            }
        }
        panic!("what is there cannot be read");
    }

    fn delete_topic(&mut self, topic: u8, gone: u8) {
        let path = topic_path(topic);
        let asked = self.installation.monotonic();
        let status = self.ask("DELETE", &path, &Value::Null, gone).map(|it| it.0);
        let is_done = self.is_done(&path, status, Value::is_null);
        if !is_done {
            return;
        }
        let window = self.window(asked);
        self.publish_keys.remove(&topic);
        let lives = self.history.lives.iter_mut();
        let lives = lives.filter(|life| life.settings.topic == topic);
        for life in lives.filter(|life| life.deleted.is_none()) {
            life.deleted = Some(window);
        }
    }

    fn play(mut self) -> Outcome {
        for step in &self.course.steps {
            let at = self.installation.monotonic();
            self.history.notes.push(format!("{at:?} {step:?}"));
            self.look_for_idle();
            self.step(step);
            self.look_for_idle();
            let notes = self.installation.take_notes();
            self.history.notes.extend(notes);
        }
        self.end()
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Publish(publication) => self.publish(publication),
            Step::PublishAgain { back } => self.publish_again(*back),
            Step::Behave { of, like } => self.behave(*of, *like),
            Step::Consent { of, like } => self.consent(*of, *like),
            Step::CallBack { of } => self.call_back(*of),
            Step::Pass(seconds) => self
                .installation
                .pass(Duration::from_secs((*seconds).into())),
            Step::Act { of, what, gone } => self.act(*of, *what, *gone),
            Step::Cancel { back } => self.cancel(*back),
            Step::Resend { back, of } => self.resend(*back, *of),
            Step::Fault { calls, with } => self.installation.arm(*calls, *with),
            Step::Restart => {
                self.installation.restart();
            }
            Step::Kill(seconds) => {
                self.installation.kill();
                let length = Duration::from_secs((*seconds).into());
                self.installation.pass_without_process(length);
                self.installation.start();
            }
            Step::SetBack(seconds) => {
                let length = Duration::from_secs((*seconds).into());
                self.installation.set_back(length);
            }
            Step::Downgrade => self.installation.become_former(true),
            Step::Upgrade => self.installation.become_former(false),
        }
    }

    fn behave(&mut self, of: u8, like: Behaviour) {
        let at = self.installation.monotonic();
        self.history.behaviours.push((at, of, like));
        self.installation.shared().endpoints.behave(&name(of), like);
    }

    /// Looks which subscriptions have gone by themselves.
    fn look_for_idle(&mut self) {
        for place in 0..self.history.lives.len() {
            let life = &self.history.lives[place];
            if life.settings.idle == 0 || life.deleted.is_some() {
                continue;
            }
            let path = self.path(life.of);
            let asked = self.installation.monotonic();
            let status = self.ask("GET", &path, &Value::Null, 0).map(|it| it.0);
            let sure = self.installation.monotonic();
            let life = &mut self.history.lives[place];
            match status {
                Some(200) => life.seen_at = asked,
                Some(404) => {
                    life.went_idle = true;
                    let asked = life.seen_at;
                    life.deleted = Some(Window { asked, sure });
                }
                _ => {}
            }
        }
    }

    fn consent(&self, of: u8, like: Consent) {
        let endpoints = &self.installation.shared().endpoints;
        endpoints.consent(&name(of), like);
    }

    /// An endpoint consents by the URL that it was given.
    fn call_back(&mut self, of: u8) {
        let asked = self.installation.monotonic();
        let path = self.installation.shared().endpoints.call_back(&name(of));
        if let Some(path) = path {
            let status = self.ask("GET", &path, &Value::Null, 0).map(|it| it.0);
            self.look(of, asked, status);
        }
    }

    /// Looks whether the endpoint of a subscription has consented, after a change.
    fn look(&mut self, of: u8, asked: Duration, status: Option<u16>) {
        let is_asked = self
            .life(of)
            .is_some_and(|it| it.settings.question != Question::None);
        if !is_asked {
            return;
        }
        let shown = self.ask("GET", &self.path(of), &Value::Null, 0);
        let found = match (status, shown) {
            // What has no answer may still be under way.
            (Some(200..=499), Some((200, shown))) => consent_of(&shown),
            _ => Found::Unclear,
        };
        let window = self.window(asked);
        if let Some(life) = self.life(of) {
            life.looks.push((found, window));
        }
    }

    fn publish(&mut self, publication: &Publication) {
        // Requests of one millisecond may have the same keys.
        self.installation.pass(Duration::from_millis(1));
        self.look_for_idle();
        let first = self.history.events.len();
        let ids: Vec<_> = (first..first + usize::from(publication.events))
            .map(|number| format!("e{number}"))
            .collect();
        let now = self.installation.now();
        let later = Duration::from_secs(publication.later.into());
        let not_before = (publication.later > 0).then(|| now + later);
        let mut headers = vec![("content-type", content_type(self.schema()).to_owned())];
        if let Some(time) = not_before {
            headers.push(("posthaste-not-before", time.to_string()));
        }
        if publication.life > 0 {
            headers.push(("posthaste-time-to-live", format!("PT{}S", publication.life)));
        }
        let events: Vec<_> = ids
            .iter()
            .map(|id| event(self.schema(), id, publication, &now.to_string()))
            .collect();
        let mut request = KeyedRequest {
            topic: publication.topic,
            key: String::new(),
            headers,
            body: json!(events).to_string(),
            events: first..first + ids.len(),
        };
        if publication.has_key {
            request.key = format!("request-{first}");
            request
                .headers
                .push(("idempotency-key", request.key.clone()));
        }
        let asked = self.installation.monotonic();
        let status = self.post(&request, publication.gone);
        let window = Window {
            asked,
            sure: self.installation.monotonic(),
        };
        for id in ids {
            self.history.events.push(PublishedEvent {
                id,
                topic: publication.topic,
                window,
                days: (now, self.installation.now()),
                posts: 1,
                status,
                kind: publication.kind,
                not_before,
                life: (publication.life > 0).then(|| Duration::from_secs(publication.life.into())),
                is_cancelled: false,
            });
        }
        if publication.has_key {
            self.keyed.push(request);
        }
    }

    fn post(&mut self, request: &KeyedRequest, gone: u8) -> Option<u16> {
        let key = self.publish_keys.get(&request.topic);
        let key = key.map(String::as_str).unwrap_or_default();
        let mut builder = HttpRequest::post("/").header("aeg-sas-key", key);
        for (name, value) in &request.headers {
            builder = builder.header(*name, value);
        }
        let body = Body::from(request.body.clone());
        let status = self.installation.publish(
            topic_name(request.topic),
            builder.body(body).expect("a request"),
            gone,
        );
        if status != Some(200) {
            let at = self.installation.monotonic();
            self.history
                .refusals
                .push(format!("{at:?} publish: {status:?}"));
        }
        status
    }

    /// The request of an earlier step comes again. Its events are those of before.
    fn publish_again(&mut self, back: u8) {
        let place = self.keyed.len().checked_sub(usize::from(back) + 1);
        let Some(request) = place.and_then(|place| self.keyed.get(place)).cloned() else {
            return;
        };
        // A key is remembered for a day. Later it names another request.
        let first = self.history.events[request.events.start].window.asked;
        if self.installation.monotonic() > first + KEY_TIME {
            return;
        }
        self.installation.pass(Duration::from_millis(1));
        let status = self.post(&request, 0);
        let sure = self.installation.monotonic();
        let day = self.installation.now();
        for event in &mut self.history.events[request.events] {
            event.window.sure = sure;
            event.days.1 = day;
            event.posts += 1;
            if status == Some(200) {
                event.status = status;
            }
        }
    }

    fn life(&mut self, of: u8) -> Option<&mut Life> {
        let is_it = |life: &&mut Life| life.of == of && life.deleted.is_none();
        self.history.lives.iter_mut().rev().find(is_it)
    }

    fn act(&mut self, of: u8, what: Action, gone: u8) {
        let is_there = self.life(of).is_some();
        let topic = self.course.subscribers[usize::from(of)].topic;
        if what == Action::Create && !self.publish_keys.contains_key(&topic) {
            self.create_topic(topic);
        }
        match what {
            _ if !self.publish_keys.contains_key(&topic) => {}
            Action::DeleteTopic => self.delete_topic(topic, gone),
            Action::Create if is_there => self.write(of, Action::Edit, gone),
            Action::Create => self.create(of, gone),
            _ if !is_there => {}
            Action::Edit | Action::Move => self.write(of, what, gone),
            Action::Delete => self.delete(of, gone),
            Action::Pause | Action::Resume | Action::Disable | Action::Enable => {
                self.change_state(of, what, gone);
            }
            Action::Validate => self.validate(of, gone),
            Action::Force | Action::RotateSecret => {
                let action = if what == Action::Force {
                    "force"
                } else {
                    "rotate-secret"
                };
                if what == Action::Force {
                    let asked = self.installation.monotonic();
                    self.history.forced.push((asked, of));
                }
                let path = format!("{}/{action}", self.path(of));
                self.ask("POST", &path, &Value::Null, gone);
            }
            Action::Replay | Action::ReplayLog => {
                let request = if what == Action::Replay {
                    json!({})
                } else {
                    json!({ "source": "log", "result": "failed" })
                };
                let asked = self.installation.monotonic();
                self.history.sent_again.push((asked, of));
                let path = format!("{}/dead-letters/replay", self.path(of));
                self.ask("POST", &path, &request, gone);
            }
            Action::Resolve | Action::DeleteLetters => {
                let action = if what == Action::Resolve {
                    "resolve"
                } else {
                    "delete"
                };
                let asked = self.installation.monotonic();
                if what == Action::DeleteLetters {
                    self.history.deleted_letters.push((asked, of));
                }
                let path = format!("{}/dead-letters/{action}", self.path(of));
                self.ask("POST", &path, &json!({}), gone);
            }
            Action::CancelReplays => self.cancel_replays(),
        }
    }

    /// Has an endpoint asked again whether it wants events.
    fn validate(&mut self, of: u8, gone: u8) {
        let asked = self.installation.monotonic();
        let path = format!("{}/validate", self.path(of));
        let status = self.ask("POST", &path, &Value::Null, gone).map(|it| it.0);
        self.look(of, asked, status);
    }

    fn cancel_replays(&mut self) {
        for topic in self.course.topics() {
            let path = format!("/replays?topic={}&active=true", topic_name(topic));
            let Some((200, page)) = self.ask("GET", &path, &Value::Null, 0) else {
                continue;
            };
            for replay in page["replays"].as_array().into_iter().flatten() {
                let id = replay["id"].as_str().unwrap_or_default();
                self.ask("DELETE", &format!("/replays/{id}"), &Value::Null, 0);
            }
        }
    }

    fn ask(
        &mut self,
        method: &'static str,
        path: &str,
        body: &Value,
        gone: u8,
    ) -> Option<(u16, Value)> {
        let answer = self.installation.ask(method, path, body, gone);
        let status = answer.as_ref().map(|it| it.0);
        if status.is_none_or(|status| status >= 400) {
            let at = self.installation.monotonic();
            let refusal = format!("{at:?} {method} {path}: {status:?}");
            self.history.refusals.push(refusal);
        }
        answer
    }

    fn path(&self, of: u8) -> String {
        path(self.course.subscribers[usize::from(of)].topic, of)
    }

    fn settings(&self, of: u8, life: u32, moves: u32, version: u32) -> Value {
        let subscriber = &self.course.subscribers[usize::from(of)];
        let place = format!("{}/{life}/{moves}/", name(of));
        settings(subscriber, &place, version)
    }

    fn create(&mut self, of: u8, gone: u8) {
        let of_name = self.history.lives.iter().filter(|life| life.of == of);
        let number = 1 + u32::try_from(of_name.count()).unwrap_or_default();
        self.version += 1;
        let version = self.version;
        let settings = self.settings(of, number, 0, version);
        let asked = self.installation.monotonic();
        let answer = self.ask("PUT", &self.path(of), &settings, gone);
        let status = answer.as_ref().map(|it| it.0);
        assert!(status != Some(400), "{answer:?}");
        let is_done = self.is_done(&self.path(of), status, |shown| {
            version_of(shown) == Some(version)
        });
        self.history.changes.push(("subscription.put", of, is_done));
        let window = self.window(asked);
        if is_done {
            self.history.lives.push(Life {
                of,
                number,
                settings: self.course.subscribers[usize::from(of)],
                created: window,
                deleted: None,
                went_idle: false,
                seen_at: asked,
                versions: vec![(version, window)],
                moves: 0,
                states: Vec::new(),
                looks: Vec::new(),
            });
            self.look(of, asked, status);
        }
    }

    /// Writes the settings of a subscription again, with another header, and perhaps another URL.
    fn write(&mut self, of: u8, what: Action, gone: u8) {
        let Some(life) = self.life(of) else { return };
        let number = life.number;
        let moves = life.moves + u32::from(what == Action::Move);
        self.version += 1;
        let version = self.version;
        let settings = self.settings(of, number, moves, version);
        let asked = self.installation.monotonic();
        let status = self
            .ask("PUT", &self.path(of), &settings, gone)
            .map(|it| it.0);
        let is_done = self.is_done(&self.path(of), status, |shown| {
            version_of(shown) == Some(version)
        });
        self.history.changes.push(("subscription.put", of, is_done));
        let window = self.window(asked);
        if is_done && let Some(life) = self.life(of) {
            life.moves = moves;
            life.versions.push((version, window));
            if what == Action::Move && life.state() != State::Paused {
                // Another URL ends the disabling of a subscription.
                life.states.push((State::Active, window));
            }
        }
        self.look(of, asked, status);
    }

    fn delete(&mut self, of: u8, gone: u8) {
        let asked = self.installation.monotonic();
        let status = self
            .ask("DELETE", &self.path(of), &Value::Null, gone)
            .map(|it| it.0);
        let is_done = self.is_done(&self.path(of), status, Value::is_null);
        self.history
            .changes
            .push(("subscription.delete", of, is_done));
        let window = self.window(asked);
        if is_done && let Some(life) = self.life(of) {
            life.deleted = Some(window);
        }
    }

    fn change_state(&mut self, of: u8, what: Action, gone: u8) {
        let (action, audited, state) = match what {
            Action::Pause => ("pause", "subscription.pause", State::Paused),
            Action::Resume => ("resume", "subscription.resume", State::Active),
            Action::Disable => ("disable", "subscription.disable", State::Disabled),
            _ => ("enable", "subscription.enable", State::Active),
        };
        let is_news = self.life(of).is_some_and(|life| life.state() != state);
        let asked = self.installation.monotonic();
        let action = format!("{}/{action}", self.path(of));
        let status = self.ask("POST", &action, &Value::Null, gone).map(|it| it.0);
        let is_done = self.is_done(&self.path(of), status, |shown| {
            state_of(shown) == Some(state)
        });
        // What was so before says nothing of a request without an answer.
        let is_surely_done = is_done && (is_news || status.is_some_and(|it| it < 300));
        self.history.changes.push((audited, of, is_surely_done));
        let window = self.window(asked);
        if is_done && let Some(life) = self.life(of) {
            life.states.push((state, window));
        }
        self.look(of, asked, status);
    }

    fn window(&self, asked: Duration) -> Window {
        Window {
            asked,
            sure: self.installation.monotonic(),
        }
    }

    /// Whether a request was done: by its status, or by what is there now.
    fn is_done(&mut self, path: &str, status: Option<u16>, is_it: impl Fn(&Value) -> bool) -> bool {
        match status {
            Some(200..=299) => return true,
            Some(400..=499) => return false,
            _ => {}
        }
        for _ in 0..LOOKS_MAX {
            // What was begun goes on to its end.
            self.installation.pass(Duration::from_secs(1));
            match self.ask("GET", path, &Value::Null, 0) {
                Some((200, shown)) => return is_it(&shown),
                Some((404, _)) => return is_it(&Value::Null),
                _ => {}
            }
        }
        panic!("what is there cannot be read");
    }

    /// The place of an event, counted back from the last one.
    fn event(&self, back: u8) -> Option<usize> {
        self.history.events.len().checked_sub(usize::from(back) + 1)
    }

    fn cancel(&mut self, back: u8) {
        let Some(place) = self.event(back) else {
            return;
        };
        let event = &self.history.events[place];
        let path = format!("{}/events/{}", topic_path(event.topic), event.id);
        let status = self.ask("DELETE", &path, &Value::Null, 0).map(|it| it.0);
        let event = &mut self.history.events[place];
        let may_be_done = status.is_none_or(|status| !(400..500).contains(&status));
        event.is_cancelled |= may_be_done && event.not_before.is_some();
    }

    fn resend(&mut self, back: u8, of: u8) {
        let Some(place) = self.event(back) else {
            return;
        };
        if self.life(of).is_none() {
            return;
        }
        let id = self.history.events[place].id.clone();
        let path = format!("{}/events/{id}/resend", self.path(of));
        let asked = self.installation.monotonic();
        self.history.sent_again.push((asked, of));
        self.ask("POST", &path, &json!({}), 0);
    }

    /// Everything becomes well, and time passes until nothing waits any more.
    fn end(mut self) -> Outcome {
        self.installation.calm();
        self.installation.become_former(false);
        let all = (0..self.course.subscribers.len()).map(|of| u8::try_from(of).unwrap_or_default());
        for of in all.clone() {
            self.behave(of, Behaviour::Well);
            self.consent(of, Consent::Given);
        }
        // On AWS what an endpoint's 410 disables is disabled some minutes later.
        self.installation.pass(GONE_TIME);
        self.look_for_idle();
        for of in all {
            if self.life(of).is_some() {
                self.change_state(of, Action::Enable, 0);
                self.change_state(of, Action::Resume, 0);
                self.ask_without_consent(of);
            }
        }
        let mut waits = Vec::new();
        for hours in WELL_PARTS {
            self.installation.pass(Duration::from_hours(hours));
            waits = self.reader().waits();
            if waits.is_empty() {
                break;
            }
        }
        if waits.is_empty() {
            self.publish_last();
            waits = self.reader().waits();
        }
        self.installation.pass(LOG_TIME);
        self.look_for_idle();
        let mut ends = self.reader().ends(waits);
        ends.left = self.reader().left();
        ends.idle = self.idle_left();
        self.history.seen = self.installation.shared().endpoints.seen();
        self.history.notices = self.installation.shared().endpoints.notices();
        self.history.consents = self.installation.shared().endpoints.consents();
        self.history.mishaps = self.installation.take_mishaps();
        self.history.probes = self.installation.probes().to_vec();
        self.history.went_from = self.installation.went_from().to_vec();
        let faults = faults_of(self.course, &self.history, &ends);
        let seen = self.history.seen.iter().map(|it| format!("{it:?}"));
        let told = ends.told.iter().map(|it| format!("{it:?}"));
        let notices = self.history.notices.iter().map(|it| format!("{it:?}"));
        let letters = ends.letters.iter().map(|it| format!("{it:?}"));
        let mut trace = self.history.notes.clone();
        trace.extend(self.history.refusals.iter().cloned());
        trace.extend(seen.chain(told).chain(letters).chain(notices));
        Outcome { faults, trace }
    }

    /// Asks an endpoint again that has not consented.
    fn ask_without_consent(&mut self, of: u8) {
        let asked = self.installation.monotonic();
        self.look(of, asked, Some(200));
        let looks = self.life(of).map(|it| it.looks.last().copied());
        if let Some(Some((Found::Asked | Found::Without, _))) = looks {
            self.validate(of, 0);
        }
    }

    /// The subscriptions that are there many days after their last use, and should have gone.
    fn idle_left(&mut self) -> Vec<String> {
        let ends = self.history.lives.iter().map(|it| it.deleted.is_some());
        let ended: Vec<_> = ends.collect();
        self.look_for_idle();
        let lives = &mut self.history.lives;
        let idle = lives
            .iter()
            .filter(|it| it.settings.idle > 0 && it.deleted.is_none());
        let names = idle.map(Life::name).collect();
        // What goes after the end of the course has had no part in it.
        for (life, has_ended) in lives.iter_mut().zip(ended) {
            if !has_ended {
                life.deleted = None;
                life.went_idle = false;
            }
        }
        names
    }

    fn reader(&mut self) -> Reader<'_> {
        Reader {
            course: self.course,
            history: &self.history,
            installation: &mut self.installation,
        }
    }

    /// Publishes some events when all is well: these arrive soon, whatever there was.
    fn publish_last(&mut self) {
        self.history.last_from = self.history.events.len();
        for _ in 0..LAST_EVENTS {
            for topic in self.course.topics() {
                self.publish(&Publication {
                    topic,
                    events: 1,
                    kind: 0,
                    bytes: 0,
                    later: 0,
                    life: 0,
                    has_key: false,
                    gone: 0,
                });
            }
            self.installation.pass(Duration::from_mins(1));
        }
        self.installation.pass(LAST_TIME);
    }
}
