//! CPU and rate of each row, with and without the delivery log.

use crate::arguments::Arguments;
use crate::goal::{Goal, Verdict, joined};
use crate::raw::Raw;
use crate::rounds::{Runs, in_turns, ratio, spread};
use crate::setup::Mode;
use crate::shape::Shape;
use crate::sink::Sink;
use crate::table;
use crate::traffic::Traffic;
use crate::trial::{self, Measured};

const HEAD: [&str; 10] = [
    "row",
    "delivery log",
    "CPU of a delivery",
    "from – to",
    "deliveries/s",
    "of the bare client",
    "of log off",
    "resident",
    "log of a delivery",
    "goal",
];

/// The least rate with the delivery log against that without it.
const LOG_GOAL: Goal = Goal::AtLeast(75.0, " %");

/// A row with a mode, and its runs.
type Case = ((Shape, Mode), Runs<Measured>);

/// Measures each shape in each mode, and prints the table.
pub(crate) fn measure(
    sink: &Sink,
    arguments: &Arguments,
    shapes: &[Shape],
    modes: &[Mode],
    raw: Option<&Raw>,
) -> Vec<Verdict> {
    let pairs = || {
        shapes
            .iter()
            .flat_map(|shape| modes.iter().map(|mode| (*shape, *mode)))
    };
    let cases: Vec<_> = pairs()
        .map(|(shape, mode)| (name(shape, mode), (shape, mode)))
        .collect();
    let runs = in_turns(arguments.rounds, &cases, |(shape, mode)| {
        let traffic = Traffic::of_shape(*shape, &sink.url());
        trial::run(
            sink,
            &traffic,
            arguments.deliveries / shape.subscriptions(),
            &arguments.setup(*mode),
        )
    });
    let cases: Vec<Case> = pairs().zip(runs).collect();
    let (rows, verdicts): (Vec<_>, Vec<_>) =
        cases.iter().map(|case| row(case, &cases, raw)).unzip();
    let title = format!(
        "Load: {} deliveries, {} rounds",
        arguments.deliveries, arguments.rounds
    );
    table::print(&title, &HEAD, &rows);
    verdicts.into_iter().flatten().collect()
}

fn name(shape: Shape, mode: Mode) -> String {
    format!("{}, log {}", shape.name(), mode.name())
}

fn row(case: &Case, cases: &[Case], raw: Option<&Raw>) -> (Vec<String>, Vec<Verdict>) {
    let ((shape, mode), runs) = case;
    let cpu = spread(runs, Measured::cpu_us);
    let rate = spread(runs, |it| it.per_second).median;
    let off = cases
        .iter()
        .find(|(other, _)| *mode != Mode::Off && *other == (*shape, Mode::Off));
    let of_off = off.map(|(_, off)| ratio(runs, off, |it| it.per_second).percent().median);
    let verdicts = judge(*shape, *mode, cpu.median, of_off);
    let cells = vec![
        shape.name().to_owned(),
        mode.name().to_owned(),
        format!("{:.1} us", cpu.median),
        format!("{:.1} – {:.1}", cpu.least, cpu.most),
        format!("{rate:.0}"),
        percent(raw.map(|raw| rate / raw.per_second * 100.0)),
        percent(of_off),
        format!("{:.0} MiB", spread(runs, |it| it.resident_mib).median),
        format!("{:.0} B", spread(runs, |it| it.log_bytes).median),
        joined(&verdicts),
    ];
    (cells, verdicts)
}

/// Without the delivery log its CPU time has a goal, and with it its rate against that without it.
fn judge(shape: Shape, mode: Mode, cpu_us: f64, of_off: Option<f64>) -> Vec<Verdict> {
    let name = name(shape, mode);
    let cpu_us_max = shape.cpu_us_max().filter(|_| mode == Mode::Off);
    let cpu = cpu_us_max.map(|max| Goal::AtMost(max, " us").judge(format!("{name}: CPU"), cpu_us));
    let rate = of_off.map(|share| LOG_GOAL.judge(format!("{name}: rate of log off"), share));
    cpu.into_iter().chain(rate).collect()
}

fn percent(share: Option<f64>) -> String {
    share.map_or("-".to_owned(), |share| format!("{share:.1} %"))
}
