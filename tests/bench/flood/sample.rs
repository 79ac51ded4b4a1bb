//! Samples, taken every half second.

use std::fs;
use std::time::Duration;

use posthaste_tests::patience::now;
use posthaste_tests::server::Server;
use serde_json::Value;

use crate::endpoint::arrived;
use crate::load::Load;

/// Looks at a server and its producers.
#[derive(Debug)]
pub(crate) struct Sampler<'a> {
    server: &'a Server,
    load: &'a Load,
    began: Duration,
}

/// One look.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    /// The time since the epoch, and in seconds since the beginning.
    pub(crate) at: Duration,
    pub(crate) secs: f64,
    /// Messages that wait, as the monitor last counted them.
    pub(crate) waiting: f64,
    pub(crate) drain_secs: f64,
    pub(crate) level: String,
    pub(crate) tarpit_secs: f64,
    pub(crate) is_refusing: bool,
    pub(crate) resident_mib: f64,
    /// Events until now: accepted of the usual producers and of the flood, refused, delivered.
    pub(crate) usual: u64,
    pub(crate) flood: u64,
    pub(crate) refused: u64,
    pub(crate) arrived: u64,
}

impl<'a> Sampler<'a> {
    pub(crate) fn new(server: &'a Server, load: &'a Load) -> Self {
        Self {
            server,
            load,
            began: now(),
        }
    }

    pub(crate) fn sample(&self) -> Sample {
        let shown = self.server.api().show("/pressure");
        let at = now();
        Sample {
            at,
            secs: at.saturating_sub(self.began).as_secs_f64(),
            waiting: reading(&shown, "submission-queue"),
            drain_secs: reading(&shown, "drain-time"),
            level: shown["level"].as_str().unwrap_or_default().to_owned(),
            tarpit_secs: seconds(shown["tarpit"].as_str().unwrap_or_default()),
            is_refusing: shown["refusedTiers"]
                .as_array()
                .is_some_and(|tiers| !tiers.is_empty()),
            resident_mib: resident_mib(self.server.pid()),
            usual: self.load.usual.accepted(),
            flood: self.load.flood.accepted(),
            refused: self.load.usual.refused() + self.load.flood.refused(),
            arrived: arrived(),
        }
    }
}

impl Sample {
    pub(crate) fn is_calm(&self) -> bool {
        self.level == "normal" && self.tarpit_secs == 0.0 && !self.is_refusing
    }
}

fn reading(shown: &Value, name: &str) -> f64 {
    let resources = shown["resources"].as_array().into_iter().flatten();
    let mut found = resources.filter(|resource| resource["resource"] == name);
    found
        .find_map(|resource| resource["reading"].as_f64())
        .unwrap_or(0.0)
}

/// `PT15S`; the tarpit is never longer than a minute by the defaults.
fn seconds(length: &str) -> f64 {
    let secs = length
        .strip_prefix("PT")
        .and_then(|rest| rest.strip_suffix('S'));
    secs.and_then(|secs| secs.parse().ok()).unwrap_or(0.0)
}

fn resident_mib(pid: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process runs");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .expect("status has the line");
    let kib = line
        .split_whitespace()
        .next()
        .and_then(|number| number.parse::<f64>().ok());
    kib.expect("it is a number") / 1024.0
}
