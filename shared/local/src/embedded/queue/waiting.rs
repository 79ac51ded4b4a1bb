//! Counting what waits of some groups, and a look at it, without receiving it.

use bytes::Bytes;
use posthaste_ports::{Clock, ErrorKind, GroupCount, PortError};

use super::LocalQueue;
use crate::embedded::engine::Found;
use crate::embedded::index::waiting::in_turns;

const DOING: &str = "look at what waits";

/// Bodies that are in memory at once: 16 MiB at the most.
const BODIES_AT_ONCE: usize = 16;

impl<C: Clock> LocalQueue<C> {
    /// Counts the messages of these groups, and shows bodies of them.
    pub(super) async fn look_at(
        &self,
        groups: &[String],
        bodies_max: usize,
        mut see: impl FnMut(usize, Option<&Bytes>) -> bool + Send,
    ) -> Result<Vec<GroupCount>, PortError> {
        let now = self.now();
        let found = self.queue().index.lock().waiting(groups, now, bodies_max);
        for some in in_turns(&found, bodies_max).chunks(BODIES_AT_ONCE) {
            let bodies = self
                .bodies(some.iter().map(|(_, sequence)| *sequence).collect())
                .await?;
            if !some
                .iter()
                .zip(&bodies)
                .all(|((place, _), body)| see(*place, body.as_ref()))
            {
                break;
            }
        }
        Ok(found.into_iter().map(|group| group.count).collect())
    }

    async fn bodies(&self, sequences: Vec<u64>) -> Result<Vec<Option<Bytes>>, PortError> {
        let shared = self.handle.shared.clone();
        // On a blocking thread, because it may read the disk.
        let read = tokio::task::spawn_blocking(move || shared.engine.contents(&sequences)).await;
        let body = |found| match found {
            Found::Whole(content) => Some(content.body),
            Found::Missing | Found::Damaged(_) => None,
        };
        match read {
            Ok(Ok(found)) => Ok(found.into_iter().map(body).collect()),
            Ok(Err(error)) => Err(PortError::caused(DOING, error.kind(), error)),
            Err(error) => Err(PortError::caused(DOING, ErrorKind::Other, error)),
        }
    }
}
