//! `just torture --minutes 60`: runs as long as it is told, and says what came of it.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use posthaste_tests_torture::{Plan, Trouble, run};

/// Tortures the real program, and checks that its ledger balances.
#[derive(Debug, Parser)]
struct Options {
    /// Minutes in which things happen.
    #[arg(long, default_value_t = 2)]
    minutes: u64,
    /// Draws what happens, and when.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The library that moves the clock: tests/torture/faketime prints its path.
    #[arg(long)]
    clock: PathBuf,
    /// Only this trouble; may be given several times.
    #[arg(long, value_enum)]
    only: Vec<Trouble>,
    /// The program of a former release, which takes over for a while.
    #[arg(long)]
    former: Option<PathBuf>,
}

#[expect(clippy::print_stdout, reason = "the report is what it is for")]
fn main() -> ExitCode {
    let options = Options::parse();
    let mut troubles = Trouble::ALL.to_vec();
    if options.former.is_some() {
        troubles.push(Trouble::OtherRelease);
    }
    if !options.only.is_empty() {
        troubles = options.only;
    }
    let report = run(Plan {
        length: Duration::from_secs(60 * options.minutes),
        seed: options.seed,
        clock: options.clock,
        former: options.former,
        troubles,
    });
    println!("{report}");
    if report.faults().is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
