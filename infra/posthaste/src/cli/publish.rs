//! The command line of `publish`.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, ValueEnum};
use posthaste_core::model::time::parse_duration;
use posthaste_core::model::{CUSTOM_EVENTS_PER_REQUEST_MAX, TimeError};
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
    /// The file with the events, or - for standard input. Without --rate it is sent as it is, as one request.
    /// With --rate it is an array of events, or one event after the other, such as one in each line, and of
    /// any size. What is taken from a pipe cannot be read again: whatever ends a run says which of it is not
    /// known to be published.
    #[arg(short, long, value_name = "FILE")]
    pub file: PathBuf,
    /// The content type of the file, or of each request with --rate [default: by the content:
    /// application/cloudevents+json for a CloudEvent, application/cloudevents-batch+json for an array of
    /// them, application/json for everything else].
    #[arg(long, value_name = "TYPE")]
    pub content_type: Option<String>,
    /// One of the topic's publish keys [default: asked of the server with the admin key]. With it, --url is
    /// where to publish; only with --admin-key too, the server is asked where that is.
    #[arg(long, env = "POSTHASTE_PUBLISH_KEY", hide_env_values = true, allow_hyphen_values = true)]
    pub key: Option<String>,
    /// The admin key, to ask for the topic's endpoint and key [default, where no publish key is given: what
    /// <data-dir>/admin.key holds]. The variable counts only where no publish key is given.
    #[arg(long, env = "POSTHASTE_KEY", hide_env_values = true, allow_hyphen_values = true)]
    pub admin_key: Option<String>,
    /// Stand back behind the tier of the key: a bulk producer, such as an import, is the first to be refused
    /// under back pressure, an internal one the last. Nobody gets ahead by it.
    #[arg(long, value_enum)]
    pub tier: Option<Tier>,
    /// How long the events live from when they are accepted, such as PT10M [default: what the topic and its
    /// subscriptions say].
    #[arg(long, value_name = "DURATION", value_parser = length)]
    pub time_to_live: Option<Duration>,
    /// Options of a file that is published at a pace.
    #[command(flatten)]
    pub pace: PaceArgs,
}

impl PublishArgs {
    /// Forgets an admin key of the environment if a publish key is given. Then --url is the place to publish:
    /// it need not manage the topic, and must not get the key that manages.
    pub(super) fn forget_ambient_admin_key(&mut self, given: &ArgMatches) {
        let is_ambient = given.value_source("admin_key") == Some(ValueSource::EnvVariable);
        if is_ambient && self.key.as_ref().is_some_and(|key| !key.is_empty()) {
            self.admin_key = None;
        }
    }
}

/// Options of a file that is published at a pace. Without `rate` the others mean nothing, and are refused.
#[derive(Debug, Args)]
#[command(next_help_heading = AT_A_PACE)]
pub struct PaceArgs {
    /// Publish the events of the file in requests of many, as fast as the server takes them (auto) or at most
    /// at so many events per second, in both cases obeying its back pressure. What is not answered is sent
    /// again under the same name, so that it is published once; only what a server wrote by half before it
    /// failed may come twice.
    #[arg(long, value_name = "auto|N", value_parser = rate)]
    pub rate: Option<Rate>,
    /// Most events in one request. A request is sent when it is full, at the end of the file, or when a pipe
    /// has been silent for a second.
    #[arg(long, value_name = "N", default_value_t = 100, requires = "rate",
        value_parser = clap::value_parser!(u32).range(1..=CUSTOM_EVENTS_PER_REQUEST_MAX as i64))]
    pub batch: u32,
    /// Leave out the first N events: where an earlier run that did not end well says to go on.
    #[arg(long, value_name = "N", default_value_t = 0, requires = "rate")]
    pub from: u64,
    /// The name of that earlier run. What it published of the same file, with the same --batch and within a
    /// day, is not published again [default: a new name].
    #[arg(long, value_name = "NAME", requires = "rate", value_parser = run_name)]
    pub run: Option<String>,
    /// Give up when nothing was acknowledged for so long, such as PT15M; after 30 s already, where no server
    /// ever answered. The exit code is then 6 for back pressure and 7 for a server that did not answer.
    #[arg(long, value_name = "DURATION", default_value = "PT15M", requires = "rate", value_parser = length)]
    pub give_up_after: Duration,
}

/// The wanted pace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rate {
    /// As fast as the server takes it.
    Auto,
    /// At most so many events per second.
    PerSecond(NonZeroU32),
}

/// The tier that a producer declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
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

fn rate(text: &str) -> Result<Rate, ArgumentError> {
    match text {
        "auto" => Ok(Rate::Auto),
        number => number.parse().map(Rate::PerSecond).map_err(|_| ArgumentError::Rate),
    }
}

fn run_name(text: &str) -> Result<String, ArgumentError> {
    let is_name = text.len() <= RUN_BYTES_MAX && IdempotencyKey::parse(text.as_bytes()).is_ok();
    is_name.then(|| text.to_owned()).ok_or(ArgumentError::Run)
}

fn length(text: &str) -> Result<Duration, TimeError> {
    parse_duration(text)
}
