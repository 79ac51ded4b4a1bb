//! The log: one JSON object a line, on standard output, where Lambda picks it up.

use std::io;

use posthaste_log::{JsonLines, LossyWriter, log_panics};
use posthaste_ports::caught::is_caught;
use tracing::Metadata;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::JsonFields;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// The prefix of our crates' names; programs are named after their functions and log through these
/// crates.
const OURS: &str = "posthaste";

/// The least important level that libraries may log. Below it, the runtime writes whole events,
/// with the keys that producers send, and the SDK writes signed requests.
const LIBRARIES: LevelFilter = LevelFilter::INFO;

/// Starts the log of this process, with panics in it. A second start, in tests, changes nothing.
#[expect(
    clippy::disallowed_methods,
    reason = "Lambda reads the log there, in which hidden characters are escaped"
)]
pub(super) fn start(level: LevelFilter) {
    // An error means that there is a log already.
    if log_subscriber(level, || LossyWriter(io::stdout()))
        .try_init()
        .is_ok()
    {
        log_panics(is_caught);
    }
}

fn log_subscriber<W>(level: LevelFilter, writer: W) -> impl SubscriberInitExt + tracing::Subscriber
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let lines = tracing_subscriber::fmt()
        // A line that could not be written would be reported on standard error, which panics where
        // that is closed.
        .log_internal_errors(false)
        // The span is the runtime's, around an invocation: it brings the request id into every
        // line.
        .fmt_fields(JsonFields::new())
        .event_format(JsonLines)
        .with_max_level(level)
        .with_writer(writer);
    lines.finish().with(filter_fn(may_be_logged))
}

fn may_be_logged(line: &Metadata<'_>) -> bool {
    line.target().starts_with(OURS) || *line.level() <= LIBRARIES
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;
    use serde_json::Value;

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The lines that are logged at `level` while `work` runs.
    fn logged(level: LevelFilter, work: impl FnOnce()) -> Vec<Value> {
        let lines = Lines::default();
        let writer = lines.clone();
        tracing::subscriber::with_default(log_subscriber(level, move || writer.clone()), work);
        let bytes = lines.0.lock();
        bytes
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(parse)
            .collect()
    }

    fn parse(line: &[u8]) -> Value {
        serde_json::from_slice(line).unwrap()
    }

    #[test]
    fn a_line_is_flat_json_with_the_request_s_id() {
        let lines = logged(LevelFilter::INFO, || {
            tracing::info_span!(target: "lambda_runtime", "Lambda runtime invoke", requestId = "r-1")
                .in_scope(|| {
                    tracing::info!(
                        target: "posthaste_deliver",
                        events = 2,
                        topic = %"orders",
                        "delivered",
                    );
                });
        });
        let [line] = &lines[..] else {
            panic!("{lines:?}")
        };
        assert_eq!(line["message"], "delivered");
        assert_eq!(
            (&line["events"], &line["topic"]),
            (&2.into(), &"orders".into())
        );
        assert_eq!(
            (&line["level"], &line["target"]),
            (&"INFO".into(), &"posthaste_deliver".into())
        );
        assert_eq!(line["span"]["requestId"], "r-1");
        assert!(line["timestamp"].is_string());
    }

    #[test]
    fn the_level_is_ours_and_libraries_never_say_more_than_info() {
        let speak = || {
            tracing::trace!(target: "posthaste_core", "ours");
            tracing::trace!(
                target: "lambda_runtime::layers::api_response",
                body = "aeg-sas-key",
                "raw JSON event",
            );
            tracing::debug!(target: "aws_smithy_runtime", "signed request");
            tracing::info!(target: "hyper", "library");
        };
        let targets = |level| {
            logged(level, speak)
                .iter()
                .map(|line| line["target"].to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            targets(LevelFilter::TRACE),
            [r#""posthaste_core""#, r#""hyper""#]
        );
        assert_eq!(targets(LevelFilter::INFO), [r#""hyper""#]);
        assert_eq!(targets(LevelFilter::WARN), [""; 0]);
    }
}
