//! Many hosts with a subscription each and equal load, against one host that gets the same events.

use crate::arguments::Arguments;
use crate::goal::{Goal, Verdict};
use crate::rounds::{in_turns, ratio, spread};
use crate::setup::Mode;
use crate::sink::Sink;
use crate::table;
use crate::traffic::Traffic;
use crate::trial::{self, Measured};

const HEAD: [&str; 7] = [
    "requests of",
    "delivery log",
    "deliveries/s, one and many",
    "share",
    "from – to",
    "CPU of a delivery, one and many",
    "goal",
];

const GOAL: Goal = Goal::AtLeast(70.0, " %");

/// Events in a publish request.
const BATCHES: [usize; 2] = [1, 100];

/// A row, and whether the events go to many hosts.
type Case = (usize, Mode, bool);

/// Measures requests of one and of a hundred, and prints the table.
pub(crate) fn measure(arguments: &Arguments) -> Vec<Verdict> {
    let sink = Sink::start(arguments.endpoints);
    let urls: Vec<_> = (0..arguments.endpoints)
        .map(|host| format!("{}/s", sink.url_of(host)))
        .collect();
    let deliveries = arguments
        .deliveries
        .max(urls.len() * arguments.deliveries_per_endpoint);
    let modes = &arguments.delivery_log;
    let rows = || {
        BATCHES
            .into_iter()
            .flat_map(|batch| modes.iter().map(move |mode| (batch, *mode)))
    };
    let both = |(batch, mode)| [(batch, mode, false), (batch, mode, true)];
    let cases: Vec<(String, Case)> = rows().flat_map(both).map(named).collect();
    let runs = in_turns(arguments.rounds, &cases, |(batch, mode, is_many)| {
        let traffic = if *is_many {
            Traffic::spread_over(&urls, *batch)
        } else {
            Traffic::gathered(urls.len(), &urls[0], *batch)
        };
        trial::run(&sink, &traffic, deliveries, &arguments.setup(*mode))
    });
    let (rows, verdicts): (Vec<_>, Vec<_>) = rows()
        .zip(runs.chunks_exact(2))
        .map(|(it, runs)| row(it, &runs[0], &runs[1]))
        .unzip();
    table::print(
        &format!("{} endpoints on as many hosts", urls.len()),
        &HEAD,
        &rows,
    );
    verdicts
}

fn named((batch, mode, is_many): Case) -> (String, Case) {
    let hosts = if is_many { "many hosts" } else { "one host" };
    (
        format!("{hosts}, requests of {batch}, log {}", mode.name()),
        (batch, mode, is_many),
    )
}

fn row(
    (batch, mode): (usize, Mode),
    one: &[Measured],
    many: &[Measured],
) -> (Vec<String>, Verdict) {
    let share = ratio(many, one, |it| it.per_second).percent();
    let name = format!(
        "endpoints, requests of {batch}, log {}: rate of one",
        mode.name()
    );
    let verdict = GOAL.judge(name, share.median);
    let rate = |runs| spread(runs, |it: &Measured| it.per_second).median;
    let cpu = |runs| spread(runs, Measured::cpu_us).median;
    let cells = vec![
        batch.to_string(),
        mode.name().to_owned(),
        format!("{:.0}, {:.0}", rate(one), rate(many)),
        format!("{:.1} %", share.median),
        format!("{:.1} – {:.1}", share.least, share.most),
        format!("{:.1}, {:.1} us", cpu(one), cpu(many)),
        verdict.to_string(),
    ];
    (cells, verdict)
}
