//! The command line.

use std::path::{Path, PathBuf};

use clap::{Parser, ValueEnum};

use crate::growth::Dimension;
use crate::setup::{Mode, Setup};
use crate::shape::Shape;

/// Measures posthaste. An optimised build of it is made first, or taken from `POSTHASTE_BIN`.
#[derive(Debug, Parser)]
pub(crate) struct Arguments {
    /// What to run.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Run::ISSUE)]
    pub(crate) run: Vec<Run>,
    /// Rounds of each run: in each of them all its cases take turns. Medians are printed.
    #[arg(long, default_value_t = 3)]
    pub(crate) rounds: usize,
    /// Deliveries of each throughput case in a round; `endpoints` may have more.
    #[arg(long, default_value_t = 100_000)]
    pub(crate) deliveries: usize,
    /// Rows of `load`, `tls` and `traces`.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Shape::ISSUE)]
    pub(crate) shapes: Vec<Shape>,
    /// What the delivery log keeps in `load`, `latency`, `endpoints` and `subscriptions`.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Mode::Off, Mode::Default])]
    pub(crate) delivery_log: Vec<Mode>,
    /// Connections of the producer.
    #[arg(long, default_value_t = 64)]
    pub(crate) producers: usize,
    /// Connections of the bare client.
    #[arg(long, default_value_t = 32)]
    pub(crate) raw_connections: usize,
    /// Events a second in `latency`.
    #[arg(long, value_delimiter = ',', default_values_t = [100, 7_000])]
    pub(crate) latency_rates: Vec<u32>,
    /// Seconds of each rate.
    #[arg(long, default_value_t = 10)]
    pub(crate) latency_secs: u32,
    /// Most connections of the producer in `latency`. Each sends one event at a time, so that too
    /// few of them make the producer late.
    #[arg(long, default_value_t = 64)]
    pub(crate) latency_connections: usize,
    /// Hosts of `endpoints`, each of which has a subscription.
    #[arg(long, default_value_t = 1_000)]
    pub(crate) endpoints: usize,
    /// Least deliveries to each of them, so that opening connections is a small part of a run.
    #[arg(long, default_value_t = 200)]
    pub(crate) deliveries_per_endpoint: usize,
    /// Subscriptions in `subscriptions`, of which one matches: at most 500.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 100, 500])]
    pub(crate) subscriptions: Vec<usize>,
    /// Events that wait in `backlog`.
    #[arg(long, value_delimiter = ',', default_values_t = [1_000_000])]
    pub(crate) backlog_events: Vec<usize>,
    /// Events in each publish request of a backlog. With 1 every event is a message of its own in
    /// the queue, which takes the most memory.
    #[arg(long, default_value_t = 100)]
    pub(crate) backlog_batch: usize,
    /// What `growth` doubles.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Dimension::value_variants().to_vec())]
    pub(crate) dimensions: Vec<Dimension>,
    /// Rounds of `growth`.
    #[arg(long, default_value_t = 1)]
    pub(crate) growth_rounds: usize,
    /// Most events in `growth`. Where events are not what is doubled, there are an eighth of them.
    #[arg(long, default_value_t = 320_000)]
    pub(crate) growth_events: usize,
    /// Most events that wait in `growth`.
    #[arg(long, default_value_t = 1_000_000)]
    pub(crate) growth_backlog: usize,
    /// The folder for the charts of `growth`.
    #[arg(long)]
    pub(crate) charts: Option<PathBuf>,
    /// The pressure profile.
    #[arg(long, default_value = "off")]
    pub(crate) pressure_profile: String,
    /// `cargo bench` says this.
    #[arg(long, hide = true)]
    bench: bool,
}

/// A part of the bench.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Run {
    /// The bare signed hyper client against the sink.
    Raw,
    /// CPU and rate of each row.
    Load,
    /// The cost of the delivery log, with and without payloads.
    Log,
    /// The rows over TLS against plain HTTP.
    Tls,
    /// The rows with traces against none.
    Traces,
    /// From publish to arrival at a rate.
    Latency,
    /// Many hosts against one.
    Endpoints,
    /// Many subscriptions of which one matches.
    Subscriptions,
    /// Many events that wait: memory, restart, drain.
    Backlog,
    /// The exponents of costs.
    Growth,
}

impl Run {
    /// The runs of the issue's table.
    const ISSUE: [Self; 7] = [
        Self::Raw,
        Self::Load,
        Self::Tls,
        Self::Latency,
        Self::Endpoints,
        Self::Subscriptions,
        Self::Backlog,
    ];
}

impl Arguments {
    /// A server over plain HTTP.
    pub(crate) fn setup(&self, mode: Mode) -> Setup<'_> {
        Setup {
            connections: self.producers,
            profile: &self.pressure_profile,
            mode,
            extra_ca: None,
            traced: None,
        }
    }

    /// A server that trusts a certificate.
    pub(crate) fn setup_with_ca<'a>(&'a self, mode: Mode, file: &'a Path) -> Setup<'a> {
        Setup {
            extra_ca: Some(file),
            ..self.setup(mode)
        }
    }
}
