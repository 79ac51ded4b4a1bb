//! Whether the webhooks of a subscription arrive: the share of its tries that did, its state in a
//! word, and the incidents that an operator is told of. Pure.
//!
//! The circuit ([`crate::circuit`]) says whether an endpoint is asked at all. Health says whether
//! events arrive there, whatever the answer was: an endpoint that refuses every event is down.
//!
//! A subscription is in the [`HealthBook`] only while tries of it fail, or did a short time ago. So
//! one that is healthy costs nothing, and its tries are counted from its first failure on.
//!
//! | it was | it has | it is |
//! |---|---|---|
//! | healthy | failures in a row, a share of failures, or a hold of the circuit | failing |
//! | failing | no arrival in the tries that are measured, or a hold of the circuit | down |
//! | failing, down | arrivals again, nearly all of the last two minutes | healthy |
//!
//! [`HealthBook::update_incidents`] opens and closes incidents. Of one incident there is one notice when it
//! begins and one when it is over; where the link is the cause, they are the link's.

mod book;
mod decide;
mod ends;
mod incident;
mod missed;
mod noted;
mod seen;
mod state;
mod stuck;
mod tries;

pub use book::{HealthBook, SUBSCRIPTIONS_IN_BOOK_MAX, SubscriptionHealth, book_key};
pub use decide::{HealthFacts, RecordedStatus};
pub use incident::{DelayedEvent, DueNotice, LinkIncident, SubscriptionIncident};
pub use missed::{MissedEnd, MissedEvents, MissedFacts};
pub use seen::{SeenTry, TryResult};
pub use state::{HealthState, health_state, is_held_off};
pub use tries::{ArrivalShare, LastFailure, SubscriptionTries, UndeliveredEvent};

#[cfg(test)]
mod tests;
