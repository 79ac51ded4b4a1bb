//! The cost of one bad endpoint for the others: 99 healthy subscriptions beside one that is well,
//! refuses connections, hangs, answers 503, answers slowly or flaps, through the real program in one process.
//! Prints a table of the times from publish to arrival of the healthy ones' events. Run by hand:
//! `cargo bench -p posthaste-tests --bench isolation -- --help`.
//!
//! The endpoints are one process of their own: this program, started with `endpoints`.

#![expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "what is measured is shown to three digits"
)]

mod arrived;
mod case;
mod endpoints;
mod fault;
mod load;
mod serving;
mod table;
#[path = "../throughput/wire.rs"]
mod wire;

use clap::Parser;

use crate::case::{CASES, Case};

/// Measures isolation. An optimised build of posthaste is made first, or taken from
/// `POSTHASTE_BIN`.
#[derive(Debug, Parser)]
struct Arguments {
    /// Seconds of each case.
    #[arg(long, default_value_t = 40)]
    secs: u32,
    /// Seconds of the one that flaps: each of its holds lasts a minute.
    #[arg(long, default_value_t = 140)]
    flap_secs: u32,
    /// Events a second for all hundred subscriptions.
    #[arg(long, default_value_t = 5)]
    rate: u32,
    /// Events a second besides for the hundredth alone.
    #[arg(long, default_value_t = 100)]
    pressing_rate: u32,
    /// The pressure profile.
    #[arg(long, default_value = "scaled")]
    pressure_profile: String,
    /// Only the cases whose names begin so.
    #[arg(long, default_value = "")]
    only: String,
    /// `cargo bench` says this.
    #[arg(long, hide = true)]
    bench: bool,
}

#[expect(clippy::print_stdout, reason = "a bench prints what it measured")]
fn main() {
    if std::env::args().nth(1).as_deref() == Some(endpoints::ROLE) {
        return serving::serve();
    }
    let arguments = Arguments::parse();
    println!("{}", table::HEADER);
    for case in CASES
        .iter()
        .filter(|case| case.name.starts_with(&arguments.only))
    {
        println!("{}", table::row(case, &case.run(&arguments)));
    }
}

impl Arguments {
    fn secs_of(&self, case: &Case) -> u32 {
        if case.fault == fault::Fault::Flaps {
            self.flap_secs
        } else {
            self.secs
        }
    }
}
