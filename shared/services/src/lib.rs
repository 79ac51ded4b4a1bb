#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

pub mod activity;
pub mod catch_panic;
pub mod client;
pub mod delivery_log;
pub mod drain;
pub mod fan_out;
pub mod kept_event;
pub mod late_answers;
pub mod lease;
pub mod link_health;
pub mod memory_pressure;
pub mod notifier;
pub mod outbound;
pub mod ownership;
pub mod pages;
pub mod pressure_reader;
pub mod replay;
pub mod resolved;
pub mod send_all;
pub mod single_flight;
pub mod tally;
pub mod timeout_at;
pub mod topics;
pub mod update;
pub mod wake_signal;
pub mod wrong_keys;

pub use activity::Activity;
pub use drain::{DRAIN_POST_TIMEOUT, DrainMeter, DrainPost, DrainReports};
pub use fan_out::{FanOut, FanOutError, Inline, Origin, Written};
pub use lease::{FoundLease, Lease, LeaseObject};
pub use link_health::{LINKS_MAX_AGE, LinkHealth, LinksError};
pub use memory_pressure::{Relieved, Reliever};
pub use notifier::{Addressee, NoticeError, Notifier};
pub use outbound::{Outbound, Sent};
pub use ownership::{ClaimError, ClaimRefused, Ownership};
pub use pages::{objects, pages};
pub use pressure_reader::{Admitted, PRESSURE_MAX_AGE, PressureReader};
pub use send_all::send_all;
pub use single_flight::SingleFlight;
pub use tally::Tally;
pub use timeout_at::{stop_at, timeout, timeout_at};
pub use topics::{Registry, RegistryError};
pub use update::{Edit, UpdateError, Updated, get_newer, update, update_with};
pub use wake_signal::{WakeSignaller, signal_wake};
pub use wrong_keys::{WrongKeyAnswer, WrongKeys};
