//! The numbers of what waits on AWS by subscription, as the records of the delivery log say:
//! sixteen parts, and the last look at whether everything is at rest.
//!
//! Keys `waiting/0.json` to `waiting/f.json`, and `waiting/look.json`. Version 1; written by
//! record, always by conditional put; read by record and manage. A program of release 0.1 passes
//! them over. Fixtures: `waiting-part-v1.json`, `waiting-look-v1.json`,
//! `waiting-look-v1-rest.json`.

use super::format::versioned_object;
use crate::delivery_log::{WaitingLook, WaitingPart};

/// The prefix of what waits by subscription.
pub const WAITING: &str = "waiting/";

/// The key of the last look at whether everything is at rest.
pub const WAITING_LOOK: &str = "waiting/look.json";

/// The key of a part.
pub fn waiting_part_key(part: usize) -> String {
    format!("{WAITING}{part:x}.json")
}

versioned_object!(WaitingPart, 1, "a part of what waits");
versioned_object!(WaitingLook, 1, "a look at what waits");
