#![doc = include_str!("../README.md")]

pub mod admin_key;
pub mod http;
pub mod log;
mod log_upkeep;
mod machine;
pub mod metrics;
pub mod poller;
pub mod readiness;
pub mod schedule;

mod adapters;
mod advice;
mod app;
mod backup;
mod config;
mod console;
pub mod data_folder;
mod descriptors;
mod error;
mod export;
mod former;
mod functions;
pub mod history;
mod huge_pages;
mod left;
mod links;
mod listening;
mod machine_clock;
mod memory_pressure;
mod monitor;
mod pressure;
mod probes;
mod run;
mod settings;
pub mod tls;
mod upkeep;

pub use app::RunningServer;
pub use error::ServeError;
pub use run::run;
pub use settings::ServeSettings;
