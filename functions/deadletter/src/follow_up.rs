//! The steps that follow the write of letters: the mark of their outage, the record in the delivery
//! log, the letters that they were made of, the count, and the end of their messages.

use std::sync::Arc;
use std::time::Duration;

use posthaste_core::api::notice::LetterFate;
use posthaste_core::delivery_log::EventChange;
use posthaste_ports::{MessageId, Ports};

use crate::deadlines::LEAVING_TIME;
use crate::delivery_log::{ChangeRecorder, RecordedChange, events_of};
use crate::finish::LetterFinisher;
use crate::letter::LoadedLetter;
use crate::missed::MissedLetters;
use crate::outage::OutageMarker;
use crate::resolved::LetterResolver;

/// Does what follows the write of letters.
pub(crate) struct LetterFollowUp<P: Ports> {
    pub(crate) outages: OutageMarker<P>,
    pub(crate) recorder: Arc<ChangeRecorder<P>>,
    pub(crate) resolver: Arc<LetterResolver<P>>,
    pub(crate) missed: Arc<MissedLetters<P>>,
    pub(crate) finisher: LetterFinisher<P>,
}

impl<P: Ports> LetterFollowUp<P> {
    /// Does all steps for letters of one subscription that were just written into this object.
    /// Returns the messages that come again as they are.
    pub(crate) async fn follow_up_written(
        &self,
        mut letters: Vec<LoadedLetter>,
        object: &str,
        deadline: Duration,
    ) -> Vec<MessageId> {
        let is_marked = Box::pin(self.outages.mark_outage(&mut letters, deadline)).await;
        Box::pin(self.record_written(&letters, object, deadline)).await;
        let resolved = self
            .resolver
            .resolve_earlier(&mut letters, object, deadline);
        Box::pin(resolved).await;
        Box::pin(self.missed.count_missed(&letters, deadline)).await;
        let fate = LetterFate::Written(object);
        let finished = self
            .finisher
            .finish_or_defer(letters, fate, is_marked, deadline);
        Box::pin(finished).await
    }

    /// Does what an earlier invocation could not do for letters that were written or dropped then:
    /// the mark and the notices. Returns the messages that come again as they are.
    pub(crate) async fn follow_up_again(
        &self,
        mut letters: Vec<LoadedLetter>,
        deadline: Duration,
    ) -> Vec<MessageId> {
        let first = letters.first();
        let object = first.and_then(|read| read.letter.dead.object.clone());
        let fate = object
            .as_deref()
            .map_or(LetterFate::Dropped, LetterFate::Written);
        let is_marked = Box::pin(self.outages.mark_outage(&mut letters, deadline)).await;
        self.finisher
            .finish_or_defer(letters, fate, is_marked, deadline)
            .await
    }

    /// Records where letters lie. The notices have their time after it.
    async fn record_written(&self, letters: &[LoadedLetter], object: &str, deadline: Duration) {
        let recorded = RecordedChange {
            events: events_of(letters),
            change: |letter| EventChange::dead_lettered(letter.dead.reason),
            object: Some(object),
        };
        self.recorder
            .record_change(recorded, deadline.saturating_sub(LEAVING_TIME))
            .await;
    }
}
