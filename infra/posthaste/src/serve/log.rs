//! The log: JSON lines for machines, or readable ones for people, on standard error.

use std::io::{self, IsTerminal};

use posthaste_log::{JsonLines, Lossy, log_panics};
use posthaste_settings::LogFormat;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::JsonFields;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

/// Starts the log of this process, by a filter that the command line has checked, with panics in
/// it. A second start, in tests, changes nothing.
pub fn start(format: Option<LogFormat>, filter: &str) {
    let filter: Targets = filter.parse().unwrap_or_default();
    // Without a level of its own, the subscriber would look at every event of every target first.
    let max_level = Layer::<Registry>::max_level_hint(&filter).unwrap_or(LevelFilter::TRACE);
    let is_terminal = io::stderr().is_terminal();
    let format = format.unwrap_or(if is_terminal {
        LogFormat::Pretty
    } else {
        LogFormat::Json
    });
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(max_level)
        .with_writer(|| Lossy(io::stderr()))
        // Otherwise a line about a failed write to standard error would be written to standard
        // error, which panics.
        .log_internal_errors(false);
    let started = match format {
        LogFormat::Json => subscriber
            .fmt_fields(JsonFields::new())
            .event_format(JsonLines)
            .finish()
            .with(filter)
            .try_init(),
        LogFormat::Pretty => subscriber
            .with_ansi(is_terminal)
            .with_target(false)
            .finish()
            .with(filter)
            .try_init(),
    };
    // An error means that there is a log already.
    if started.is_ok() {
        log_panics();
    }
}
