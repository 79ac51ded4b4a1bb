//! One program for all simulations but the long ones: more than forty would each be linked, and
//! each takes 70 MB of the disk.

#![allow(
    clippy::unwrap_used,
    reason = "the settings of clippy.toml for tests do not reach their helpers"
)]

mod again;
mod bad_events;
mod bad_input;
mod bad_keys;
mod batching;
mod changes_in_line;
mod created_again;
mod cut_short;
mod day;
mod dead_letter_records;
mod dead_letters;
mod dehydrate;
mod deliver;
mod deliver_in_time;
mod delivery_log;
mod disabled;
mod drain;
mod expiry_at_the_request;
mod failing;
mod failing_scopes;
mod fallback;
mod former_release;
mod hanging_paths;
mod health;
mod held_links;
mod hops;
mod late;
mod late_dead_letters;
mod notices;
mod one_letter;
mod panics;
mod partial;
mod pending;
mod rates;
mod records;
mod recovery_by_itself;
mod refusals;
mod registry;
mod relief;
mod replay;
mod retry_after;
mod retry_jitter;
mod rotation;
mod schedule;
mod scheduled;
mod schemas;
mod set_back;
mod slots;
mod slow_endpoint;
mod slow_topics;
mod splitting;
mod states;
mod temporary;
mod traces;
mod unknown_names;
mod waiting;
mod wake;
mod wake_under_pressure;
mod webhook_ids;
mod whole_fan_out;
mod workers;
