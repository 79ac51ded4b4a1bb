#![doc = include_str!("../README.md")]

mod actions;
mod answer;
mod attempts;
mod audit;
mod begun_requests;
mod callbacks;
mod cancel_event;
mod conditions;
mod dead_letters;
mod doctor;
mod document;
mod events;
mod extract;
mod find;
mod guard;
mod handshakes;
mod health_changes;
mod keys;
mod letters;
mod links;
mod manage;
mod paging;
mod recoveries;
mod replays;
mod resend;
mod resolve;
mod router;
mod status;
mod subscriptions;
mod temporary;
mod test_event;
#[cfg(test)]
mod tests;
mod topic_records;
mod topics;
mod unfinished;
mod waiting;
mod webhook_keys;

pub use crate::begun_requests::BegunRequests;
pub use crate::guard::REQUEST_TIME_MAX;
pub use crate::manage::{LogSettings, Manage, ManageSettings};
pub use crate::router::{router, router_beside, unguarded_router, with_admin_key_check};
pub use crate::unfinished::FINISH_PERIOD;
pub use posthaste_delivery_log::{DeliveryLog, SummaryStore};
