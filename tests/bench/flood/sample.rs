//! Samples, taken every half second.

use std::fs;
use std::time::Duration;

use crate::endpoint::arrived;
use crate::load::Load;
use posthaste_tests::patience::now;
use posthaste_tests::server::Server;

/// Time over which the slowest acknowledgement is looked for.
const RECENT: Duration = Duration::from_secs(2);

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
    /// Messages of the flooded topic that wait, as the monitor last counted them.
    pub(crate) waiting: f64,
    pub(crate) drain_secs: f64,
    pub(crate) level: String,
    pub(crate) tarpit_secs: f64,
    pub(crate) is_refusing: bool,
    pub(crate) resident_mib: f64,
    /// Events until now: accepted of the usual producers and of the flood, refused, delivered.
    pub(crate) usual: u64,
    pub(crate) flood: u64,
    /// The same of the quick topic, and its slowest acknowledgement of the last two seconds, in
    /// milliseconds.
    pub(crate) quick: u64,
    pub(crate) quick_ms: f64,
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
        // The flooded topic is the only one that is slowed.
        let topic = &shown["topics"][0];
        let at = now();
        Sample {
            at,
            secs: at.saturating_sub(self.began).as_secs_f64(),
            waiting: topic["due"].as_f64().unwrap_or(0.0),
            drain_secs: topic["drainSeconds"].as_f64().unwrap_or(0.0),
            level: topic["level"].as_str().unwrap_or("normal").to_owned(),
            tarpit_secs: seconds(topic["tarpit"].as_str().unwrap_or_default()),
            is_refusing: topic["refusedTiers"]
                .as_array()
                .is_some_and(|tiers| !tiers.is_empty()),
            resident_mib: resident_mib(self.server.pid()),
            usual: self.load.usual.accepted(),
            flood: self.load.flood.accepted(),
            quick: self.load.quick.accepted(),
            quick_ms: self.load.quick.slowest_ms(at.saturating_sub(RECENT), at),
            refused: self.load.usual.refused()
                + self.load.flood.refused()
                + self.load.quick.refused(),
            arrived: arrived(),
        }
    }
}

impl Sample {
    pub(crate) fn is_calm(&self) -> bool {
        self.level == "normal" && self.tarpit_secs == 0.0 && !self.is_refusing
    }
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
