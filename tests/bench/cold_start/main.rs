//! The time until a Lambda program of ours is ready, its size, and the cost of an invocation before
//! it does any work, beside a program that does nothing. Run by hand: `cargo bench -p
//! posthaste-tests-aws --bench cold_start -- --help`.
//!
//! The programs are real, built as for Lambda, each a process of its own; the Runtime API, S3, SQS
//! and the webhook are threads of this one, on loopback.

#![expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "what is measured is shown to three digits"
)]

mod aws;
mod cold;
mod events;
mod figures;
mod first;
mod http;
mod process;
mod programs;
mod runtime_api;
mod table;
mod tls;
mod warm;

use std::path::PathBuf;

use clap::Parser;
use posthaste_core::model::Timestamp;
use posthaste_ports::Clock;
use posthaste_system::SystemClock;

use crate::programs::World;

/// Measures the seven functions beside a program that does nothing. They are built first, unless a
/// folder is given.
#[derive(Debug, Parser)]
struct Arguments {
    /// A folder with programs that are built already.
    #[arg(long)]
    programs: Option<PathBuf>,
    /// Only these programs (and `nothing`).
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// How often each is started.
    #[arg(long, default_value_t = 20)]
    starts: usize,
    /// Warm invocations of each.
    #[arg(long, default_value_t = 2_000)]
    invocations: usize,
    /// Show what the programs log.
    #[arg(long)]
    log: bool,
    /// `cargo bench` says this.
    #[arg(long, hide = true)]
    bench: bool,
}

#[expect(clippy::print_stdout, reason = "a bench prints what it measured")]
fn main() {
    let arguments = Arguments::parse();
    let folder = arguments.programs.clone().unwrap_or_else(programs::build);
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let (tls, roots) = tls::authority(temporary.path());
    let aws = aws::start(None, "https://127.0.0.1/hook");
    let world = World {
        folder,
        aws: format!("http://{}", aws.address),
        roots,
        shows_log: arguments.log,
    };
    let programs = arguments.programs();
    let cold = cold::measure(&world, &programs, arguments.starts);
    let warm = warm::measure(&world, &programs, arguments.invocations);
    println!("{}", table::programs(&cold, &warm));
    print!("{}", table::HTTPS);
    if programs.contains(&"deliver") {
        print!(
            "{}",
            table::first_delivery(&first::deliver(&world, &tls, arguments.starts, now()))
        );
    }
    if programs.contains(&"publish") {
        print!(
            "{}",
            table::first_publish(&first::publish(&world, &tls, arguments.starts))
        );
    }
}

impl Arguments {
    fn programs(&self) -> Vec<&'static str> {
        let is_wanted =
            |name: &str| self.only.is_empty() || self.only.iter().any(|only| only == name);
        let (nothing, others) = programs::ALL.split_first().expect("there are programs");
        std::iter::once(nothing)
            .chain(others)
            .copied()
            .filter(|name| *name == *nothing || is_wanted(name))
            .collect()
    }
}

/// Events are due now, by the real clock that the programs read.
fn now() -> Timestamp {
    SystemClock.now()
}
