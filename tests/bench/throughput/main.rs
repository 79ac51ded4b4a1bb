//! Throughput, latency, memory and growth: the real program, durable and signing, between a
//! producer and a sink over real HTTP, and beside it the limit of this machine: a bare signed hyper
//! client against the same sink. Run by hand: `cargo bench -p posthaste-tests --bench throughput --
//! --help`.
//!
//! The sink is a process of its own: this program, started with `sink`.

#![expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "what is measured is shown to three digits"
)]

mod arguments;
mod backlog;
mod endpoints;
mod goal;
mod growth;
mod latency;
mod load;
mod log_files;
mod paced;
mod process;
mod producer;
mod raw;
mod rounds;
mod setup;
mod shape;
mod sink;
mod subscriptions;
#[path = "../flood/svg.rs"]
mod svg;
mod table;
mod tls;
mod traces;
mod traffic;
mod trial;
mod wire;

use clap::Parser;

use crate::arguments::{Arguments, Run};
use crate::raw::Raw;
use crate::setup::Mode;
use crate::shape::Shape;
use crate::sink::Sink;

/// The rows and modes of `log`.
const LOG_SHAPES: [Shape; 4] = [
    Shape::One,
    Shape::Hundred,
    Shape::OneForHundred,
    Shape::HundredForHundred,
];
const LOG_MODES: [Mode; 3] = [Mode::Off, Mode::Attempts, Mode::Payloads];

fn main() {
    if let [role, hosts, ca_file] = std::env::args().skip(1).collect::<Vec<_>>().as_slice()
        && role == sink::ROLE
    {
        return sink::serve(hosts.parse().expect("a number of hosts"), ca_file.as_ref());
    }
    let arguments = Arguments::parse();
    let wanted = |run| arguments.run.contains(&run);
    let sink = Sink::start(1);
    let raw = wanted(Run::Raw)
        .then(|| Raw::measure(&sink, arguments.deliveries, arguments.raw_connections));
    let mut verdicts = Vec::new();
    if wanted(Run::Load) {
        let shapes = &arguments.shapes;
        let modes = &arguments.delivery_log;
        verdicts.extend(load::measure(
            &sink,
            &arguments,
            shapes,
            modes,
            raw.as_ref(),
        ));
    }
    if wanted(Run::Log) {
        // The goals are those of `load`.
        load::measure(&sink, &arguments, &LOG_SHAPES, &LOG_MODES, raw.as_ref());
    }
    if wanted(Run::Tls) {
        verdicts.extend(tls::measure(&sink, &arguments));
    }
    if wanted(Run::Traces) {
        traces::measure(&sink, &arguments);
    }
    if wanted(Run::Latency) {
        verdicts.extend(latency::measure(&sink, &arguments));
    }
    if wanted(Run::Endpoints) {
        verdicts.extend(endpoints::measure(&arguments));
    }
    if wanted(Run::Subscriptions) {
        verdicts.extend(subscriptions::measure(&sink, &arguments));
    }
    if wanted(Run::Backlog) {
        verdicts.extend(backlog::measure(&sink, &arguments));
    }
    if wanted(Run::Growth) {
        verdicts.extend(growth::measure(&sink, &arguments));
    }
    table::print_goals(&verdicts);
}
