//! Links and subscriptions that are not well, in [`LINK_SHARDS`](crate::circuit::LINK_SHARDS) objects.
//!
//! Key `links/{shard}.json`, the shard being a hexadecimal digit. Version 1; read by deliver, wake and
//! manage, written by deliver on a transition, by wake when notices were sent, and by manage when an operator
//! acts; always by conditional put. Snapshots: `circuit/tests/snapshots`.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::format::{Format, FormatError, render};
use crate::circuit::{Condition, Shard};

/// The prefix of what is known of links and subscriptions that are not well.
pub const LINKS: &str = "links/";

/// What is known of the links of this part and of their subscriptions.
pub fn links(shard: usize) -> String {
    format!("{LINKS}{shard:x}.json")
}

const FORMAT: Format = Format { name: "a list of targets", newest: 1 };

#[derive(Deserialize)]
struct ShardObject {
    v: u32,
    targets: BTreeMap<String, Condition>,
}

#[derive(Serialize)]
struct ShardObjectRef<'a> {
    v: u32,
    targets: &'a BTreeMap<String, Condition>,
}

impl Shard {
    /// Reads an object.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        let ShardObject { targets, .. } = FORMAT.parse(bytes, |object: &ShardObject| object.v)?;
        Ok(Self { targets })
    }

    /// Writes the object.
    pub fn render(&self) -> Bytes {
        render(&ShardObjectRef { v: FORMAT.newest, targets: &self.targets })
    }
}
