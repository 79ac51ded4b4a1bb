//! A flood, drawn: producers that come on top of the usual ones and publish as fast as they are
//! answered, for an endpoint that takes far less, by the default thresholds. Prints what was
//! measured, and draws depth, drain time, tarpit, rates and memory over the time. Run by hand:
//! `cargo bench -p posthaste-tests --bench flood -- --help`.

#![expect(
    clippy::cast_precision_loss,
    reason = "what is measured is shown to three digits"
)]

mod chart;
mod draw;
mod endpoint;
mod load;
mod sample;
mod summary;
mod svg;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use clap::Parser;
use posthaste_tests::endpoint::{Answer, Endpoint};
use posthaste_tests::events::subscription;
use posthaste_tests::home::Home;
use posthaste_tests::patience::{now, rest};
use posthaste_tests::server::Server;

use crate::load::Load;
use crate::sample::{Sample, Sampler};

/// Measures a flood. An optimised build of posthaste is made first, or taken from `POSTHASTE_BIN`.
#[derive(Debug, Parser)]
struct Arguments {
    /// Seconds before the flood.
    #[arg(long, default_value_t = 15)]
    calm_secs: u64,
    /// Seconds of the flood.
    #[arg(long, default_value_t = 90)]
    flood_secs: u64,
    /// Most seconds that the recovery after it may take.
    #[arg(long, default_value_t = 300)]
    recovery_secs_max: u64,
    /// How long the endpoint works on one event, one at a time.
    #[arg(long, default_value_t = 20)]
    endpoint_ms: u64,
    /// The usual producers: ten events a second each, and they obey `Retry-After`.
    #[arg(long, default_value_t = 3)]
    usual: usize,
    /// The producers of the flood: up to 25 events a second each, and they obey nothing.
    #[arg(long, default_value_t = 24)]
    flooding: usize,
    /// The pressure profile.
    #[arg(long, default_value = "scaled")]
    pressure_profile: String,
    /// Where the chart is written.
    #[arg(long)]
    chart: Option<PathBuf>,
    /// `cargo bench` says this.
    #[arg(long, hide = true)]
    bench: bool,
}

/// The log filter: only warnings, the line that says where the server listens, and the levels.
const LOG_FILTER: &str = "warn,posthaste_server=info,posthaste_monitor=info";

/// Between two samples.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(500);

/// Time for which the run goes on without pressure: a producer that was asked to wait at the end
/// waits for up to 55 s.
const AFTERWARDS: Duration = Duration::from_secs(75);

fn main() {
    let arguments = Arguments::parse();
    let home = Home::new();
    let slow = Endpoint::start();
    endpoint::work_for(Duration::from_millis(arguments.endpoint_ms));
    slow.script("/slow", [Answer::Judge(endpoint::slow)]);
    let server = Server::start(
        home.path(),
        &[
            "--pressure-profile",
            &arguments.pressure_profile,
            "--log-filter",
            LOG_FILTER,
        ],
    );
    let api = server.api();
    let topic = api.create_topic_with("bench", "slow", &subscription(&slow.url("/slow")));
    let quick = Endpoint::start();
    let quick_topic = api.create_topic_with("quick", "own", &subscription(&quick.url("/")));
    let load = Load::new(topic, quick_topic);
    let samples = run(&arguments, &load, &Sampler::new(&server, &load));
    summary::print(&samples, &load, &server);
    if let Some(file) = &arguments.chart {
        std::fs::write(file, draw::draw(&samples)).expect("the chart can be written");
    }
}

/// Before, during and after the flood.
fn run(arguments: &Arguments, load: &Load, sampler: &Sampler<'_>) -> Vec<Sample> {
    let secs = Duration::from_secs;
    let [is_over, is_flood_over] = [(); 2].map(|()| AtomicBool::new(false));
    let mut seen = Vec::new();
    thread::scope(|scope| {
        for _ in 0..arguments.usual {
            scope.spawn(|| load.usual(&is_over));
        }
        scope.spawn(|| load.quick(&is_over));
        sample_for(sampler, &mut seen, secs(arguments.calm_secs), |_| false);
        for _ in 0..arguments.flooding {
            scope.spawn(|| load.flood(&is_flood_over));
        }
        sample_for(sampler, &mut seen, secs(arguments.flood_secs), |_| false);
        is_flood_over.store(true, Ordering::Relaxed);
        sample_for(
            sampler,
            &mut seen,
            secs(arguments.recovery_secs_max),
            Sample::is_calm,
        );
        sample_for(sampler, &mut seen, AFTERWARDS, |_| false);
        is_over.store(true, Ordering::Relaxed);
    });
    load.wait_for_arrivals();
    seen
}

/// Samples for so long, or until one is enough.
fn sample_for(
    sampler: &Sampler<'_>,
    seen: &mut Vec<Sample>,
    length: Duration,
    is_enough: fn(&Sample) -> bool,
) {
    let end = now() + length;
    while now() < end {
        let sample = sampler.sample();
        let enough = is_enough(&sample);
        seen.push(sample);
        if enough {
            return;
        }
        rest(SAMPLE_INTERVAL);
    }
}
