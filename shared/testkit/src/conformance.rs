//! One suite that every adapter of a port passes: the promises of the traits as cases, named as
//! sentences.
//!
//! The suite is called from an adapter's own tests, is not used elsewhere, and panics with the
//! names of the cases that failed. It never reads a clock: the harness lets time pass.

#![expect(
    clippy::unwrap_used,
    reason = "a case that fails panics, and the suite tells its name"
)]

pub mod queue;
pub mod store;

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;

use futures_util::FutureExt;

/// One case: its name and what runs it.
type Case<'a> = (&'static str, Pin<Box<dyn Future<Output = ()> + 'a>>);

/// Lists functions of a harness as cases under their own names.
macro_rules! cases {
    ($harness:ident: $($case:path),* $(,)?) => {
        vec![$((stringify!($case), Box::pin($case($harness)))),*]
    };
}
use cases;

/// Runs every case, one after the other, and panics at the end if any failed.
async fn run_all(cases: Vec<Case<'_>>) {
    let count = cases.len();
    let mut failed = Vec::new();
    for (name, case) in cases {
        // The panic itself was reported by the panic hook, with its place and values.
        if AssertUnwindSafe(case).catch_unwind().await.is_err() {
            failed.push(name);
        }
    }
    assert!(
        failed.is_empty(),
        "{} of {count} cases failed: {}",
        failed.len(),
        failed.join(", ")
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn passes(_harness: &()) {}

    async fn fails(harness: &()) {
        passes(harness).await;
        assert_eq!(1, 2);
    }

    #[tokio::test]
    #[should_panic(expected = "1 of 3 cases failed: fails")]
    async fn a_failed_case_is_named_and_the_others_still_run() {
        let harness = &();
        run_all(cases![harness: passes, fails, passes]).await;
    }
}
