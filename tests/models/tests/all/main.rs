//! The models, checked in every order of their steps; variants of them that lack a part, which are
//! refuted; and runs of the real code, each call of which is a step of its model.
#![allow(
    clippy::unwrap_used,
    reason = "the settings of clippy.toml for tests do not reach their helpers"
)]

mod idempotency;
mod kit;
mod lanes;
mod letters;
mod marks;
mod replay;
mod slots;
mod stack_claim;
mod wake_lease;
mod wake_rest;

/// Prints what was explored, for the table in the README.
#[expect(clippy::print_stderr, reason = "a test prints to its own output")]
fn report(name: &str, explored: posthaste_tests_models::check::Explored) {
    eprintln!(
        "{name}: {} states, depth {}",
        explored.states, explored.depth
    );
}
