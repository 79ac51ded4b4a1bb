#![doc = include_str!("../README.md")]

mod background;
mod lossy;

use std::error::Error;
use std::fmt;

use posthaste_core::model::visible::escaped_json;
use posthaste_core::model::with_causes;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::{JsonFields, Writer};
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

pub use background::{BackgroundLog, LineWriter};
pub use lossy::LossyWriter;

/// Names of members that the writer itself gives to a line. The workspace's fields have other
/// names, which `tests/reserved.rs` checks. A library's field with one of these names gets an
/// underscore behind it.
pub const RESERVED: [&str; 5] = ["timestamp", "level", TEXT, "target", "span"];

/// The member for the text of a line, which `tracing` treats as a field.
const TEXT: &str = "message";

/// The format of a line. Characters that are invisible, or that steer a terminal, are escaped.
/// [`JsonFields`] must keep the fields of spans; those of the innermost are the member `span`.
#[derive(Debug, Clone, Copy, Default)]
pub struct JsonLines;

impl<S> FormatEvent<S, JsonFields> for JsonLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, JsonFields>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut time = String::new();
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        let mut line = LogLine(Map::new());
        line.put_member("timestamp", time);
        line.put_member("level", event.metadata().level().as_str());
        event.record(&mut line);
        line.put_member("target", event.metadata().target());
        if let Some(span) = context.lookup_current() {
            let extensions = span.extensions();
            let fields = extensions.get::<FormattedFields<JsonFields>>();
            line.put_member(
                "span",
                fields.map_or(Value::Null, |fields| span_fields(&fields.fields)),
            );
        }
        let line = Value::Object(line.0).to_string();
        writeln!(writer, "{}", escaped_json(&line))
    }
}

/// The fields of a span as [`JsonFields`] kept them: an object, or plain text if they are none.
fn span_fields(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

/// The members of a line.
struct LogLine(Map<String, Value>);

impl LogLine {
    fn put_member(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    fn put_field(&mut self, field: &Field, value: impl Into<Value>) {
        match field.name() {
            name if name != TEXT && RESERVED.contains(&name) => {
                self.put_member(&format!("{name}_"), value);
            }
            name => self.put_member(name, value),
        }
    }
}

impl Visit for LogLine {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put_field(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put_field(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put_field(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put_field(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put_field(field, value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.put_field(field, with_causes(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put_field(field, format!("{value:?}"));
    }
}

/// Writes panics to the log from now on, instead of as text that no reader of JSON lines
/// understands. One that `is_caught` and becomes an error, which is logged, is no fault of the
/// program: where it happened is for those who look closely.
pub fn log_panics(is_caught: fn() -> bool) {
    std::panic::set_hook(Box::new(move |panic| {
        let location = panic.location().map(ToString::to_string);
        let said = panic
            .payload_as_str()
            .unwrap_or("something that is not text");
        if is_caught() {
            tracing::debug!(
                location,
                "what a damaged file did to its reader was caught: {said}"
            );
        } else {
            tracing::error!(location, "panicked: {said}");
        }
    }));
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The one line that is logged while `work` runs.
    fn logged(work: impl FnOnce()) -> Value {
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber = tracing_subscriber::fmt()
            .fmt_fields(JsonFields::new())
            .event_format(JsonLines)
            .with_writer(move || writer.clone())
            .finish();
        tracing::subscriber::with_default(subscriber, work);
        let bytes = lines.0.lock().unwrap();
        assert!(bytes.ends_with(b"\n"));
        serde_json::from_slice(&bytes).unwrap()
    }

    #[derive(Debug)]
    struct Caused(&'static str, Option<Box<Caused>>);

    impl fmt::Display for Caused {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Caused {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|cause| cause as _)
        }
    }

    #[test]
    fn an_error_is_written_with_all_its_causes() {
        let error = Caused(
            "failed to write",
            Some(Box::new(Caused(
                "failed to send",
                Some(Box::new(Caused("denied", None))),
            ))),
        );
        let line = logged(|| tracing::error!(error = &error as &dyn Error, "not published"));
        assert_eq!(line["error"], "failed to write: failed to send: denied");
        assert_eq!(
            (&line["message"], &line["level"]),
            (&"not published".into(), &"ERROR".into())
        );
        assert_eq!(line["target"], "posthaste_log::tests");
        assert!(line["timestamp"].as_str().unwrap().ends_with('Z'));
    }

    #[test]
    fn line_has_no_hidden_characters_and_the_same_values() {
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber = tracing_subscriber::fmt()
            .fmt_fields(JsonFields::new())
            .event_format(JsonLines)
            .with_writer(move || writer.clone())
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(id = "a\u{202e}\u{7f}", "b\u{9b}2J\u{2028}");
        });
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        let is_hidden = posthaste_core::model::visible::is_hidden;
        assert!(!text.contains(is_hidden), "{text:?}");
        let line: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (&line["id"], &line["message"]),
            (&"a\u{202e}\u{7f}".into(), &"b\u{9b}2J\u{2028}".into())
        );
    }

    #[test]
    fn every_kind_of_field_is_its_own_kind_of_json() {
        let line = logged(|| {
            tracing::info!(
                n = -1,
                m = u64::MAX,
                x = 0.5,
                ok = true,
                s = "\"\n",
                d = ?Some(1),
                t = %"v",
                "a"
            );
        });
        let expected = serde_json::json!({
            "n": -1, "m": u64::MAX, "x": 0.5, "ok": true, "s": "\"\n", "d": "Some(1)", "t": "v",
        });
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(&line[name], value, "{name}");
        }
        assert_eq!(line["span"], Value::Null);
    }

    #[test]
    fn a_field_never_takes_the_place_of_a_member_of_the_writers_own() {
        let line = logged(|| {
            tracing::warn!(
                target = "https://a.example:443",
                level = 7,
                span = "s",
                timestamp = 0,
                "link down"
            );
        });
        assert_eq!(line["target"], "posthaste_log::tests");
        assert_eq!(
            (&line["level"], &line["message"]),
            (&"WARN".into(), &"link down".into())
        );
        assert!(line["timestamp"].is_string() && line["span"].is_null());
        assert_eq!(line["target_"], "https://a.example:443");
        assert_eq!(
            (&line["level_"], &line["span_"], &line["timestamp_"]),
            (&7.into(), &"s".into(), &0.into())
        );
    }

    #[test]
    fn the_innermost_span_s_fields_are_in_every_line() {
        let line = logged(|| {
            let outer = tracing::info_span!("outer", id = "o");
            outer.in_scope(|| {
                tracing::info_span!("inner", id = "i").in_scope(|| tracing::info!("a"));
            });
        });
        assert_eq!(line["span"]["id"], "i");
    }
}
