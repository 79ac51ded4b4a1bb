#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

pub mod activity;
pub mod arrivals;
pub mod audit;
pub mod busy;
pub mod catch_panic;
pub mod client;
pub mod completing_work;
pub mod delivery_log;
pub mod drain;
pub mod fan_out;
pub mod gone;
pub mod kept_event;
pub mod lanes;
pub mod late_answers;
pub mod lease;
pub mod left_work;
pub mod link_health;
pub mod memory_pressure;
pub mod notifier;
pub mod open_replay;
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
pub mod traces;
pub mod unused_links;
pub mod update;
pub mod waiting;
pub mod wake_signal;
pub mod wrong_keys;

pub use activity::ActivityNotes;
pub use arrivals::{ArrivalTracker, BOOK_MAX_AGE, HealthError};
pub use completing_work::CompletingWork;
pub use drain::{DRAIN_POST_TIMEOUT, DrainMeter, DrainPost, DrainReports, PlaceWait};
pub use fan_out::{
    AcceptanceLogging, EventOrigin, EventSchedule, FanOut, FanOutError, FanOutSummary,
    InlineEvents, event_key,
};
pub use gone::{GoneError, disable_gone};
pub use lanes::{SlowGroups, SlowLane, SlowTargetCache, send_by_lane};
pub use lease::{FoundLease, HeldLease, LeaseObject};
pub use left_work::{LEFT_AFTER, LeftWork};
pub use link_health::{LINKS_MAX_AGE, LinkHealth, LinksError};
pub use memory_pressure::{MemoryReliever, ReliefResult};
pub use notifier::{NoticeAddressee, NoticeError, Notifier};
pub use open_replay::{OpenReplayError, open_replay};
pub use outbound::{OutboundSender, SentRequest};
pub use ownership::{ClaimError, ClaimRefused, StackOwnership};
pub use pages::{list_objects, list_pages};
pub use pressure_reader::{AdmissionResult, PRESSURE_MAX_AGE, PressureReader};
pub use send_all::send_all;
pub use single_flight::SingleFlight;
pub use tally::LogTally;
pub use timeout_at::{stop_at, timeout, timeout_at};
pub use topics::{RegistryError, TopicRegistry};
pub use traces::EventTraces;
pub use unused_links::unused_links;
pub use update::{
    ObjectEdit, UpdateError, UpdatedObject, get_newer, update_object, update_object_with,
};
pub use waiting::book::WaitingBook;
pub use waiting::numbers::{WaitingBookError, WaitingNumbers};
pub use waiting::{AllWaiting, WaitingEvents};
pub use wake_signal::{WakeSignaller, signal_wake};
pub use wrong_keys::{WrongKeyAnswer, WrongKeys};
