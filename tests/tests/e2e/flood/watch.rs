//! Looks at `GET /pressure` all the time and keeps what every poll of the monitor showed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use posthaste_tests::api::Api;
use posthaste_tests::patience::rest;
use serde_json::Value;

/// Between two looks: many fit into one poll of the monitor.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// Most looks: three minutes.
const LOOKS_MAX: usize = 3600;

/// A thread that looks.
#[derive(Debug)]
pub(super) struct Watch {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Value>>,
}

/// What was seen: one state for each poll.
#[derive(Debug)]
pub(super) struct Seen(Vec<Value>);

impl Watch {
    pub(super) fn start(api: &Api) -> Self {
        let (api, is_over) = (api.clone(), Arc::new(AtomicBool::new(false)));
        let is_over_too = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            let mut polls: Vec<Value> = Vec::new();
            for _ in 0..LOOKS_MAX {
                let shown = api.show("/pressure");
                if polls.last().is_none_or(|last| last["polledAt"] != shown["polledAt"]) {
                    polls.push(shown);
                }
                if is_over_too.load(Ordering::Relaxed) {
                    break;
                }
                rest(BETWEEN_LOOKS);
            }
            polls
        });
        Self { is_over, thread }
    }

    pub(super) fn stop(self) -> Seen {
        self.is_over.store(true, Ordering::Relaxed);
        Seen(self.thread.join().expect("the server answers whoever looks"))
    }
}

impl Seen {
    /// What producers met, without repetitions: the seconds they waited, or `refused`.
    pub(super) fn consequences(&self) -> Vec<String> {
        let mut met: Vec<_> = self.0.iter().map(consequence).collect();
        met.dedup();
        met
    }

    /// Most messages that were seen waiting.
    pub(super) fn queue_max(&self) -> u64 {
        self.of("submission-queue").filter_map(|resource| resource["reading"].as_u64()).max().unwrap_or(0)
    }

    /// Whether the process stayed below the threshold of its memory.
    pub(super) fn is_memory_normal(&self) -> bool {
        self.of("process-memory").all(|resource| resource["level"] == "normal")
    }

    fn of<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'s Value> {
        let resources = self.0.iter().filter_map(|shown| shown["resources"].as_array()).flatten();
        resources.filter(move |resource| resource["resource"] == name)
    }
}

fn consequence(shown: &Value) -> String {
    let is_refused = shown["refusedTiers"].as_array().is_some_and(|tiers| !tiers.is_empty());
    let tarpit = shown["tarpit"].as_str().expect("the tarpit is a length of time");
    if is_refused { "refused".to_owned() } else { tarpit.replace("PT", "").replace('S', "") }
}
