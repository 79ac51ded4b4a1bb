//! Rules that must hold of a run, whatever happened in it.

use std::collections::{BTreeMap, BTreeSet};

use posthaste_tests::api::Api;
use posthaste_tests::home::Home;
use posthaste_tests::seed::Seed;

use crate::again::{around, reason};
use crate::ledger::{Arrival, Fate, Known, is_refused, number};
use crate::machine::TOPIC;
use crate::moods::subscriptions;
use crate::report::Counts;
use crate::trouble::Trouble;

/// Faults of one kind that are told. The first ones say enough.
const TOLD_MAX: usize = 5;

/// Events that the delivery log is asked for.
pub(crate) const ASKED_OF_THE_LOG: usize = 200;

/// At most one of so many deliveries comes again without a reason that is known: on a busy machine an
/// answer may be lost or late without one.
const UNEXPLAINED_ONE_OF: usize = 1000;

/// Events that have become dead letters, by subscription, and how often.
pub(crate) type Letters = BTreeMap<&'static str, BTreeMap<u32, u32>>;

pub(crate) fn letters(home: &Home) -> Letters {
    let of = |name| {
        let mut events = BTreeMap::new();
        for letter in home.dead_letters(TOPIC, name) {
            let id = letter["id"].as_str().expect("a letter has its event");
            *events.entry(number(id)).or_default() += 1;
        }
        (name, events)
    };
    subscriptions().map(of).collect()
}

/// Returns the events that were accepted for a subscription and have no end yet.
pub(crate) fn open(known: &Known, letters: &Letters) -> Vec<(&'static str, u32)> {
    let mut open = Vec::new();
    for name in subscriptions() {
        let arrived = arrived(known, name);
        let letters = &letters[name];
        let accepted = known.fates.iter().zip(0..);
        let accepted = accepted.filter(|(fate, _)| **fate == Fate::Acknowledged);
        let without_end = accepted
            .map(|(_, event)| event)
            .filter(|event| !arrived.contains(event) && !letters.contains_key(event));
        open.extend(without_end.map(|event| (name, event)));
    }
    open
}

/// The events that a receiver has taken.
fn arrived(known: &Known, subscription: &str) -> BTreeSet<u32> {
    let all = known.arrivals.get(subscription).into_iter().flatten();
    all.filter(|it| is_success(it)).map(|it| it.event).collect()
}

fn is_success(arrival: &Arrival) -> bool {
    (200..300).contains(&arrival.status)
}

/// Compares everything, and answers what was counted and what is wrong.
pub(crate) fn check(known: &Known, letters: &Letters) -> (Counts, Vec<String>) {
    let mut check = Check {
        known,
        counts: Counts::default(),
        faults: known.faults.clone(),
    };
    check.balance();
    for name in subscriptions() {
        check.subscription(name, &letters[name]);
    }
    check.ids();
    (check.counts, check.faults)
}

struct Check<'a> {
    known: &'a Known,
    counts: Counts,
    faults: Vec<String>,
}

impl Check<'_> {
    fn tell(&mut self, what: &str, found: impl Iterator<Item = String>) {
        let found: Vec<_> = found.collect();
        if !found.is_empty() {
            let first = &found[..found.len().min(TOLD_MAX)];
            self.faults
                .push(format!("{what}: {}, such as {first:?}", found.len()));
        }
    }

    /// Each request has its answer, or none; otherwise nothing follows from the rest.
    fn balance(&mut self) {
        let count = |fate| self.known.fates.iter().filter(|it| **it == fate).count();
        self.counts.published = self.known.fates.len();
        self.counts.acknowledged = count(Fate::Acknowledged);
        self.counts.refused = count(Fate::Refused);
        self.counts.unknown = count(Fate::Unknown);
        let under_way = count(Fate::UnderWay);
        if under_way > 0 {
            self.faults
                .push(format!("void: {under_way} requests never ended"));
        }
    }

    fn subscription(&mut self, name: &'static str, letters: &BTreeMap<u32, u32>) {
        let known = self.known;
        let mut successes: BTreeMap<u32, Vec<&Arrival>> = BTreeMap::new();
        let mut all: BTreeMap<u32, Vec<&Arrival>> = BTreeMap::new();
        let mut altered = Vec::new();
        for arrival in known.arrivals.get(name).into_iter().flatten() {
            self.counts.requests_of_events += 1;
            all.entry(arrival.event).or_default().push(arrival);
            if !arrival.is_whole {
                altered.push(arrival.event);
            }
            if is_success(arrival) {
                successes.entry(arrival.event).or_default().push(arrival);
            }
        }
        self.tell(
            &format!("{name}: arrived as another event than was published"),
            altered.iter().map(u32::to_string),
        );
        self.counts.delivered += successes.len();
        self.counts.dead_letters += letters.len();
        let published = |event: &u32| known.fates.get(*event as usize);
        let never = successes.keys().chain(letters.keys());
        let never =
            never.filter(|event| published(event).is_none_or(|fate| *fate == Fate::Refused));
        self.tell(
            &format!("{name}: arrived although not accepted"),
            never.map(u32::to_string),
        );
        let wrong = letters.keys().filter(|event| !is_refused(**event));
        self.counts.given_up += wrong.count();
        let both = letters.keys().filter(|event| successes.contains_key(event));
        self.counts.also_dead += both.count();
        let mut unexplained = Vec::new();
        for (event, arrivals) in &mut successes {
            arrivals.sort_unstable_by_key(|it| it.at);
            for two in arrivals.windows(2) {
                match reason(known, &all[event], (two[0], two[1])) {
                    Some(why) => *self.counts.again.entry(why).or_default() += 1,
                    None => unexplained.push(around(known, (two[0], two[1]))),
                }
            }
        }
        self.counts.unexplained += unexplained.len();
        if unexplained.len() * UNEXPLAINED_ONE_OF > successes.len() {
            self.tell(
                &format!("{name}: arrived again without a reason"),
                unexplained.into_iter(),
            );
        }
    }

    /// The same event has the same `webhook-id` on every path to every subscription, alone.
    fn ids(&mut self) {
        let mut ids: BTreeMap<u32, u64> = BTreeMap::new();
        let mut others = BTreeSet::new();
        for arrival in self.known.arrivals.values().flatten() {
            let Some(id) = arrival.id else { continue };
            if *ids.entry(arrival.event).or_insert(id) != id {
                others.insert(arrival.event);
            }
        }
        self.tell("with another webhook-id", others.iter().map(u32::to_string));
    }
}

/// Asks the delivery log for some events: what it says of one must be what its receiver saw. It may
/// know nothing of an event, where the disk was full. Answers how many it knew, and what is wrong.
pub(crate) fn check_log(
    api: &Api,
    known: &Known,
    letters: &Letters,
    seed: &mut Seed,
) -> (usize, Vec<String>) {
    let accepted = known.fates.iter().zip(0..);
    let accepted: Vec<u32> = accepted
        .filter(|(fate, _)| **fate == Fate::Acknowledged)
        .map(|(_, event)| event)
        .collect();
    let arrived: BTreeMap<_, _> = subscriptions().map(|it| (it, arrived(known, it))).collect();
    let mut told = 0;
    let mut faults = Vec::new();
    for _ in 0..ASKED_OF_THE_LOG.min(accepted.len()) {
        let event = accepted[seed.below(accepted.len())];
        let answer = api.manage("GET", &format!("/topics/{TOPIC}/events/{event}"), None);
        if answer.status == 404 {
            continue;
        }
        told += 1;
        let answer = answer.expect(200).json();
        for delivery in answer["deliveries"].as_array().into_iter().flatten() {
            let name = delivery["subscription"].as_str().unwrap_or_default();
            let is_true = match delivery["state"].as_str() {
                Some("delivered") => arrived.get(name).is_some_and(|it| it.contains(&event)),
                Some("dead-lettered") => {
                    letters.get(name).is_some_and(|it| it.contains_key(&event))
                }
                _ => true,
            };
            if !is_true {
                faults.push(format!("the log says of {event}: {delivery}"));
            }
        }
    }
    faults.truncate(TOLD_MAX);
    (told, faults)
}

/// The troubles that a run has had, and how often.
pub(crate) fn troubles(known: &Known) -> BTreeMap<Trouble, usize> {
    let mut troubles = BTreeMap::new();
    for time in &known.times {
        *troubles.entry(time.trouble).or_default() += 1;
    }
    troubles
}
