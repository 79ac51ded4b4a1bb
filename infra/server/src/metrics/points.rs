//! The samples of a page as points for a collector, under the same names.

use std::str::Chars;

use posthaste_core::model::metric::METRICS;
use posthaste_otlp::{MetricDistribution, MetricPoint, PointValue};

use super::distribution::BOUNDS;
use super::exposition::{MetricLine, MetricValue};

/// The points of these lines. Lines of metrics that are not shown are left out.
pub(super) fn points_from_lines(lines: &[MetricLine]) -> Vec<MetricPoint> {
    lines.iter().filter_map(point_from_line).collect()
}

fn point_from_line(line: &MetricLine) -> Option<MetricPoint> {
    let metric = &METRICS[line.place];
    let per_base_unit = metric.unit.per_base_unit();
    let value = match line.value {
        MetricValue::Count(count) => PointValue::Count(count),
        MetricValue::Number(number) => PointValue::Number(number / per_base_unit),
        MetricValue::Times(times) => PointValue::Times(MetricDistribution {
            bounds: BOUNDS
                .iter()
                .map(|(bound, _)| bound / per_base_unit)
                .collect(),
            counts: times.buckets.to_vec(),
            sum: times.sum / per_base_unit,
        }),
    };
    Some(MetricPoint {
        name: metric.exposed?,
        help: metric.help,
        unit: metric.unit.ucum_unit(),
        labels: parse_labels(&line.labels),
        value,
    })
}

/// The labels of a text as `labels_text` writes it.
fn parse_labels(text: &str) -> Vec<(String, String)> {
    let mut chars = text.chars();
    let mut labels = Vec::new();
    loop {
        let name: String = chars.by_ref().take_while(|c| *c != '=').collect();
        let name = name.trim_start_matches(',').to_owned();
        // The quotation mark before the value.
        if chars.next().is_none() {
            return labels;
        }
        labels.push((name, parse_label_value(&mut chars)));
    }
}

/// The value up to its quotation mark.
fn parse_label_value(chars: &mut Chars<'_>) -> String {
    let mut value = String::new();
    while let Some(c) = chars.next() {
        match c {
            '"' => break,
            '\\' => match chars.next() {
                Some('n') => value.push('\n'),
                Some(escaped) => value.push(escaped),
                None => break,
            },
            _ => value.push(c),
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use posthaste_core::model::metric;

    use super::*;
    use crate::metrics::distribution::HistogramValue;
    use crate::metrics::exposition::labels_text;

    #[test]
    fn labels_are_read_as_they_were_written() {
        let check = |labels_written: &[(&str, &str)]| {
            let read = parse_labels(&labels_text(labels_written.iter().copied()));
            let read: Vec<_> = read
                .iter()
                .map(|(name, value)| (&**name, &**value))
                .collect();
            assert_eq!(read, labels_written);
        };
        check(&[]);
        check(&[("topic", "orders")]);
        check(&[("a", "q\"u,o=\"te"), ("b", "back\\slash\nline"), ("c", "")]);
    }

    #[test]
    fn point_is_in_base_units() {
        let mut times = HistogramValue::default();
        times.buckets[1] = 2;
        times.sum = 3.0;
        let line = MetricLine {
            place: metric::metric_index("DestinationProcessingDurationInMs").unwrap(),
            labels: "topic=\"a\"".into(),
            value: MetricValue::Times(times),
        };
        let [point] = &points_from_lines(&[line])[..] else {
            panic!("there is one")
        };
        assert_eq!(
            (point.name, point.unit),
            ("posthaste_endpoint_duration_seconds", "s")
        );
        let PointValue::Times(times) = &point.value else {
            panic!("{point:?}")
        };
        assert_eq!(
            (times.bounds[1], times.counts[1], times.sum),
            (0.002, 2, 0.003)
        );
        assert_eq!(times.counts.len(), times.bounds.len() + 1);
    }
}
