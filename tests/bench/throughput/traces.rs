//! The rows with every event traced, and with one in ten, against none in the same rounds. The
//! delivery log is off. The sink is the collector too, so that its work is the machine's.

use crate::arguments::Arguments;
use crate::rounds::{in_turns, ratio, spread};
use crate::setup::{Mode, Setup};
use crate::shape::Shape;
use crate::sink::Sink;
use crate::table;
use crate::traffic::Traffic;
use crate::trial::{self, Measured};

/// The traced parts of the events: a name, and the ratio. None without a collector.
const WAYS: [(&str, Option<&str>); 3] = [
    ("nothing", None),
    ("one in ten", Some("0.1")),
    ("every event", Some("1")),
];

const HEAD: [&str; 6] = [
    "row",
    "traced",
    "CPU of a delivery",
    "deliveries/s",
    "of nothing traced",
    "spans lost, of a delivery",
];

/// Measures each shape in each way, and prints the table.
pub(crate) fn measure(sink: &Sink, arguments: &Arguments) {
    let ways = |shape: &Shape| WAYS.map(|way| (*shape, way));
    let named = |(shape, way): (Shape, (&'static str, Option<&'static str>))| {
        (
            format!("{}, {} traced", shape.name(), way.0),
            (shape, way.1),
        )
    };
    let cases: Vec<_> = arguments.shapes.iter().flat_map(ways).map(named).collect();
    let collector = sink.url();
    let runs = in_turns(arguments.rounds, &cases, |(shape, traced)| {
        let setup = Setup {
            traced: traced.map(|ratio| (&*collector, ratio)),
            ..arguments.setup(Mode::Off)
        };
        let events = arguments.deliveries / shape.subscriptions();
        trial::run(
            sink,
            &Traffic::of_shape(*shape, &sink.url()),
            events,
            &setup,
        )
    });
    let of_shapes = arguments.shapes.iter().zip(runs.chunks_exact(WAYS.len()));
    let rows = of_shapes.flat_map(|(shape, runs)| {
        let ways = WAYS.iter().zip(runs);
        ways.map(|(way, traced)| row(*shape, way.0, traced, &runs[0]))
    });
    let rows: Vec<_> = rows.collect();
    table::print("Traced, delivery log off", &HEAD, &rows);
}

fn row(shape: Shape, way: &str, traced: &[Measured], nothing: &[Measured]) -> Vec<String> {
    let rate = |it: &Measured| it.per_second;
    let lost = spread(traced, |it: &Measured| it.spans_lost / it.deliveries);
    vec![
        shape.name().to_owned(),
        way.to_owned(),
        format!("{:.1} us", spread(traced, Measured::cpu_us).median),
        format!("{:.0}", spread(traced, rate).median),
        format!("{:.1} %", ratio(traced, nothing, rate).percent().median),
        format!("{:.2}", lost.median),
    ]
}
