//! A page of metrics as text, from the rows of the table: a metric has one header, and its samples
//! stand together.

use std::fmt::{self, Write};
use std::sync::Arc;

use bytes::Bytes;
use posthaste_core::model::metric::{METRICS, MetricKind, MetricRow};

use super::distribution::{BOUNDS, Times};
use super::form::Form;

/// Size after which a piece of the text is over, in bytes: a page is sent piece by piece.
const PIECE_BYTES: usize = 64 * 1024;

/// A sample of a page; a histogram is one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Line {
    /// The place of its metric in the table.
    pub(super) place: usize,
    /// Its labels, as they are written between the braces.
    pub(super) labels: Arc<str>,
    pub(super) value: Value,
}

/// The value of a sample, in the unit in which it is measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value {
    Count(u64),
    Number(f64),
    Times(Times),
}

/// Labels, as they are written between the braces.
pub(super) fn labels_text<'a>(labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> Arc<str> {
    let mut text = String::new();
    for (name, value) in labels {
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(name);
        text.push_str("=\"");
        for c in value.chars() {
            match c {
                '\\' | '"' => text.extend(['\\', c]),
                '\n' => text.push_str("\\n"),
                _ => text.push(c),
            }
        }
        text.push('"');
    }
    text.into()
}

/// Writes lines, which are sorted by the places of their metrics. Lines of metrics that are not
/// shown are left out.
pub(super) fn render(lines: &[Line], form: Form) -> Vec<Bytes> {
    let mut pieces = Pieces::default();
    let mut last = None;
    for line in lines {
        let metric = &METRICS[line.place];
        let Some(name) = metric.exposed else { continue };
        let text = &mut pieces.last;
        if last != Some(name) {
            let is_first = last.is_none();
            header(text, metric, name, (form, is_first));
        }
        last = Some(name);
        sample(text, metric, name, line);
        pieces.cut();
    }
    if form == Form::OpenMetrics {
        pieces.last.push_str("# EOF\n");
    }
    pieces.end()
}

/// Writes what stands before the samples of a metric.
fn header(text: &mut String, metric: &MetricRow, name: &str, (form, is_first): (Form, bool)) {
    let (family, unit) = match form {
        Form::Text => (name, None),
        // The name of the family is without the ending of its samples.
        Form::OpenMetrics => (
            name.trim_end_matches("_total"),
            metric.unit.base_unit_name(),
        ),
    };
    if form == Form::Text && !is_first {
        text.push('\n');
    }
    let kind = match metric.kind {
        MetricKind::Counter => "counter",
        MetricKind::Gauge => "gauge",
        MetricKind::Histogram => "histogram",
    };
    put(text, format_args!("# HELP {family} {}\n", metric.help));
    put(text, format_args!("# TYPE {family} {kind}\n"));
    if let Some(unit) = unit {
        put(text, format_args!("# UNIT {family} {unit}\n"));
    }
}

fn sample(text: &mut String, metric: &MetricRow, name: &str, line: &Line) {
    let labels = &*line.labels;
    let in_base_units = |value: f64| value / metric.unit.per_base_unit();
    let braces = if labels.is_empty() {
        ["", ""]
    } else {
        ["{", "}"]
    };
    let [open, close] = braces;
    match line.value {
        Value::Count(count) => put(text, format_args!("{name}{open}{labels}{close} {count}\n")),
        Value::Number(value) => {
            let value = in_base_units(value);
            put(text, format_args!("{name}{open}{labels}{close} {value}\n"));
        }
        Value::Times(times) => {
            let comma = if labels.is_empty() { "" } else { "," };
            let bounds = BOUNDS.iter().map(|(_, text)| *text).chain(["+Inf"]);
            let mut count = 0;
            for (bound, more) in bounds.zip(times.buckets) {
                count += more;
                let bucket =
                    format_args!("{name}_bucket{{{labels}{comma}le=\"{bound}\"}} {count}\n");
                put(text, bucket);
            }
            let sum = in_base_units(times.sum);
            put(
                text,
                format_args!("{name}_sum{open}{labels}{close} {sum}\n"),
            );
            put(
                text,
                format_args!("{name}_count{open}{labels}{close} {count}\n"),
            );
        }
    }
}

fn put(text: &mut String, arguments: fmt::Arguments<'_>) {
    // Writing into memory cannot fail.
    let _ = text.write_fmt(arguments);
}

/// A text in pieces.
#[derive(Default)]
struct Pieces {
    whole: Vec<Bytes>,
    last: String,
}

impl Pieces {
    /// Ends a piece that is large enough.
    fn cut(&mut self) {
        if self.last.len() >= PIECE_BYTES {
            self.whole.push(std::mem::take(&mut self.last).into());
        }
    }

    fn end(mut self) -> Vec<Bytes> {
        if !self.last.is_empty() {
            self.whole.push(self.last.into());
        }
        self.whole
    }
}

#[cfg(test)]
mod tests {
    use posthaste_core::model::metric;

    use super::*;

    fn line(place: usize, labels: &str, value: Value) -> Line {
        Line {
            place,
            labels: labels.into(),
            value,
        }
    }

    fn measured(name: &str) -> usize {
        metric::metric_index(name).unwrap()
    }

    fn some() -> Vec<Line> {
        let mut times = Times::default();
        times.buckets[1] = 2;
        times.buckets[14] = 1;
        times.sum = 70_000.5;
        let delivered = measured("DeliverySuccessCount");
        let failed = measured("DeliveryAttemptFailCount");
        let duration = measured("DestinationProcessingDurationInMs");
        let written = measured("LogWrittenBytes");
        let tarpit = measured("PressureTarpitInMs");
        vec![
            line(delivered, "outcome=\"delivered\"", Value::Count(7)),
            line(failed, "outcome=\"failed\"", Value::Count(2)),
            line(duration, "topic=\"a\"", Value::Times(times)),
            line(written, "", Value::Count(9)),
            // CloudWatch alone shows it.
            line(
                measured("OldestReturnedMessageInSeconds"),
                "",
                Value::Number(1.0),
            ),
            line(tarpit, "", Value::Number(1500.0)),
        ]
    }

    fn rendered(form: Form) -> String {
        String::from_utf8(render(&some(), form).concat()).unwrap()
    }

    /// The samples of both forms are the same. Each test names what differs.
    const DURATIONS: &str = r#"posthaste_endpoint_duration_seconds_bucket{topic="a",le="0.001"} 0
posthaste_endpoint_duration_seconds_bucket{topic="a",le="0.002"} 2
"#;

    #[test]
    fn text_has_one_header_for_a_metric_of_two_rows() {
        let text = rendered(Form::Text);
        assert!(
            text.starts_with(
                "# HELP posthaste_deliveries_total Events of attempts, by outcome: delivered, or failed. An \
                 event that fails twice counts twice.\n\
                 # TYPE posthaste_deliveries_total counter\n\
                 posthaste_deliveries_total{outcome=\"delivered\"} 7\n\
                 posthaste_deliveries_total{outcome=\"failed\"} 2\n\
                 \n\
                 # HELP posthaste_endpoint_duration_seconds Time"
            ),
            "{text}"
        );
        assert!(text.contains(DURATIONS), "{text}");
        assert!(
            text.contains(
                "{topic=\"a\",le=\"60.0\"} 2\n\
                 posthaste_endpoint_duration_seconds_bucket{topic=\"a\",le=\"+Inf\"} 3\n\
                 posthaste_endpoint_duration_seconds_sum{topic=\"a\"} 70.0005\n\
                 posthaste_endpoint_duration_seconds_count{topic=\"a\"} 3\n"
            ),
            "{text}"
        );
        assert!(
            text.ends_with(
                "# TYPE posthaste_pressure_tarpit_seconds gauge\nposthaste_pressure_tarpit_seconds 1.5\n"
            ),
            "{text}"
        );
        assert!(!text.contains("UNIT"), "{text}");
    }

    #[test]
    fn open_metrics_has_families_units_and_an_end() {
        let text = rendered(Form::OpenMetrics);
        for part in [
            "# TYPE posthaste_deliveries counter\nposthaste_deliveries_total{outcome=\"delivered\"} 7\n",
            "# TYPE posthaste_endpoint_duration_seconds histogram\n\
             # UNIT posthaste_endpoint_duration_seconds seconds\n",
            "# UNIT posthaste_log_written_bytes bytes\nposthaste_log_written_bytes_total 9\n",
            DURATIONS,
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(text.ends_with("\n# EOF\n"), "{text}");
        assert!(!text.contains("\n\n"), "{text}");
    }

    #[test]
    fn values_of_labels_are_escaped() {
        let labels = [("a", "q\"uote"), ("b", "back\\slash\nline"), ("c", "plain")];
        let text = r#"a="q\"uote",b="back\\slash\nline",c="plain""#;
        assert_eq!(&*labels_text(labels), text);
        assert_eq!(&*labels_text([]), "");
    }

    #[test]
    fn long_text_comes_in_pieces_that_end_with_lines() {
        let place = measured("PublishSuccessCount");
        let lines: Vec<_> = (0..10_000)
            .map(|n| line(place, &format!("topic=\"t{n}\""), Value::Count(1)))
            .collect();
        let pieces = render(&lines, Form::Text);
        assert!(pieces.len() > 1);
        assert!(
            pieces
                .iter()
                .all(|it| it.ends_with(b"\n") && it.len() < PIECE_BYTES + 200)
        );
        let whole = pieces.concat();
        let samples = whole.split(|byte| *byte == b'\n');
        assert_eq!(
            samples.filter(|it| it.starts_with(b"posthaste_")).count(),
            10_000
        );
    }

    #[test]
    fn nothing_is_an_empty_page() {
        assert_eq!(render(&[], Form::Text), Vec::<Bytes>::new());
        assert_eq!(render(&[], Form::OpenMetrics), ["# EOF\n"]);
    }
}
