//! Throughput, latency and cost: the real program, durable and signing, between a producer and a sink
//! over real HTTP, and beside it the limit of this machine: a bare signed hyper client against the
//! same sink. Run by hand: `cargo bench -p posthaste-tests --bench throughput -- --help`.
//!
//! The sink is a process of its own: this program, started with `sink`.

#![expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "what is measured is shown to three digits"
)]

mod backlog;
mod latency;
mod load;
mod log;
mod process;
mod producer;
mod raw;
mod sink;
mod wire;

use clap::{Parser, ValueEnum};

use crate::sink::Sink;

/// Measures posthaste. An optimised build of it is made first, or taken from `POSTHASTE_BIN`.
#[derive(Debug, Parser)]
struct Arguments {
    /// What to run.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Run::Raw, Run::Load, Run::Latency])]
    run: Vec<Run>,
    /// Deliveries in each throughput run.
    #[arg(long, default_value_t = 100_000)]
    deliveries: usize,
    /// Connections of the producer.
    #[arg(long, default_value_t = 32)]
    producers: usize,
    /// Connections of the bare client.
    #[arg(long, default_value_t = 32)]
    raw_connections: usize,
    /// Events in the latency run, published at 100/s.
    #[arg(long, default_value_t = 1_000)]
    latency_events: usize,
    /// Events in the backlog run.
    #[arg(long, default_value_t = 1_000_000)]
    backlog_events: usize,
    /// Events in each publish request of the backlog run. With 1 every event is a message of its own in the
    /// queue, which takes the most memory.
    #[arg(long, default_value_t = 1)]
    backlog_batch: usize,
    /// Rounds of the delivery log's run: each measures all modes in each shape.
    #[arg(long, default_value_t = 5)]
    log_rounds: usize,
    /// What the delivery log keeps in the throughput runs.
    #[arg(long, default_value = "payloads")]
    delivery_log: String,
    /// The pressure profile of the throughput and latency runs. The backlog always runs with `off`.
    #[arg(long, default_value = "off")]
    pressure_profile: String,
    /// `cargo bench` says this.
    #[arg(long, hide = true)]
    bench: bool,
}

impl Arguments {
    fn setup<'a>(&'a self, delivery_log: &'a str) -> load::Setup<'a> {
        load::Setup { connections: self.producers, profile: &self.pressure_profile, delivery_log }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Run {
    /// The bare signed hyper client against the sink.
    Raw,
    /// Throughput: requests of 1 and of 100 events, 1 and 100 subscriptions.
    Load,
    /// Throughput and cost with the delivery log off, with attempts, and with payloads.
    Log,
    /// From publish to arrival at 100 events per second.
    Latency,
    /// A million events for an endpoint that is down.
    Backlog,
}

#[expect(clippy::print_stdout, reason = "a bench prints what it measured")]
fn main() {
    if std::env::args().nth(1).as_deref() == Some(sink::ROLE) {
        return sink::serve();
    }
    let arguments = Arguments::parse();
    let wanted = |run| arguments.run.contains(&run);
    let sink = Sink::start();
    let raw = wanted(Run::Raw).then(|| raw::measure(&sink, arguments.deliveries, arguments.raw_connections));
    if let Some(raw) = &raw {
        println!(
            "bare signed hyper client -> sink, {} connections: {:.0}/s, {:.1} us of CPU each",
            arguments.raw_connections, raw.per_second, raw.cpu_us
        );
    }
    if wanted(Run::Load) {
        println!(
            "\npressure profile {}; {} deliveries each",
            arguments.pressure_profile, arguments.deliveries
        );
        println!("{}", load::HEADER);
        for (subscriptions, batch) in [(1, 1), (1, 100), (100, 1), (100, 100)] {
            let shape = load::Shape { subscriptions, batch, deliveries: arguments.deliveries };
            let result = load::measure(&sink, shape, arguments.setup(&arguments.delivery_log));
            println!("{}", result.row(raw.as_ref().map(|raw| raw.per_second)));
        }
    }
    if wanted(Run::Log) {
        println!(
            "\n{} rounds, {} deliveries each\n{}",
            arguments.log_rounds,
            arguments.deliveries,
            log::HEADER
        );
        let measure = |shape, mode| load::measure(&sink, shape, arguments.setup(mode));
        for row in log::measure(arguments.deliveries, arguments.log_rounds, measure) {
            println!("{row}");
        }
    }
    if wanted(Run::Latency) {
        println!("\n{}", latency::measure(&sink, arguments.latency_events, &arguments.pressure_profile));
    }
    if wanted(Run::Backlog) {
        let (events, batch) = (arguments.backlog_events, arguments.backlog_batch);
        println!("\n{}", backlog::measure(events, batch, arguments.producers));
    }
}
