//! The rest of a run, read from its stores and asked of its API.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use posthaste_core::model::{LetterPlace, Timestamp};
use posthaste_core::stored::{LetterEnding, ReplayRecord, ResolvedLetters, layout};
use serde_json::Value;

use crate::course::{Course, NOTICES_TOPIC, Place};
use crate::ends::{Audited, Ends, Letter, Told};
use crate::history::{History, Life, PublishedEvent};
use crate::installation::Installation;
use crate::request::{path, topic_name, topic_path};

/// The days after which nothing is kept any more but what stays for ever, and changes of settings.
const DAYS: u32 = 50;

/// Prefixes that stay: settings, and states of links, as objects of a bounded number. The report of
/// a process on refused letters is cleared by monitor, where it runs and letters wait.
const STAYS: [&str; 17] = [
    layout::REFUSED,
    layout::TOPICS,
    layout::LINKS,
    layout::RATES,
    layout::SLOTS,
    layout::AUDIT,
    layout::WAKE_LEASE,
    layout::WAKE_SIGNAL,
    layout::RECORD_LEASE,
    layout::PRESSURE_KEY,
    layout::LANES,
    "health/",
    "waiting/",
    // By the lifecycle of the bucket, on AWS.
    layout::DRAIN,
    "console-key.json",
    "console-sessions.json",
    "serve-run.json",
];

/// Prefixes that a lifecycle rule of the bucket deletes on AWS.
const BY_LIFECYCLE: [&str; 8] = [
    layout::CANCELLED,
    layout::REPLAYS,
    layout::CLAIMS,
    layout::REFUSED,
    layout::PAYLOADS,
    layout::SCHEDULED_PAYLOADS,
    layout::IDEMPOTENCY,
    layout::LATE,
];

/// Events of a run that the log is asked for in any case.
const SAMPLES: usize = 8;

/// Reads what a run left.
pub(crate) struct Reader<'a> {
    pub(crate) course: &'a Course,
    pub(crate) history: &'a History,
    pub(crate) installation: &'a mut Installation,
}

impl Reader<'_> {
    fn ask(&mut self, path: &str) -> Option<(u16, Value)> {
        self.installation.ask("GET", path, &Value::Null, 0)
    }

    /// Returns what still waits, in words. A note of a late answer that could not be deleted is
    /// left until it is old.
    pub(crate) fn waits(&mut self) -> Vec<String> {
        let mut waits = Vec::new();
        let queued = self.installation.queued();
        if queued > 0 {
            waits.push(format!("{queued} messages"));
        }
        let state = &self.installation.shared().state;
        for prefix in [
            layout::PARKED,
            layout::HELD,
            layout::FORCING,
            layout::REPLAYING,
            layout::DISABLED,
            layout::TELLING,
        ] {
            waits.extend(state.keys(prefix));
        }
        // What has ended is kept for a day.
        for (key, bytes) in state.objects_under(layout::ENDING) {
            let is_open = LetterEnding::parse(&bytes).is_ok_and(|ending| ending.is_open());
            waits.extend(is_open.then_some(key));
        }
        let is_open = |bytes: &Bytes| ReplayRecord::parse(bytes).is_ok_and(|it| !it.has_ended());
        let replays = state.objects_under(layout::REPLAYS).into_iter();
        waits.extend(replays.filter(|it| is_open(&it.1)).map(|it| it.0));
        waits
    }

    /// Returns the objects that are left in the state bucket after many days without events, and
    /// should not be.
    pub(crate) fn left(&mut self) -> Vec<String> {
        let tick = Duration::from_mins(2);
        for _ in 0..DAYS {
            self.installation
                .pass_without_process(Duration::from_hours(24));
            self.installation.pass(tick);
        }
        // Each kind is looked for in another minute of the hour.
        self.installation.pass(Duration::from_mins(61));
        let is_on_aws = self.course.world.place == Place::Aws;
        if is_on_aws {
            // There, manage only runs when it is asked, and then looks at what is over.
            self.ask("/topics");
        }
        let stays = |key: &String| {
            STAYS.iter().any(|prefix| key.starts_with(prefix))
                || (is_on_aws && BY_LIFECYCLE.iter().any(|prefix| key.starts_with(prefix)))
        };
        let keys = self.installation.shared().state.keys("");
        keys.into_iter().filter(|key| !stays(key)).collect()
    }

    pub(crate) fn ends(&mut self, waits: Vec<String>) -> Ends {
        let mut ends = Ends {
            waits,
            ..Ends::default()
        };
        ends.letters = self.letters();
        for (topic, id) in self.asked_for(&ends.letters) {
            ends.asked.insert(id.clone());
            let path = format!("{}/events/{id}", topic_path(topic));
            let answer = self.ask(&path);
            let event = answer.map_or(Value::Null, |it| it.1);
            for delivery in event["deliveries"].as_array().into_iter().flatten() {
                let text = |member: &str| delivery[member].as_str().unwrap_or_default().to_owned();
                ends.told.push(Told {
                    id: id.clone(),
                    name: text("subscription"),
                    state: text("state"),
                    reason: text("reason"),
                    attempts: delivery["attempts"].as_array().map_or(0, Vec::len),
                });
            }
        }
        for topic in self.course.topics() {
            ends.audit.extend(self.audit(topic));
        }
        for (of, subscriber) in (0..).zip(&self.course.subscribers) {
            if !self.history.is_there(of) {
                continue;
            }
            if let Some((200, shown)) = self.ask(&path(subscriber.topic, of)) {
                ends.shown.push((of, shown));
            }
        }
        ends
    }

    /// The events that the log is asked for: those whose end is not seen elsewhere, and some of the
    /// others, since each question reads all of the log.
    fn asked_for(&self, letters: &[Letter]) -> Vec<(u8, String)> {
        let seen = self.installation.shared().endpoints.seen();
        let ended: BTreeSet<(&str, &str)> = seen
            .iter()
            .flat_map(|seen| seen.taken_ids().map(|id| (id, seen.name.as_str())))
            .chain(letters.iter().map(|it| (it.id.as_str(), it.name.as_str())))
            .collect();
        let topic_and_name = |life: &Life| (life.settings.topic, life.name());
        let names: BTreeSet<_> = self.history.lives.iter().map(topic_and_name).collect();
        let is_open = |event: &PublishedEvent| {
            let mut names = names.iter().filter(|it| it.0 == event.topic);
            names.any(|it| !ended.contains(&(event.id.as_str(), it.1.as_str())))
        };
        let events = &self.history.events;
        let every = events.len().div_ceil(SAMPLES).max(1);
        let asked = events.iter().enumerate();
        let asked = asked.filter(|(place, event)| place % every == 0 || is_open(event));
        asked
            .map(|(_, event)| (event.topic, event.id.clone()))
            .collect()
    }

    /// The audit trail of a topic.
    fn audit(&mut self, topic: u8) -> Vec<Audited> {
        let mut entries = Vec::new();
        let mut cursor = String::new();
        loop {
            let path = format!("/audit?topic={}&limit=1000{cursor}", topic_name(topic));
            let Some((200, page)) = self.ask(&path) else {
                return entries;
            };
            for entry in page["entries"].as_array().into_iter().flatten() {
                let text = |member: &str| entry[member].as_str().unwrap_or_default().to_owned();
                entries.push(Audited {
                    action: text("action"),
                    name: text("subscription"),
                    outcome: text("outcome"),
                    actor: text("actor"),
                });
            }
            match page["cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return entries,
            }
        }
    }

    /// All dead letters, read from their bucket.
    fn letters(&self) -> Vec<Letter> {
        let bucket = &self.installation.shared().bucket;
        let mut letters = Vec::new();
        for (key, bytes) in bucket.objects_under("") {
            // What becomes of notices is looked at by themselves.
            let is_of_notices = key.to_lowercase().starts_with(NOTICES_TOPIC);
            if key.starts_with(layout::RESOLVED) || is_of_notices {
                continue;
            }
            let list = bucket.objects_under(&layout::resolved_letters_key(&key));
            let list = list
                .first()
                .and_then(|(_, list)| ResolvedLetters::parse(list).ok());
            let list = list.unwrap_or_default();
            // What is not ours is one letter that nobody published.
            let all = serde_json::from_slice::<Vec<Value>>(&bytes);
            let all = all.unwrap_or_else(|_| vec![Value::Null]);
            let name = key.split('/').nth(1).unwrap_or_default().to_lowercase();
            for (index, letter) in all.iter().enumerate() {
                let text = |members: [&str; 2]| {
                    let found = members.iter().find_map(|member| letter[member].as_str());
                    found.unwrap_or_default().to_owned()
                };
                let id = letter["id"].as_str().or(letter["data"]["id"].as_str());
                letters.push(Letter {
                    place: LetterPlace {
                        object: key.clone(),
                        index,
                    },
                    id: id.unwrap_or_default().to_owned(),
                    name: name.clone(),
                    reason: text(["deadletterreason", "deadLetterReason"]),
                    hour_end: hour_end(&key),
                    is_resolved: list.is_resolved(index),
                });
            }
        }
        letters
    }
}

/// The end of the hour that the key of a dead-letter object names.
fn hour_end(key: &str) -> Timestamp {
    let mut parts = key.split('/').skip(2);
    let mut part = || parts.next().unwrap_or_default();
    let day = format!("{}-{:0>2}-{:0>2}", part(), part(), part());
    let hour = format!("{day}T{:0>2}:00:00Z", part());
    let hour = Timestamp::parse(&hour).unwrap_or(Timestamp::EPOCH);
    hour + Duration::from_hours(1)
}
