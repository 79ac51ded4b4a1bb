//! Changes of a part, each under the condition that no other worker has written it.

use std::sync::Arc;

use posthaste_core::circuit::{LINK_SHARDS, LinkShard};
use posthaste_core::stored::layout;

use super::{LinkHealth, LinksError};
use posthaste_ports::{Clock, ErrorKind, ObjectStore, PutCondition};

/// Most tries of a change. Each lost race means that another write has won, and a part gets a few
/// writes a minute.
const TRIES_MAX: u32 = 32;

impl<S: ObjectStore, C: Clock> LinkHealth<S, C> {
    /// Changes a part, and returns whether there was anything to change. `change` may be
    /// called more than once, each time with the newest part.
    pub async fn change_shard(
        &self,
        index: usize,
        mut change: impl FnMut(&mut LinkShard) -> bool + Send,
    ) -> Result<bool, LinksError> {
        let index = index % LINK_SHARDS;
        let mut tries = 0;
        let known = self.known_shard(index);
        let mut is_read = known.is_blind || !self.is_fresh(&known);
        if is_read {
            self.read_shard(index).await?;
        }
        loop {
            let known = self.known_shard(index);
            let mut shard = LinkShard::clone(&known.shard);
            if !change(&mut shard) {
                if is_read {
                    return Ok(false);
                }
                // The known part may be stale: read it before concluding that nothing has to
                // change.
                is_read = true;
                self.read_shard(index).await?;
                continue;
            }
            let condition = known
                .etag
                .map_or(PutCondition::IfAbsent, PutCondition::IfMatch);
            match self
                .store
                .put(&layout::link_shard_key(index), shard.render(), condition)
                .await
            {
                Ok(etag) => {
                    // Newer than anything that was read meanwhile.
                    let times = self.known_shard(index).times;
                    self.remember_shard(index, times, Arc::new(shard), Some(etag));
                    return Ok(true);
                }
                Err(error) if error.kind == ErrorKind::PreconditionFailed => {}
                Err(error) => return Err(error.into()),
            }
            tries += 1;
            if tries == TRIES_MAX {
                return Err(LinksError::Contended(tries));
            }
            is_read = true;
            self.read_shard(index).await?;
        }
    }
}
