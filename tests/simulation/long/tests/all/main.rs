//! The simulations that take seconds each. One program for all of them: each would be linked, and
//! takes 70 MB of the disk.

#![allow(
    clippy::unwrap_used,
    reason = "the settings of clippy.toml for tests do not reach their helpers"
)]

mod dead_subscriber;
mod failing_properties;
mod faults;
mod held;
mod link_notices;
mod log_outage;
mod log_replay;
mod outage;
mod outage_of_a_day;
mod outage_of_days;
mod pairs;
mod pressure_notices;
mod recovery;
mod recovery_faults;
mod replay_faults;
mod resolved;
mod shared_link;
