//! The numbers of a run.

use std::time::Duration;

use posthaste_tests::server::Server;

use crate::load::Load;
use crate::sample::Sample;

/// The part of the beginning and of the end that is compared.
const COMPARED: Duration = Duration::from_secs(15);

#[expect(clippy::print_stdout, reason = "a bench prints what it measured")]
pub(crate) fn print(samples: &[Sample], load: &Load, server: &Server) {
    let most = |value: fn(&Sample) -> f64| samples.iter().map(value).fold(0.0, f64::max);
    let usual = &load.usual;
    let flood = &load.flood;
    println!(
        "accepted {} of the usual producers and {} of the flood, all delivered; refused {} and {}",
        usual.accepted(),
        flood.accepted(),
        usual.refused(),
        flood.refused()
    );
    println!(
        "most waiting {:.0}, longest drain time {:.0} s, longest tarpit {:.0} s, most resident {:.0} MiB",
        most(|s| s.waiting),
        most(|s| s.drain_secs),
        most(|s| s.tarpit_secs),
        most(|s| s.resident_mib)
    );
    for (name, from) in [
        ("before", samples.first()),
        ("afterwards", samples.get(samples.len().saturating_sub(31))),
    ] {
        let Some(from) = from else { continue };
        let took = load.usual.took_ms(from.at, from.at + COMPARED);
        println!("{name}: the usual producers, {}", times(&took));
    }
    let whole_run = load.quick.took_ms(Duration::ZERO, Duration::MAX);
    println!(
        "the quick topic, all the time: refused {}, {}",
        load.quick.refused(),
        times(&whole_run)
    );
    changes(samples);
    let pressure = server
        .log()
        .into_iter()
        .filter(|line| line.contains("pressure"));
    pressure.for_each(|line| println!("{line}"));
}

/// Half and nearly all of these sorted times, and the longest.
fn times(took: &[f64]) -> String {
    let at = |share| took.get(rank(took.len(), share)).copied().unwrap_or(0.0);
    format!(
        "{} publishes, p50 {:.2} ms, p99 {:.2} ms, slowest {:.2} ms",
        took.len(),
        at(0.5),
        at(0.99),
        at(1.0)
    )
}

/// The times at which the pressure on producers changed.
#[expect(clippy::print_stdout, reason = "a bench prints what it measured")]
fn changes(samples: &[Sample]) {
    let met = |sample: &Sample| {
        (
            sample.level.clone(),
            sample.tarpit_secs.to_string(),
            sample.is_refusing,
        )
    };
    let mut last = None;
    for sample in samples {
        if last.as_ref() != Some(&met(sample)) {
            let refusing = if sample.is_refusing { ", refusing" } else { "" };
            let secs = sample.secs;
            let waiting = sample.waiting;
            let drain = sample.drain_secs;
            println!(
                "{secs:>6.1} s  {:<6} tarpit {:>2} s, {waiting:>6.0} waiting, drain {drain:>4.0} s{refusing}",
                sample.level, sample.tarpit_secs
            );
        }
        last = Some(met(sample));
    }
}

/// The index of a percentile in sorted values (nearest rank).
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a count"
)]
fn rank(count: usize, share: f64) -> usize {
    ((count as f64 * share).ceil() as usize).clamp(1, count.max(1)) - 1
}
