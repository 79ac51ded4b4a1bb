//! Releasing the parked deliveries of a subscription before their minute has come, because an operator forced it: manage
//! leaves a mark, and wake walks through all that is parked. What is held goes by its own rules, which force has opened.
//!
//! One walk serves all marks. It is bounded in a run, and the marks say how far it came; each goes at its end.

use std::collections::VecDeque;
use std::error::Error;

use bytes::Bytes;
use posthaste_core::layout;
use posthaste_ports::{Clock, ETag, Entropy, ErrorKind, ObjectStore, PortError, PutCondition, QueueSender};
use serde::{Deserialize, Serialize};

use crate::held::{Holding, OF_ONE_MAX};
use crate::limits::Limits;
use crate::{PAGE_MAX, Wake};

/// Most marks that are looked at in one run.
const MARKS_MAX: usize = 100;

/// Most pages of what is parked that are walked through in one run.
const PAGES_MAX: usize = 20;

/// Most deliveries that are forced in one run: a part of what a run can send, the rest is for what is held.
const FORCED_MAX: usize = 2_000;

/// So many minutes before an object is due it is left to the ordinary release, which runs beside this and would send it
/// as well.
const LEFT_BEFORE_DUE_MINUTES: u64 = 1;

/// What a mark says. One that manage has just written says nothing.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct MarkObject {
    /// The last key that was looked at.
    #[serde(default)]
    after: Option<String>,
}

/// A mark that was read.
#[derive(Debug)]
struct Mark {
    key: String,
    folder: String,
    etag: ETag,
    after: Option<String>,
}

/// How a run's walk ended.
enum Walked {
    /// With everything looked at.
    Through,
    /// Everything up to this key was.
    UpTo(Option<String>),
}

impl<Q, S, D, C, E> Wake<Q, S, D, C, E>
where
    Q: QueueSender,
    S: ObjectStore,
    D: ObjectStore,
    C: Clock,
    E: Entropy,
{
    /// Releases what is parked for the marked subscriptions, as far as a run may go.
    pub(crate) async fn release_forced(&self, limits: Limits, holding: &mut Holding) {
        let forced = async {
            let marks = self.marks().await?;
            if marks.is_empty() {
                return Ok(());
            }
            match self.walk(&marks, limits, holding).await? {
                Walked::Through => self.end_marks(&marks).await,
                Walked::UpTo(after) => self.note_marks(marks, after).await,
            }
        };
        if let Err(error) = forced.await {
            let error: PortError = error;
            tracing::error!(
                error = &error as &dyn Error,
                "parked deliveries not forced, the next run goes on"
            );
        }
    }

    async fn marks(&self) -> Result<Vec<Mark>, PortError> {
        let mut marks = Vec::new();
        for listed in self.ports.state.list(layout::FORCING, None, MARKS_MAX).await?.objects {
            let Some(object) = self.ports.state.get(&listed.key).await? else { continue };
            let folder = listed.key.trim_start_matches(layout::FORCING).to_owned();
            // Whatever else it says, the walk begins anew.
            let MarkObject { after } = serde_json::from_slice(&object.bytes).unwrap_or_default();
            marks.push(Mark { key: listed.key, folder, etag: object.etag, after });
        }
        Ok(marks)
    }

    /// Walks through what is parked, from where the mark that is least far has come.
    async fn walk(&self, marks: &[Mark], limits: Limits, holding: &mut Holding) -> Result<Walked, PortError> {
        let mut after = marks.iter().map(|mark| mark.after.clone()).min().flatten();
        for _ in 0..PAGES_MAX {
            if holding.forced >= FORCED_MAX || !self.may_begin(limits) {
                return Ok(Walked::UpTo(after));
            }
            let page = self.ports.state.list(layout::PARKED, after.as_deref(), PAGE_MAX).await?;
            let left_through = self.ports.clock.now().minute() + LEFT_BEFORE_DUE_MINUTES;
            let listed: Vec<_> = page.objects.into_iter().map(|object| object.key).collect();
            let is_later = |key: &str| layout::parked_due_minute(key).is_some_and(|due| due > left_through);
            let is_marked = |key: &str| marks.iter().any(|mark| mark.asks_for(key));
            let keys = listed.iter().filter(|key| is_later(key) && is_marked(key)).cloned().collect();
            if let Some(first_left) = self.force(keys, limits, holding).await {
                let before = listed.iter().take_while(|key| **key < first_left).last();
                return Ok(Walked::UpTo(before.cloned().or(after)));
            }
            match page.next_after {
                Some(next_after) => after = Some(next_after),
                None => return Ok(Walked::Through),
            }
        }
        Ok(Walked::UpTo(after))
    }

    /// Sends the deliveries of these objects, in passes. Answers the first key that is left for the next run.
    async fn force(
        &self,
        mut keys: VecDeque<String>,
        limits: Limits,
        holding: &mut Holding,
    ) -> Option<String> {
        while let Some(first) = keys.front().cloned() {
            let Some(room) = self.room_in_pass(limits, holding).await else { return Some(first) };
            let max = room.min(OF_ONE_MAX).min(FORCED_MAX.saturating_sub(holding.forced));
            let taken = self.take(&mut keys, max, limits).await;
            holding.forced += taken.sent;
            holding.add(taken);
            if taken.is_refused {
                return Some(first);
            }
            if holding.forced >= FORCED_MAX || (!keys.is_empty() && !self.pause(limits).await) {
                return keys.pop_front();
            }
        }
        None
    }

    /// Removes the marks whose walk has ended, but not one that was written again meanwhile.
    async fn end_marks(&self, marks: &[Mark]) -> Result<(), PortError> {
        for Mark { key, etag, .. } in marks {
            if self.ports.state.get(key).await?.is_some_and(|object| object.etag == *etag) {
                self.ports.state.delete(key).await?;
            }
        }
        Ok(())
    }

    /// Writes down how far the walk came. A mark that was written again meanwhile begins anew.
    async fn note_marks(&self, marks: Vec<Mark>, reached: Option<String>) -> Result<(), PortError> {
        for Mark { key, etag, after, .. } in marks {
            let object = MarkObject { after: reached.clone().max(after) };
            let bytes = Bytes::from(serde_json::to_vec(&object).unwrap_or_default());
            match self.ports.state.put(&key, bytes, PutCondition::IfMatch(etag)).await {
                Err(error) if error.kind != ErrorKind::PreconditionFailed => return Err(error),
                Ok(_) | Err(_) => {}
            }
        }
        Ok(())
    }
}

impl Mark {
    /// Whether an object is of its subscription, and was not looked at on its account.
    fn asks_for(&self, key: &str) -> bool {
        let is_new = self.after.as_deref().is_none_or(|after| key > after);
        is_new && layout::parked_folder(key) == Some(self.folder.as_str())
    }
}
