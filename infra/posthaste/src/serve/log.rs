//! The log: JSON lines for machines, or readable ones for people, on standard error. A thread of its
//! own writes them, so that nobody waits for a reader.

use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;
use std::time::Duration;

use posthaste_log::{Background, JsonLines, Lossy, log_panics};
use posthaste_ports::caught::is_caught;
use posthaste_settings::LogFormat;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::JsonFields;
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

/// Longest wait for the last lines to be read, at the end of the process.
const LAST_LINES_WAIT: Duration = Duration::from_secs(1);

/// The log of this process, once it has been started.
static LOG: OnceLock<Background> = OnceLock::new();

/// Waits for the last lines to be written, for as long as anybody reads them.
pub fn flush() {
    if let Some(log) = LOG.get() {
        log.flush(LAST_LINES_WAIT);
    }
}

/// Says something on standard error behind all lines of the log, and without waiting for a reader
/// for ever.
pub fn say(text: &str) {
    match LOG.get() {
        Some(log) => {
            log.write_line(text);
            flush();
        }
        // With standard error closed, nobody reads it.
        None => drop(writeln!(io::stderr(), "{text}")),
    }
}

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
        .with_writer(writer())
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
        log_panics(is_caught);
    }
}

/// The writer of lines. Where there is no thread for it, each line is written by who logs it.
fn writer() -> BoxMakeWriter {
    match Background::start(io::stderr()) {
        Ok(log) => BoxMakeWriter::new(LOG.get_or_init(|| log).clone()),
        Err(_) => BoxMakeWriter::new(|| Lossy(io::stderr())),
    }
}
