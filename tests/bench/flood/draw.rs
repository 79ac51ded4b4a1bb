//! From samples to a chart: what is drawn, and over which time.

use crate::chart::{Band, Chart, Panel, Series};
use crate::sample::Sample;

/// Over how many samples a rate is taken: two seconds.
const RATE_SAMPLES: usize = 4;

const BLUE: &str = "#1f6feb";
const GREEN: &str = "#1a7f37";
const ORANGE: &str = "#bc4c00";
const RED: &str = "#cf222e";
const GREY: &str = "#6e7781";
const MEDIUM: &str = "#fff3c4";
const HIGH: &str = "#ffd8d3";
const REFUSING: &str = "#e3d7f5";

/// Draws a run.
pub(crate) fn draw(samples: &[Sample]) -> String {
    let line = |label, colour, value: fn(&Sample) -> f64| Series {
        label,
        colour,
        points: samples
            .iter()
            .map(|sample| (sample.secs, value(sample)))
            .collect(),
    };
    let rate = |label, colour, count: fn(&Sample) -> u64| Series {
        label,
        colour,
        points: rates(samples, count),
    };
    let panels = vec![
        Panel {
            title: "messages of the flooded topic that wait",
            unit: "",
            series: vec![line("waiting", BLUE, |s| s.waiting)],
        },
        Panel {
            title: "its drain time",
            unit: " s",
            series: vec![line("drain time", ORANGE, |s| s.drain_secs)],
        },
        Panel {
            title: "its tarpit: how long an acknowledgement waits",
            unit: " s",
            series: vec![line("tarpit", RED, |s| s.tarpit_secs)],
        },
        Panel {
            title: "events a second",
            unit: "/s",
            series: vec![
                rate("delivered", GREY, |s| s.arrived),
                rate("accepted, usual producers", GREEN, |s| s.usual),
                rate("accepted, flood", BLUE, |s| s.flood),
                rate("accepted, quick topic", ORANGE, |s| s.quick),
                rate("refused", RED, |s| s.refused),
            ],
        },
        Panel {
            title: "the quick topic beside it: slowest acknowledgement",
            unit: " ms",
            series: vec![line("slowest", GREEN, |s| s.quick_ms)],
        },
        Panel {
            title: "resident memory",
            unit: " MiB",
            series: vec![line("resident", GREY, |s| s.resident_mib)],
        },
    ];
    let bands = vec![
        bands("level Medium", MEDIUM, samples, |s| {
            s.level == "medium" && !s.is_refusing
        }),
        bands("level High", HIGH, samples, |s| {
            s.level == "high" && !s.is_refusing
        }),
        bands("producers refused", REFUSING, samples, |s| s.is_refusing),
    ];
    Chart {
        panels,
        bands,
        end: samples.last().map_or(1.0, |last| last.secs),
    }
    .render()
}

/// The times in which something holds.
fn bands(
    label: &'static str,
    colour: &'static str,
    samples: &[Sample],
    holds: fn(&Sample) -> bool,
) -> Band {
    let mut times: Vec<(f64, f64)> = Vec::new();
    for pair in samples.windows(2) {
        let from = pair[0].secs;
        let to = pair[1].secs;
        match times.last_mut().filter(|last| last.1 >= from) {
            _ if !holds(&pair[0]) => {}
            Some(last) => last.1 = to,
            None => times.push((from, to)),
        }
    }
    Band {
        label,
        colour,
        times,
    }
}

fn rates(samples: &[Sample], count: fn(&Sample) -> u64) -> Vec<(f64, f64)> {
    let rate = |pair: &[Sample]| {
        let first = &pair[0];
        let last = &pair[pair.len() - 1];
        let events = count(last).saturating_sub(count(first)) as f64;
        (last.secs, events / (last.secs - first.secs))
    };
    samples.windows(RATE_SAMPLES + 1).map(rate).collect()
}
