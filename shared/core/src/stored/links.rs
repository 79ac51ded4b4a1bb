//! Links and subscriptions that are not well, in [`LINK_SHARDS`](crate::circuit::LINK_SHARDS)
//! objects.
//!
//! Key `links/{shard}.json`, the shard being a hexadecimal digit. Version 1; read by deliver, wake
//! and manage, written by deliver on a transition, by wake when notices were sent, and by manage
//! when an operator acts; always by conditional put. Snapshots: `circuit/tests/snapshots`.

use super::format::versioned_object;
use crate::circuit::LinkShard;

/// The prefix of what is known of links and subscriptions that are not well.
pub const LINKS: &str = "links/";

/// The key of a part: links that are not well, and subscriptions on its links.
pub fn link_shard_key(shard: usize) -> String {
    format!("{LINKS}{shard:x}.json")
}

versioned_object!(LinkShard, 1, "a list of targets");
