//! Releasing the parked deliveries of a subscription before their minute has come, because an operator forced
//! it: manage leaves a mark, and wake walks through all that is parked. What is held goes by its own rules,
//! which force has opened.
//!
//! One walk serves all marks, in passes beside those of what is held. It is bounded in a run, and the marks
//! say how far it came; each goes at its end.

use std::collections::VecDeque;
use std::error::Error;
use std::sync::Arc;

use bytes::Bytes;
use posthaste_core::model::identity::Identity;
use posthaste_core::model::topic::Topic;
use posthaste_core::release::speed::Amount;
use posthaste_core::stored::layout;
use posthaste_ports::{
    Clock, ETag, Entropy, ErrorKind, ListPage, ObjectStore, PortError, PutCondition, QueueSender,
};
use posthaste_services::RegistryError;
use serde::{Deserialize, Serialize};

use crate::held::{Holding, Portion, Taken};
use crate::limits::Limits;
use crate::release::RELEASES_AT_ONCE;
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
    /// The creation of the subscription that was forced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    identity: Option<Identity>,
}

/// A mark that was read.
#[derive(Debug)]
struct Mark {
    key: String,
    folder: String,
    etag: ETag,
    after: Option<String>,
    identity: Option<Identity>,
}

/// One run's walk through what is parked, for all marks together.
#[derive(Debug, Default)]
pub(crate) struct Forcing {
    marks: Vec<Mark>,
    /// All that is up to this key was looked at: the pages before this one.
    reached: Option<String>,
    /// The keys of this page.
    listed: Vec<String>,
    /// Those of them that are forced and have not gone.
    keys: VecDeque<String>,
    /// The key after which the next page begins, if there is one.
    next_after: Option<String>,
    pages: usize,
    end: Option<End>,
}

/// How a run's walk ended.
#[derive(Debug)]
enum End {
    /// With everything looked at.
    Through,
    /// With something left for the next run: from this key on, or all that was not looked at.
    Left(Option<String>),
}

impl<Q, S, D, C, E> Wake<Q, S, D, C, E>
where
    Q: QueueSender,
    S: ObjectStore,
    D: ObjectStore,
    C: Clock,
    E: Entropy,
{
    /// Looks for marks. Where they cannot be read nothing is forced in this run. Where parked deliveries were
    /// moved to an earlier minute the walk begins again.
    pub(crate) async fn begin_forcing(&self, has_pulled_in: bool) -> Forcing {
        let mut marks = self.marks().await.unwrap_or_else(|error| {
            tracing::error!(error = &error as &dyn Error, "marks not read, the next run forces deliveries");
            Vec::new()
        });
        if has_pulled_in {
            for mark in &mut marks {
                mark.after = None;
            }
        }
        // From where the mark that is least far has come.
        let reached = marks.iter().map(|mark| mark.after.clone()).min().flatten();
        let end = marks.is_empty().then_some(End::Through);
        Forcing { marks, next_after: reached.clone(), reached, end, ..Forcing::default() }
    }

    /// Sends up to so many deliveries that are parked for the marked subscriptions.
    pub(crate) async fn force_some(
        &self,
        forcing: &mut Forcing,
        max: Amount,
        limits: Limits,
        holding: &mut Holding,
    ) -> Taken {
        let portion = Portion { max, at_once: RELEASES_AT_ONCE };
        let portion = portion.at_most(FORCED_MAX.saturating_sub(holding.forced));
        let mut taken = Taken::default();
        while forcing.is_open() && !portion.after(&taken).max.is_nothing() && self.may_begin(limits) {
            let Some(first) = forcing.keys.front().cloned() else {
                self.turn_page(forcing).await;
                continue;
            };
            taken.add(self.take(&mut forcing.keys, portion.after(&taken), limits).await);
            if taken.is_refused {
                forcing.end = Some(End::Left(Some(first)));
            }
        }
        holding.forced += taken.sent;
        holding.add(taken);
        if holding.forced >= FORCED_MAX {
            forcing.end.get_or_insert(End::Left(None));
        }
        taken
    }

    /// Goes on to the next page, or ends the walk.
    async fn turn_page(&self, forcing: &mut Forcing) {
        if forcing.pages > 0 && forcing.next_after.is_none() {
            forcing.end = Some(End::Through);
            return;
        }
        forcing.reached.clone_from(&forcing.next_after);
        forcing.listed.clear();
        if forcing.pages >= PAGES_MAX {
            forcing.end = Some(End::Left(None));
            return;
        }
        match self.ports.state.list(layout::PARKED, forcing.reached.as_deref(), PAGE_MAX).await {
            Ok(page) => forcing.add(page, self.ports.clock.now().minute() + LEFT_BEFORE_DUE_MINUTES),
            Err(error) => {
                tracing::error!(
                    error = &error as &dyn Error,
                    "parked deliveries not listed, the next run forces them"
                );
                forcing.end = Some(End::Left(None));
            }
        }
    }

    /// Removes the marks, or writes down how far the walk came.
    pub(crate) async fn end_forcing(&self, forcing: Forcing) {
        let ended = if matches!(forcing.end, Some(End::Through)) {
            self.end_marks(&forcing.marks).await
        } else {
            let reached = forcing.reached();
            self.note_marks(forcing.marks, reached).await
        };
        if let Err(error) = ended {
            tracing::error!(error = &error as &dyn Error, "marks not written, the next run forces once more");
        }
    }

    async fn marks(&self) -> Result<Vec<Mark>, PortError> {
        let mut marks = Vec::new();
        for listed in self.ports.state.list(layout::FORCING, None, MARKS_MAX).await?.objects {
            let Some(object) = self.ports.state.get(&listed.key).await? else { continue };
            let folder = listed.key.trim_start_matches(layout::FORCING).to_owned();
            // Whatever else it says, the walk begins anew.
            let MarkObject { after, identity } = serde_json::from_slice(&object.bytes).unwrap_or_default();
            let mark = Mark { key: listed.key, folder, etag: object.etag, after, identity };
            match self.is_of_another(&mark).await {
                Ok(false) => marks.push(mark),
                Ok(true) => self.end_marks(&[mark]).await?,
                Err(error) => {
                    let error = &error as &dyn Error;
                    tracing::error!(key = %mark.key, error, "not forced, the next run looks again whose mark it is");
                }
            }
        }
        Ok(marks)
    }

    /// Whether the subscription that was forced is another one than is there now: what is parked for this one
    /// waits for its own minute. What waits for one that is gone may go. Before a mark goes, the store is
    /// asked past every cache.
    async fn is_of_another(&self, mark: &Mark) -> Result<bool, RegistryError> {
        let Some((topic, subscription)) = layout::folder_owner(&mark.folder) else { return Ok(false) };
        let Some(identity) = mark.identity else { return Ok(false) };
        let now = self.ports.clock.now();
        let is_other = |found: Option<Arc<Topic>>| {
            let created = found?.subscription(&subscription).map(|subscription| subscription.created);
            created.map(|created| !created.accepted(Some(identity), now))
        };
        let asked_after = self.ports.clock.monotonic();
        let registry = &self.ports.registry;
        if !registry.topic(&topic).await.ok().and_then(is_other).unwrap_or_default() {
            return Ok(false);
        }
        Ok(is_other(registry.topic_asked_after(&topic, asked_after).await?).unwrap_or_default())
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
        for Mark { key, etag, after, identity, .. } in marks {
            let object = MarkObject { after: reached.clone().max(after), identity };
            let bytes = Bytes::from(serde_json::to_vec(&object).unwrap_or_default());
            match self.ports.state.put(&key, bytes, PutCondition::IfMatch(etag)).await {
                Err(error) if error.kind != ErrorKind::PreconditionFailed => return Err(error),
                Ok(_) | Err(_) => {}
            }
        }
        Ok(())
    }
}

impl Forcing {
    /// Whether there may be more to send in this run.
    pub(crate) fn is_open(&self) -> bool {
        self.end.is_none()
    }

    /// A page, of which what is due up to that minute is left alone.
    fn add(&mut self, page: ListPage, left_through: u64) {
        self.pages += 1;
        self.listed = page.objects.into_iter().map(|object| object.key).collect();
        let is_later = |key: &str| layout::parked_due_minute(key).is_some_and(|due| due > left_through);
        let is_marked = |key: &str| self.marks.iter().any(|mark| mark.asks_for(key));
        self.keys = self.listed.iter().filter(|key| is_later(key) && is_marked(key)).cloned().collect();
        self.next_after = page.next_after;
    }

    /// The last key that the next run need not look at again.
    fn reached(&self) -> Option<String> {
        let refused = match &self.end {
            Some(End::Left(key)) => key.as_ref(),
            _ => None,
        };
        let first_left = refused.or(self.keys.front());
        let is_done = |key: &&String| first_left.is_none_or(|left| *key < left);
        self.listed.iter().take_while(is_done).last().cloned().or_else(|| self.reached.clone())
    }
}

impl Mark {
    /// Whether an object is of its subscription, and was not looked at on its account.
    fn asks_for(&self, key: &str) -> bool {
        let is_new = self.after.as_deref().is_none_or(|after| key > after);
        is_new && layout::parked_folder(key) == Some(self.folder.as_str())
    }
}
