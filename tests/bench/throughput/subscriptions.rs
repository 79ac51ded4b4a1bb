//! Subscriptions of one topic, of which one gets the events. Requests of one event.

use crate::arguments::Arguments;
use crate::goal::{Goal, Verdict};
use crate::rounds::{in_turns, spread};
use crate::setup::Mode;
use crate::sink::Sink;
use crate::table;
use crate::traffic::Traffic;
use crate::trial::{self, Measured};

const HEAD: [&str; 6] = [
    "subscriptions",
    "delivery log",
    "CPU of a delivery",
    "from – to",
    "deliveries/s",
    "against the first",
];

/// The largest difference from the first row.
const FLAT_GOAL: Goal = Goal::AtMost(10.0, " %");

/// The goal of requests of one event.
const CPU_GOAL: Goal = Goal::AtMost(60.0, " us");

/// Measures each number of subscriptions in each mode, and prints the table.
pub(crate) fn measure(sink: &Sink, arguments: &Arguments) -> Vec<Verdict> {
    let counts = &arguments.subscriptions;
    let pairs = arguments
        .delivery_log
        .iter()
        .flat_map(|mode| counts.iter().map(|count| (*count, *mode)));
    let named = |(count, mode): (usize, Mode)| {
        (
            format!("{count} subscriptions, log {}", mode.name()),
            (count, mode),
        )
    };
    let cases: Vec<_> = pairs.map(named).collect();
    let runs = in_turns(arguments.rounds, &cases, |(count, mode)| {
        let traffic = Traffic::matching_one_of(*count, &sink.url());
        trial::run(
            sink,
            &traffic,
            arguments.deliveries,
            &arguments.setup(*mode),
        )
    });
    let figures: Vec<_> = runs
        .iter()
        .map(|runs| spread(runs, Measured::cpu_us))
        .collect();
    let against = |index: usize| {
        let first = figures[index - index % counts.len()].median;
        (figures[index].median / first - 1.0) * 100.0
    };
    let row = |(index, (_, (count, mode))): (usize, &(String, (usize, Mode)))| {
        let cpu = figures[index];
        vec![
            count.to_string(),
            mode.name().to_owned(),
            format!("{:.1} us", cpu.median),
            format!("{:.1} – {:.1}", cpu.least, cpu.most),
            format!("{:.0}", spread(&runs[index], |it| it.per_second).median),
            format!("{:+.1} %", against(index)),
        ]
    };
    let rows: Vec<_> = cases.iter().enumerate().map(row).collect();
    table::print(
        "Subscriptions of one topic, one of which matches",
        &HEAD,
        &rows,
    );
    let judge = |(number, mode): (usize, &Mode)| {
        let all = (0..counts.len()).map(|index| number * counts.len() + index);
        let most = |figure: &dyn Fn(usize) -> f64| all.clone().map(figure).fold(0.0, f64::max);
        let name = format!("subscriptions, log {}", mode.name());
        let flat = FLAT_GOAL.judge(
            format!("{name}: largest difference"),
            most(&|index| against(index).abs()),
        );
        let cpu = CPU_GOAL.judge(
            format!("{name}: most CPU"),
            most(&|index| figures[index].median),
        );
        std::iter::once(flat).chain(Some(cpu).filter(|_| *mode == Mode::Off))
    };
    arguments
        .delivery_log
        .iter()
        .enumerate()
        .flat_map(judge)
        .collect()
}
