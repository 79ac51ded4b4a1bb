//! Two minutes of it, in each run of the tests. `just torture --minutes 60` by hand.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use posthaste_tests::seed::Seed;
use posthaste_tests_torture::{Plan, Trouble, run};

/// The library that moves the clock of one process.
fn clock() -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("faketime");
    let output = Command::new(script).output().expect("the script runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout)
        .expect("a path")
        .trim()
        .into()
}

#[test]
fn ledger_of_two_minutes_of_torture_balances() {
    let report = run(Plan {
        length: Duration::from_mins(2),
        seed: Seed::of_this_run().below(usize::MAX) as u64,
        clock: clock(),
        former: None,
        troubles: Trouble::ALL.to_vec(),
    });
    println!("{report}");
    assert_eq!(report.faults(), [""; 0]);
}
