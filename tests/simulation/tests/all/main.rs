//! One program for every simulation: 54 programs would each be linked, and each takes 70 MB of the
//! disk.

#![allow(
    clippy::unwrap_used,
    reason = "the settings of clippy.toml for tests do not reach their helpers"
)]

mod again;
mod bad_input;
mod batching;
mod created_again;
mod day;
mod dead_letter_records;
mod dead_letters;
mod dead_subscriber;
mod dehydrate;
mod deliver;
mod deliver_in_time;
mod delivery_log;
mod drain;
mod expiry_at_the_request;
mod failing;
mod failing_properties;
mod failing_scopes;
mod fallback;
mod faults;
mod former_release;
mod hanging_paths;
mod held;
mod held_links;
mod hops;
mod late;
mod late_dead_letters;
mod link_notices;
mod log_outage;
mod log_replay;
mod notices;
mod outage_of_a_day;
mod panics;
mod partial;
mod pressure_notices;
mod rates;
mod records;
mod recovery;
mod registry;
mod relief;
mod replay;
mod replay_faults;
mod resolved;
mod retry_after;
mod rotation;
mod schedule;
mod schemas;
mod set_back;
mod slow_endpoint;
mod splitting;
mod states;
mod temporary;
mod unknown_names;
mod wake;
mod wake_under_pressure;
mod workers;
