//! The log: JSON lines for machines, or readable ones for people, on standard error. A thread of its
//! own writes them, so that nobody waits for a reader.

use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use posthaste_cli::terminal::{StandardStream, TerminalText, log_stream};
use posthaste_core::model::visible::visible_line;
use posthaste_log::{BackgroundLog, JsonLines, LossyWriter, log_panics};
use posthaste_ports::caught::is_caught;
use posthaste_settings::LogFormat;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::{DefaultFields, JsonFields, Writer};
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

/// Longest wait for the last lines to be read, at the end of the process.
const LAST_LINES_WAIT: Duration = Duration::from_secs(1);

/// The log of this process, once it has been started.
static LOG: OnceLock<BackgroundLog> = OnceLock::new();

/// Waits for the last lines to be written, for as long as anybody reads them.
pub fn flush() {
    if let Some(log) = LOG.get() {
        log.flush(LAST_LINES_WAIT);
    }
}

/// Says something on standard error behind all lines of the log, and without waiting for a reader
/// for ever.
pub fn print_line(shown: &TerminalText) {
    match LOG.get() {
        Some(log) => {
            log.write_line(shown.as_str());
            flush();
        }
        // With standard error closed, nobody reads it.
        None => drop(StandardStream::Error.write_line(shown)),
    }
}

/// Starts the log of this process, by a filter that the command line has checked, with panics in
/// it. A second start, in tests, changes nothing.
pub fn start(format: Option<LogFormat>, filter: &str) {
    let filter: Targets = filter.parse().unwrap_or_default();
    // Without a level of its own, the subscriber would look at every event of every target first.
    let max_level = Layer::<Registry>::max_level_hint(&filter).unwrap_or(LevelFilter::TRACE);
    let is_terminal = StandardStream::Error.is_terminal();
    let format = format.unwrap_or(if is_terminal {
        LogFormat::Pretty
    } else {
        LogFormat::Json
    });
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(max_level)
        .with_writer(line_writer())
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
            .fmt_fields(VisibleFields)
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
fn line_writer() -> BoxMakeWriter {
    match BackgroundLog::start(log_stream()) {
        Ok(log) => BoxMakeWriter::new(LOG.get_or_init(|| log).clone()),
        Err(_) => BoxMakeWriter::new(|| LossyWriter(log_stream())),
    }
}

/// The text and fields of a line for people, which strangers may have written. They steer no
/// terminal, and none looks like a line of its own.
struct VisibleFields;

impl<'writer> FormatFields<'writer> for VisibleFields {
    fn format_fields<R: RecordFields>(
        &self,
        mut writer: Writer<'writer>,
        fields: R,
    ) -> fmt::Result {
        let mut text = String::new();
        DefaultFields::new().format_fields(Writer::new(&mut text), fields)?;
        writer.write_str(&visible_line(&text))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn line_for_people_shows_what_strangers_hide() {
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber = tracing_subscriber::fmt()
            .fmt_fields(VisibleFields)
            .with_ansi(false)
            .without_time()
            .with_target(false)
            .with_writer(move || writer.clone())
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            tracing::warn_span!("s", of = %"\u{202e}x").in_scope(|| {
                tracing::warn!(id = %"a\u{202e}b\u{9b}2J", "c\u{2066}d\n INFO forged");
            });
        });
        let text = String::from_utf8(lines.0.lock().clone()).unwrap();
        let is_hidden = posthaste_core::model::visible::is_hidden;
        assert!(!text.contains(is_hidden), "{text:?}");
        assert_eq!(text.lines().count(), 1, "{text:?}");
        assert!(text.contains("c⟦U+2066⟧d⟦U+000A⟧ INFO forged"), "{text}");
        assert!(text.contains("id=a⟦U+202E⟧b"), "{text}");
    }
}
