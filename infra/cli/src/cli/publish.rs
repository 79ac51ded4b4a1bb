//! The command line of `publish`.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, ValueEnum};
use posthaste_core::model::pasted::trim_unseen;
use posthaste_core::model::time::parse_duration;
use posthaste_core::model::{CUSTOM_EVENTS_PER_REQUEST_MAX, Timestamp};
use posthaste_core::stored::IdempotencyKey;
use serde::Serialize;

/// Longest name of a run, in bytes: the rest of a key is room for the number of an event.
const RUN_BYTES_MAX: usize = 200;

const AT_A_PACE: &str = "At a pace (with --rate)";

/// `publish`.
#[derive(Debug, Args)]
pub struct PublishArgs {
    /// The topic.
    pub topic: String,
    /// The file with the events, or - for standard input. Without --rate it is sent as it is, in
    /// one request. With --rate it may have any size, and is an array of events, or one event
    /// after the other, such as one in each line. What comes from a pipe cannot be read again:
    /// a run that ends early names the events that may not be published.
    #[arg(short, long, value_name = "FILE")]
    pub file: PathBuf,
    /// The content type of the file, or of each request with --rate [default: by the content:
    /// application/cloudevents+json for a CloudEvent, application/cloudevents-batch+json for an
    /// array of them, application/json for everything else].
    #[arg(long, value_name = "TYPE")]
    pub content_type: Option<String>,
    /// One of the topic's publish keys. With it, the events go to --url, unless --admin-key is
    /// given too [default: the server names address and key, for the admin key].
    #[arg(
        long,
        env = "POSTHASTE_PUBLISH_KEY",
        hide_env_values = true,
        allow_hyphen_values = true
    )]
    pub key: Option<String>,
    /// The admin key, to ask the server where to publish and with which key. With --key, the
    /// variable does not count [default, without --key: what <data-dir>/admin.key holds].
    #[arg(
        long,
        env = "POSTHASTE_KEY",
        value_name = "KEY",
        hide_env_values = true,
        allow_hyphen_values = true
    )]
    pub admin_key: Option<String>,
    /// Step back behind the tier of the key: under back pressure, bulk producers, such as imports,
    /// are refused first. A tier before the key's has no effect.
    #[arg(long, value_enum)]
    pub tier: Option<DeclaredTier>,
    /// How long the events live from when they are accepted, such as PT10M [default: what the
    /// topic and its subscriptions say].
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub time_to_live: Option<Duration>,
    /// Send the events no sooner than at this time, such as 2026-12-01T08:00:00Z, or so long from
    /// now, such as 10m; at most 30 days ahead. They go out in the minute after it.
    #[arg(long, value_name = "TIME", value_parser = LaterTime::parse)]
    pub not_before: Option<LaterTime>,
    /// Options of a file that is published at a pace.
    #[command(flatten)]
    pub pace: PaceArgs,
}

/// A time that may be yet to come, as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaterTime {
    /// The time itself.
    At(Timestamp),
    /// So long from now.
    In(Duration),
}

impl LaterTime {
    fn parse(text: &str) -> Result<Self, String> {
        if let Ok(length) = parse_duration(text) {
            return Ok(Self::In(length));
        }
        let time = Timestamp::parse(text).map(Self::At);
        time.map_err(|_| {
            "expected a time such as 2026-12-01T08:00:00Z, or 10m for in ten minutes".to_owned()
        })
    }

    /// The time, where it is `now`.
    pub fn resolve(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(time) => time,
            Self::In(length) => now + length,
        }
    }
}

impl PublishArgs {
    /// Forgets an admin key of the environment if a publish key is given. Then --url is the place
    /// to publish: it need not manage the topic, and must not get the key that manages.
    pub(super) fn forget_ambient_admin_key(&mut self, given: &ArgMatches) {
        let is_ambient = given.value_source("admin_key") == Some(ValueSource::EnvVariable);
        if is_ambient
            && self
                .key
                .as_deref()
                .is_some_and(|key| !trim_unseen(key).is_empty())
        {
            self.admin_key = None;
        }
    }
}

/// Options of a file that is published at a pace. Without `rate` the others mean nothing, and are
/// refused.
#[derive(Debug, Args)]
#[command(next_help_heading = AT_A_PACE)]
pub struct PaceArgs {
    /// Publish the events in requests of many: as fast as the server takes them (auto), or at most
    /// N events per second. Both obey its back pressure. A request without an answer is sent
    /// again under the same name, so that its events are published once. Only what a server
    /// had half written before it failed may come twice.
    #[arg(long, value_name = "auto|N", value_parser = parse_rate)]
    pub rate: Option<PublishRate>,
    /// Most events in one request. A request is sent when it is full, at the end of the file, or
    /// when a pipe has been silent for a second.
    #[arg(long, value_name = "N", default_value_t = 100, requires = "rate",
        value_parser = clap::value_parser!(u32).range(1..=CUSTOM_EVENTS_PER_REQUEST_MAX as i64))]
    pub batch: u32,
    /// Leave out the first N events: an earlier run that did not end well says how many.
    #[arg(long, value_name = "N", default_value_t = 0, requires = "rate")]
    pub from: u64,
    /// The name of that earlier run. What it published of the same file, with the same --batch and
    /// within a day, is not published again [default: a new name].
    #[arg(long, value_name = "NAME", requires = "rate", value_parser = parse_run_name)]
    pub run: Option<String>,
    /// Give up if the server acknowledged nothing for so long. If it never answered, 30 s are
    /// enough. The exit code is then 6 for back pressure, and 7 for a server that did not
    /// answer.
    #[arg(long, value_name = "DURATION", default_value = "PT15M", requires = "rate", value_parser = parse_duration)]
    pub give_up_after: Duration,
}

/// The wanted pace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublishRate {
    /// As fast as the server takes it.
    Auto,
    /// The most events per second.
    PerSecond(NonZeroU32),
}

/// The tier that a producer declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum DeclaredTier {
    /// As those with a topic's ordinary keys.
    Standard,
    /// The first to be refused.
    Bulk,
}

/// Error of an argument that `publish` does not take.
#[derive(Debug, thiserror::Error)]
enum ArgumentError {
    #[error("expected auto, or a whole number of events per second from 1 on")]
    Rate,
    #[error("expected 1 to {RUN_BYTES_MAX} visible ASCII characters")]
    Run,
}

fn parse_rate(text: &str) -> Result<PublishRate, ArgumentError> {
    match text {
        "auto" => Ok(PublishRate::Auto),
        number => number
            .parse()
            .map(PublishRate::PerSecond)
            .map_err(|_| ArgumentError::Rate),
    }
}

fn parse_run_name(text: &str) -> Result<String, ArgumentError> {
    let is_name = text.len() <= RUN_BYTES_MAX && IdempotencyKey::parse(text.as_bytes()).is_ok();
    is_name.then(|| text.to_owned()).ok_or(ArgumentError::Run)
}
