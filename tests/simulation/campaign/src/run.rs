//! Plays a course, lets everything become well, and has the checker look at the run.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::check::{End, Ends, faults_of};
use crate::course::{Action, Behaviour, Course, Publication, Step};
use crate::history::{History, PublishedEvent, Seen};
use crate::installation::Installation;

/// How long all is well at the end, and in which parts the run looks whether nothing waits any
/// more. What is scheduled is due within a day, and lives for a day.
const WELL_PART: Duration = Duration::from_hours(6);
const WELL_PARTS_MAX: u32 = 16;

/// What a run showed.
#[derive(Debug)]
pub struct Outcome {
    /// What is wrong; nothing if all holds.
    pub faults: Vec<String>,
    /// Each request that an endpoint saw, in words, in order: the same for the same course.
    pub trace: Vec<String>,
}

/// Plays a course.
pub async fn run(course: &Course) -> Outcome {
    let mut run = Run {
        course,
        installation: Installation::of(course).await,
        history: History::default(),
        behaviours: course
            .subscribers
            .iter()
            .map(|it| (it.name, Behaviour::Well))
            .collect(),
        published: Vec::new(),
    };
    for step in &course.steps {
        run = Box::pin(run.step(step)).await;
    }
    Box::pin(run.end()).await
}

struct Run<'a> {
    course: &'a Course,
    installation: Installation,
    history: History,
    behaviours: BTreeMap<&'static str, Behaviour>,
    /// The ids of all events, in order.
    published: Vec<String>,
}

impl Run<'_> {
    async fn step(mut self, step: &Step) -> Self {
        match step {
            Step::Publish(publication) => self.publish(publication).await,
            Step::Behave {
                subscriber,
                behaviour,
            } => {
                let name = self.course.subscribers[*subscriber].name;
                self.behave(name, *behaviour);
            }
            Step::Pass(length) => self.installation.pass(*length).await,
            Step::Act { subscriber, action } => {
                let name = self.course.subscribers[*subscriber].name;
                self.act(name, *action).await;
            }
            Step::Cancel { back } => self.cancel(*back).await,
            Step::Resend { back, subscriber } => {
                let name = self.course.subscribers[*subscriber].name;
                self.resend(*back, name).await;
            }
            Step::Fault { calls, is_done } => self.installation.arm(*calls, *is_done),
            Step::Restart => {
                self.look();
                self.history.restarts += 1;
                self.installation = self.installation.restart().await;
            }
        }
        self.look();
        self
    }

    /// Takes what endpoints have seen, before they behave differently.
    fn look(&mut self) {
        let behaviours = &self.behaviours;
        let takes_events =
            |name: &str| behaviours.get(name).is_some_and(|it| it.takes_events());
        let requests = self.installation.take_requests();
        let seen = requests.iter().map(|it| Seen::read(it, takes_events));
        self.history.seen.extend(seen);
        self.history.faults = self.installation.faults();
    }

    fn behave(&mut self, name: &'static str, behaviour: Behaviour) {
        self.behaviours.insert(name, behaviour);
        self.installation.behave(name, behaviour);
    }

    async fn publish(&mut self, publication: &Publication) {
        let first = self.published.len();
        let ids: Vec<_> = (first..first + publication.events)
            .map(|number| format!("e{number}"))
            .collect();
        let data = "x".repeat(publication.bytes);
        let event = |id: &String| {
            json!({
                "specversion": "1.0", "id": id, "source": "/campaign",
                "type": publication.event_type, "data": data,
            })
        };
        let events: Vec<_> = ids.iter().map(event).collect();
        self.installation.tick();
        let at = self.installation.now();
        let not_before = publication.later.map(|later| at + later);
        let mut headers = Vec::new();
        if let Some(time) = not_before {
            headers.push(("posthaste-not-before", time.to_string()));
        }
        if let Some(life) = publication.time_to_live {
            headers.push(("posthaste-time-to-live", format!("{}s", life.as_secs())));
        }
        let status = self.installation.publish(&headers, &events).await;
        let takes = |it: &&crate::Subscriber| it.takes(publication.event_type);
        let wanted_by = self.course.subscribers.iter().filter(takes);
        let event = PublishedEvent {
            at,
            is_accepted: status == 200,
            wanted_by: wanted_by.map(|it| it.name.to_owned()).collect(),
            not_before,
            time_to_live: publication.time_to_live,
            is_cancelled: false,
        };
        for id in &ids {
            self.history.events.insert(id.clone(), event.clone());
        }
        self.published.extend(ids);
    }

    async fn act(&mut self, name: &str, action: Action) {
        let path = format!("/topics/orders/subscriptions/{name}");
        let api = self.installation.api();
        let (method, path, body) = match action {
            Action::Pause => ("POST", format!("{path}/pause"), Value::Null),
            Action::Resume => ("POST", format!("{path}/resume"), Value::Null),
            Action::Disable => ("POST", format!("{path}/disable"), Value::Null),
            Action::Enable => ("POST", format!("{path}/enable"), Value::Null),
            Action::Force => ("POST", format!("{path}/force"), Value::Null),
            Action::Replay => {
                self.history.sent_again.insert(name.to_owned());
                ("POST", format!("{path}/dead-letters/replay"), json!({}))
            }
            Action::RotateSecret => ("POST", format!("{path}/rotate-secret"), Value::Null),
            Action::PutAgain => {
                let of_name = |it: &&crate::Subscriber| it.name == name;
                let subscriber = self.course.subscribers.iter().find(of_name);
                let settings = subscriber.map_or(Value::Null, |it| it.settings.clone());
                ("PUT", path, settings)
            }
        };
        // Whether it is done is the operator's trouble: the states of a run tell.
        api.ask(method, &path, &body).await;
    }

    /// The id of an event, counted back from the last one.
    fn id(&self, back: usize) -> Option<String> {
        let place = self.published.len().checked_sub(back + 1)?;
        self.published.get(place).cloned()
    }

    async fn cancel(&mut self, back: usize) {
        let Some(id) = self.id(back) else { return };
        let path = format!("/topics/orders/events/{id}");
        let api = self.installation.api();
        let (status, _) = api.ask("DELETE", &path, &Value::Null).await;
        let event = self.history.events.get_mut(&id);
        if let Some(event) = event.filter(|_| status != 404) {
            event.is_cancelled = event.not_before.is_some();
        }
    }

    async fn resend(&mut self, back: usize, name: &str) {
        let Some(id) = self.id(back) else { return };
        let path = format!("/topics/orders/subscriptions/{name}/events/{id}/resend");
        self.history.sent_again.insert(name.to_owned());
        let api = self.installation.api();
        api.ask("POST", &path, &json!({})).await;
    }

    /// Everything becomes well, and time passes until nothing waits any more.
    async fn end(mut self) -> Outcome {
        self.installation.disarm();
        for subscriber in &self.course.subscribers {
            self.behave(subscriber.name, Behaviour::Well);
            for action in [Action::Enable, Action::Resume] {
                self.act(subscriber.name, action).await;
            }
        }
        let mut is_at_rest = false;
        for _ in 0..WELL_PARTS_MAX {
            self.installation.pass(WELL_PART).await;
            self.look();
            is_at_rest = self.installation.is_at_rest().await;
            if is_at_rest {
                break;
            }
        }
        let ends = self.ends(is_at_rest).await;
        let faults = faults_of(self.course, &self.history, &ends);
        let trace = self.history.seen.iter().map(|it| format!("{it:?}"));
        Outcome {
            faults,
            trace: trace.collect(),
        }
    }

    async fn ends(&self, is_at_rest: bool) -> Ends {
        let mut ends = Ends {
            is_at_rest,
            ..Ends::default()
        };
        let api = self.installation.api();
        for id in &self.published {
            let path = format!("/topics/orders/events/{id}");
            let (_, event) = api.ask("GET", &path, &Value::Null).await;
            for delivery in event["deliveries"].as_array().into_iter().flatten() {
                let text = |member: &str| {
                    let text = delivery[member].as_str().unwrap_or_default();
                    text.to_owned()
                };
                let end = End {
                    state: text("state"),
                    reason: text("reason"),
                };
                ends.told.insert((id.clone(), text("subscription")), end);
            }
        }
        for subscriber in &self.course.subscribers {
            let name = subscriber.name;
            for letter in self.letters(name).await {
                let id = letter["event"]["id"].as_str().or(letter["id"].as_str());
                let key = (id.unwrap_or_default().to_owned(), name.to_owned());
                *ends.letters.entry(key).or_default() += 1;
            }
        }
        ends
    }

    /// The dead letters of a subscription that are not resolved.
    async fn letters(&self, name: &str) -> Vec<Value> {
        let (mut letters, mut cursor) = (Vec::new(), String::new());
        let api = self.installation.api();
        loop {
            let path = format!(
                "/topics/orders/subscriptions/{name}/dead-letters?limit=1000{cursor}"
            );
            let (_, page) = api.ask("GET", &path, &Value::Null).await;
            letters.extend(page["deadLetters"].as_array().into_iter().flatten().cloned());
            let Some(next) = page["cursor"].as_str() else {
                return letters;
            };
            cursor = format!("&cursor={next}");
        }
    }
}
