//! Links and subscriptions that are not well, in [`LINK_SHARDS`](crate::circuit::LINK_SHARDS)
//! objects.
//!
//! Key `links/{shard}.json`, the shard being a hexadecimal digit. Version 1; read by deliver, wake
//! and manage, written by deliver on a transition, by wake when notices were sent, and by manage
//! when an operator acts; always by conditional put. Snapshots: `circuit/tests/snapshots`.

use bytes::Bytes;

use super::format::{Format, FormatError};
use crate::circuit::Shard;

/// The prefix of what is known of links and subscriptions that are not well.
pub const LINKS: &str = "links/";

/// The key of a part: links that are not well, and subscriptions on its links.
pub fn links(shard: usize) -> String {
    format!("{LINKS}{shard:x}.json")
}

const FORMAT: Format = Format {
    name: "a list of targets",
    newest: 1,
};

impl Shard {
    /// Reads an object.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        FORMAT.read(bytes)
    }

    /// Writes the object.
    pub fn render(&self) -> Bytes {
        FORMAT.render(self)
    }
}
