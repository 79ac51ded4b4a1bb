//! A message that cannot be read, byte for byte, in the dead-letter bucket.
//!
//! Key `MALFORMED/{year}/{month}/{day}/{hour}/{uuid}`; without a version. Written by deadletter; read by
//! operators.

use super::keys::hour_key;
use crate::model::Timestamp;

/// Where messages that cannot be read are kept byte for byte, in the dead-letter bucket.
pub const MALFORMED: &str = "MALFORMED/";

/// A message kept byte for byte because it cannot be read. `id` is a UUID.
pub fn malformed(at: Timestamp, id: &str) -> String {
    format!("{MALFORMED}{}/{id}", hour_key(at))
}
