//! The subscriptions whose tries fail, or did a short time ago: one object.
//!
//! Key `health/subscriptions.json`. Version 1; in `serve` written by wake, on AWS by record and
//! wake, and by wake alone as far as incidents go; by deadletter, which counts what disabled
//! subscriptions miss; read by them and by manage; always by conditional put. A program of release
//! 0.1 passes it over. Fixtures: `health-book-v1.json`,
//! `health-book-v1-events.json`.

use super::format::versioned_object;
use crate::health::HealthBook;

/// The key of what is known of subscriptions that are failing, or were.
pub const HEALTH: &str = "health/subscriptions.json";

versioned_object!(HealthBook, 1, "a book of failing subscriptions");
