//! The cost of the delivery log: the same load with the log off, with attempts, and with payloads. The modes
//! take turns, so that a busy minute of the machine is shared by all.

use crate::load::{Measured, Shape};

/// The head of the table.
pub(crate) const HEADER: &str = "subscriptions  events/request  log       deliveries/s  us CPU/delivery  \
    more CPU  resident MiB  log bytes/delivery";

const MODES: [&str; 3] = ["off", "attempts", "payloads"];

/// Measures each shape in each mode, in so many rounds, and answers the rows of the table: the medians.
pub(crate) fn measure(
    deliveries: usize,
    rounds: usize,
    measure: impl Fn(Shape, &'static str) -> Measured,
) -> impl Iterator<Item = String> {
    [(1, 1), (1, 100), (100, 1), (100, 100)].into_iter().flat_map(move |(subscriptions, batch)| {
        let shape = Shape { subscriptions, batch, deliveries };
        let mut runs: [Vec<Measured>; 3] = Default::default();
        for round in 0..rounds {
            for turn in 0..MODES.len() {
                let mode = (round + turn) % MODES.len();
                runs[mode].push(measure(shape, MODES[mode]));
            }
        }
        let off = median(&runs[0], |run| run.cpu_us);
        let row = move |(mode, runs): (&str, Vec<Measured>)| row(shape, mode, &runs, off);
        MODES.into_iter().zip(runs).map(row).collect::<Vec<_>>()
    })
}

fn row(Shape { subscriptions, batch, .. }: Shape, mode: &str, runs: &[Measured], off: f64) -> String {
    let cpu = median(runs, |run| run.cpu_us);
    format!(
        "{subscriptions:>13}  {batch:>14}  {mode:<8}  {:>12.0}  {cpu:>15.1}  {:>6.1} %  {:>12.0}  {:>18.0}",
        median(runs, |run| run.per_second),
        (cpu / off - 1.0) * 100.0,
        median(runs, |run| run.resident_mib),
        median(runs, |run| run.log_bytes),
    )
}

fn median(runs: &[Measured], value: impl Fn(&Measured) -> f64) -> f64 {
    let mut values: Vec<_> = runs.iter().map(value).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
