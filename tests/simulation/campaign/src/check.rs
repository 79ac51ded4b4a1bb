//! The one checker of histories: what must hold of every run, whatever happened in it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::course::{Course, Subscriber};
use crate::history::{History, PublishedEvent, Seen};

/// The time to live of events where nothing says another.
const LIFE: Duration = Duration::from_hours(24);

/// The attempts of a delivery where nothing says another number.
const ATTEMPTS_MAX: u64 = 30;

/// The end of one event for one subscription, as the API tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct End {
    /// The state: `delivered`, `dead-lettered`, `dropped` and so on.
    pub(crate) state: String,
    /// Why it was given up.
    pub(crate) reason: String,
}

/// What was found at the end of a run.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    /// The ends that the API tells, by event and subscription.
    pub(crate) told: BTreeMap<(String, String), End>,
    /// Dead letters that are not resolved, by event and subscription, and how many there are.
    pub(crate) letters: BTreeMap<(String, String), u64>,
    /// Whether nothing waits any more.
    pub(crate) is_at_rest: bool,
}

/// What is wrong with a run; nothing if all holds.
pub(crate) fn faults_of(course: &Course, history: &History, ends: &Ends) -> Vec<String> {
    let check = Check {
        course,
        history,
        ends,
    };
    let mut faults = Vec::new();
    if !ends.is_at_rest {
        faults.push("something still waits although all has been well for days".to_owned());
    }
    for subscriber in &course.subscribers {
        let seen: Vec<_> = history
            .seen
            .iter()
            .filter(|it| it.subscription == subscriber.name)
            .collect();
        for (id, event) in &history.events {
            let of_event: Vec<_> = seen
                .iter()
                .copied()
                .filter(|it| it.ids.contains(id))
                .collect();
            faults.extend(check.event(subscriber, (id, event), &of_event));
        }
        let known = |id: &&String| history.events.contains_key(*id);
        let all_ids = seen.iter().flat_map(|it| &it.ids);
        let unknown: BTreeSet<_> = all_ids.filter(|id| !known(id)).collect();
        if !unknown.is_empty() {
            faults.push(format!("{} got events that nobody published: {unknown:?}", subscriber.name));
        }
    }
    faults
}

struct Check<'a> {
    course: &'a Course,
    history: &'a History,
    ends: &'a Ends,
}

impl Check<'_> {
    /// What is wrong with an event of a subscription. `seen` are the requests that had it.
    fn event(
        &self,
        subscriber: &Subscriber,
        (id, event): (&String, &PublishedEvent),
        seen: &[&Seen],
    ) -> Vec<String> {
        let name = subscriber.name;
        let mut faults = Vec::new();
        if !event.wanted_by.contains(name) {
            if !seen.is_empty() {
                faults.push("it was sent although its filter does not take it".to_owned());
            }
        } else {
            faults.extend(self.end(subscriber, (id, event), seen));
        }
        faults.extend(self.times(subscriber, event, seen));
        faults.extend(self.repeats(subscriber, seen));
        let course = self.course.seed;
        faults
            .into_iter()
            .map(|fault| format!("seed {course}, {id} for {name}: {fault}"))
            .collect()
    }

    /// An accepted event has one end, and every place tells the same.
    fn end(
        &self,
        subscriber: &Subscriber,
        (id, event): (&String, &PublishedEvent),
        seen: &[&Seen],
    ) -> Option<String> {
        let is_taken = seen.iter().any(|it| it.is_taken);
        let key = (id.clone(), subscriber.name.to_owned());
        let letters = self.ends.letters.get(&key).copied().unwrap_or_default();
        let told = self.ends.told.get(&key);
        let state = told.map_or("", |end| &end.state);
        if !event.is_accepted {
            return None;
        }
        if is_taken && letters > 0 && !self.history.has_troubles() {
            return Some(format!("it arrived, and is {letters} dead letters"));
        }
        if letters > 1 && !self.history.has_troubles() {
            return Some(format!("it is {letters} dead letters"));
        }
        let expected = match (is_taken, letters) {
            (true, _) => &["delivered"][..],
            (false, 1..) => &["dead-lettered"],
            (false, 0) if event.is_cancelled || !subscriber.keeps_dead_letters() => &["dropped"],
            (false, 0) => &[],
        };
        if expected.is_empty() {
            return Some(format!("it is lost: told {told:?}, sent {} times", seen.len()));
        }
        let is_told = expected.contains(&state);
        (!is_told && !self.history.has_troubles())
            .then(|| format!("the log tells {told:?} in place of {expected:?}"))
    }

    /// Nothing is sent before its time or after its life.
    fn times(
        &self,
        subscriber: &Subscriber,
        event: &PublishedEvent,
        seen: &[&Seen],
    ) -> Option<String> {
        let first = seen.iter().filter(|it| !it.is_replayed);
        let too_early = |it: &&&Seen| event.not_before.is_some_and(|time| it.at < time);
        if let Some(early) = first.clone().find(too_early) {
            return Some(format!("it was sent at {}, before its time", early.at));
        }
        let minutes = subscriber.settings["retryPolicy"]["eventTimeToLiveInMinutes"].as_u64();
        let of_subscription = minutes.map_or(LIFE, |minutes| Duration::from_secs(minutes * 60));
        let life = event.time_to_live.map_or(of_subscription, |own| own.min(of_subscription));
        // A scheduled event begins to live in the minute after its time, once it is released.
        let released = Duration::from_mins(if event.not_before.is_some() { 5 } else { 0 });
        let end = event.not_before.unwrap_or(event.at) + life + released;
        let late = first.clone().find(|it| it.at > end)?;
        Some(format!("it was sent at {}, after the end of its life at {end}", late.at))
    }

    /// Nothing is sent more often than it must be, and each time with the same id.
    fn repeats(&self, subscriber: &Subscriber, seen: &[&Seen]) -> Option<String> {
        let alone = seen.iter().filter(|it| it.ids.len() == 1);
        let ids: BTreeSet<_> = alone.map(|it| &it.webhook_id).collect();
        if ids.len() > 1 && subscriber.settings["batching"].is_null() {
            return Some(format!("it was sent with several ids: {ids:?}"));
        }
        let is_sent_again = self.history.sent_again.contains(subscriber.name);
        if self.history.has_troubles() || is_sent_again {
            return None;
        }
        let taken = seen.iter().filter(|it| it.is_taken).count();
        if taken > 1 {
            return Some(format!("it arrived {taken} times"));
        }
        if let Some(place) = seen.iter().position(|it| it.is_taken)
            && place + 1 < seen.len()
        {
            return Some("it was sent again after it had arrived".to_owned());
        }
        let attempts = seen.iter().filter(|it| !it.is_replayed).count() as u64;
        let most = subscriber.settings["retryPolicy"]["maxDeliveryAttempts"].as_u64();
        let most = most.unwrap_or(ATTEMPTS_MAX);
        (attempts > most && subscriber.settings["batching"].is_null())
            .then(|| format!("it was tried {attempts} times, and {most} are the most"))
    }
}
