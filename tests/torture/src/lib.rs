//! The real program under everything that can happen to it: publishers, receivers that change their
//! mood, and one trouble after the other. A ledger knows what was accepted and what arrived, and has
//! to balance when everything is well again.

mod again;
mod check;
mod crowd;
mod ledger;
mod machine;
mod moods;
mod report;
mod run;
mod swallower;
mod trouble;
mod waiting;

pub use report::Report;
pub use run::{Plan, run};
pub use trouble::Trouble;
