//! The rows over TLS to the endpoint, against plain HTTP in the same rounds. The delivery log is
//! off.

use crate::arguments::Arguments;
use crate::goal::{Goal, Verdict};
use crate::rounds::{in_turns, ratio, spread};
use crate::setup::Mode;
use crate::shape::Shape;
use crate::sink::Sink;
use crate::table;
use crate::traffic::Traffic;
use crate::trial::{self, Measured};

const HEAD: [&str; 7] = [
    "row",
    "CPU plain",
    "CPU over TLS",
    "ratio",
    "from – to",
    "deliveries/s, plain and TLS",
    "goal",
];

const GOAL: Goal = Goal::AtMost(1.4, " x");

/// Measures each shape both ways, and prints the table.
pub(crate) fn measure(sink: &Sink, arguments: &Arguments) -> Vec<Verdict> {
    let ways = |shape: &Shape| [("plain", *shape, false), ("TLS", *shape, true)];
    let named = |(way, shape, is_tls): (&str, Shape, bool)| {
        (format!("{}, {way}", shape.name()), (shape, is_tls))
    };
    let cases: Vec<_> = arguments.shapes.iter().flat_map(ways).map(named).collect();
    let (tls, ca_file) = sink.tls();
    let runs = in_turns(arguments.rounds, &cases, |(shape, is_tls)| {
        let url = if *is_tls { tls.clone() } else { sink.url() };
        let setup = arguments.setup_with_ca(Mode::Off, &ca_file);
        let events = arguments.deliveries / shape.subscriptions();
        trial::run(sink, &Traffic::of_shape(*shape, &url), events, &setup)
    });
    let rows = arguments.shapes.iter().zip(runs.chunks_exact(2));
    let (rows, verdicts): (Vec<_>, Vec<_>) = rows
        .map(|(shape, runs)| row(*shape, &runs[0], &runs[1]))
        .unzip();
    table::print("Over TLS to the endpoint, delivery log off", &HEAD, &rows);
    verdicts
}

fn row(shape: Shape, plain: &[Measured], tls: &[Measured]) -> (Vec<String>, Verdict) {
    let times = ratio(tls, plain, Measured::cpu_us);
    let verdict = GOAL.judge(format!("{} over TLS: CPU", shape.name()), times.median);
    let cpu = |runs| format!("{:.1} us", spread(runs, Measured::cpu_us).median);
    let rate = |runs| spread(runs, |it: &Measured| it.per_second).median;
    let cells = vec![
        shape.name().to_owned(),
        cpu(plain),
        cpu(tls),
        format!("{:.2}", times.median),
        format!("{:.2} – {:.2}", times.least, times.most),
        format!("{:.0}, {:.0}", rate(plain), rate(tls)),
        verdict.to_string(),
    ];
    (cells, verdict)
}
