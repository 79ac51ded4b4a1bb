//! A page of metrics as text, from the rows of the table: a metric has one header, and its samples
//! stand together.

use std::fmt::{self, Write};
use std::sync::Arc;

use bytes::Bytes;
use posthaste_core::model::metric::{METRICS, MetricKind, MetricRow};

use super::distribution::{BOUNDS, HistogramValue};
use super::form::PageFormat;

/// Size after which a piece of the text is over, in bytes: a page is sent piece by piece.
const PIECE_BYTES: usize = 64 * 1024;

/// A sample of a page; a histogram is one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MetricLine {
    /// The place of its metric in the table.
    pub(super) place: usize,
    /// The labels of the sample, as they are written between the braces.
    pub(super) labels: Arc<str>,
    pub(super) value: MetricValue,
}

/// The value of a sample, in the unit in which it is measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum MetricValue {
    Count(u64),
    Number(f64),
    Times(HistogramValue),
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
pub(super) fn render(lines: &[MetricLine], form: PageFormat) -> Vec<Bytes> {
    let mut pieces = TextPieces::default();
    let mut last = None;
    for line in lines {
        let metric = &METRICS[line.place];
        let Some(name) = metric.exposed else { continue };
        let text = &mut pieces.last;
        if last != Some(name) {
            let is_first = last.is_none();
            write_header(text, metric, name, form, is_first);
        }
        last = Some(name);
        write_sample(text, metric, name, line);
        pieces.end_full_piece();
    }
    if form == PageFormat::OpenMetrics {
        pieces.last.push_str("# EOF\n");
    }
    pieces.into_pieces()
}

/// Writes what stands before the samples of a metric.
fn write_header(
    text: &mut String,
    metric: &MetricRow,
    name: &str,
    form: PageFormat,
    is_first: bool,
) {
    let (family, unit) = match form {
        PageFormat::Text => (name, None),
        // The name of the family is without the ending of its samples.
        PageFormat::OpenMetrics => (
            name.trim_end_matches("_total"),
            metric.unit.base_unit_name(),
        ),
    };
    if form == PageFormat::Text && !is_first {
        text.push('\n');
    }
    let kind = match metric.kind {
        MetricKind::Counter => "counter",
        MetricKind::Gauge => "gauge",
        MetricKind::Histogram => "histogram",
    };
    write_args(text, format_args!("# HELP {family} {}\n", metric.help));
    write_args(text, format_args!("# TYPE {family} {kind}\n"));
    if let Some(unit) = unit {
        write_args(text, format_args!("# UNIT {family} {unit}\n"));
    }
}

fn write_sample(text: &mut String, metric: &MetricRow, name: &str, line: &MetricLine) {
    let labels = &*line.labels;
    let braces = if labels.is_empty() {
        ["", ""]
    } else {
        ["{", "}"]
    };
    let [open, close] = braces;
    match line.value {
        MetricValue::Count(count) => {
            write_args(text, format_args!("{name}{open}{labels}{close} {count}\n"));
        }
        MetricValue::Number(value) => {
            let value = value / metric.unit.per_base_unit();
            write_args(text, format_args!("{name}{open}{labels}{close} {value}\n"));
        }
        MetricValue::Times(times) => {
            let comma = if labels.is_empty() { "" } else { "," };
            let bounds = BOUNDS.iter().map(|(_, text)| *text).chain(["+Inf"]);
            let mut count = 0;
            for (bound, more) in bounds.zip(times.buckets) {
                count += more;
                let bucket =
                    format_args!("{name}_bucket{{{labels}{comma}le=\"{bound}\"}} {count}\n");
                write_args(text, bucket);
            }
            let sum = times.sum / metric.unit.per_base_unit();
            write_args(
                text,
                format_args!("{name}_sum{open}{labels}{close} {sum}\n"),
            );
            write_args(
                text,
                format_args!("{name}_count{open}{labels}{close} {count}\n"),
            );
        }
    }
}

fn write_args(text: &mut String, arguments: fmt::Arguments<'_>) {
    // Writing into memory cannot fail.
    let _ = text.write_fmt(arguments);
}

/// A text in pieces.
#[derive(Default)]
struct TextPieces {
    whole: Vec<Bytes>,
    last: String,
}

impl TextPieces {
    /// Ends a piece that is large enough.
    fn end_full_piece(&mut self) {
        if self.last.len() >= PIECE_BYTES {
            self.whole.push(std::mem::take(&mut self.last).into());
        }
    }

    fn into_pieces(mut self) -> Vec<Bytes> {
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

    fn line(place: usize, labels: &str, value: MetricValue) -> MetricLine {
        MetricLine {
            place,
            labels: labels.into(),
            value,
        }
    }

    fn measured(name: &str) -> usize {
        metric::metric_index(name).unwrap()
    }

    fn some() -> Vec<MetricLine> {
        let mut times = HistogramValue::default();
        times.buckets[1] = 2;
        times.buckets[14] = 1;
        times.sum = 70_000.5;
        let delivered = measured("DeliverySuccessCount");
        let failed = measured("DeliveryAttemptFailCount");
        let duration = measured("DestinationProcessingDurationInMs");
        let written = measured("LogWrittenBytes");
        let tarpit = measured("PressureTarpitInMs");
        vec![
            line(delivered, "outcome=\"delivered\"", MetricValue::Count(7)),
            line(failed, "outcome=\"failed\"", MetricValue::Count(2)),
            line(duration, "topic=\"a\"", MetricValue::Times(times)),
            line(written, "", MetricValue::Count(9)),
            // CloudWatch alone shows it.
            line(
                measured("OldestReturnedMessageInSeconds"),
                "",
                MetricValue::Number(1.0),
            ),
            line(tarpit, "", MetricValue::Number(1500.0)),
        ]
    }

    fn rendered(form: PageFormat) -> String {
        String::from_utf8(render(&some(), form).concat()).unwrap()
    }

    /// The samples of both forms are the same. Each test names what differs.
    const DURATIONS: &str = r#"posthaste_endpoint_duration_seconds_bucket{topic="a",le="0.001"} 0
posthaste_endpoint_duration_seconds_bucket{topic="a",le="0.002"} 2
"#;

    #[test]
    fn text_has_one_header_for_a_metric_of_two_rows() {
        let text = rendered(PageFormat::Text);
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
        let text = rendered(PageFormat::OpenMetrics);
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
            .map(|n| line(place, &format!("topic=\"t{n}\""), MetricValue::Count(1)))
            .collect();
        let pieces = render(&lines, PageFormat::Text);
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
    fn page_without_metrics_is_empty() {
        assert_eq!(render(&[], PageFormat::Text), Vec::<Bytes>::new());
        assert_eq!(render(&[], PageFormat::OpenMetrics), ["# EOF\n"]);
    }
}
