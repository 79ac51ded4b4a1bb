//! Dead letters that need nothing more: they were delivered again, or failed again and were written
//! anew.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use posthaste_core::model::{Entry, LetterPlace};
use posthaste_ports::{MessageId, Ports};
use posthaste_services::resolved::resolve_letters;
use posthaste_services::timeout_at;

use crate::dead_letters::DeadLetters;
use crate::letter::LoadedLetter;
use crate::notices::LEAVING_TIME;
use crate::receive::ResolvedMessage;

/// Lists that are written at once.
const LISTS_AT_ONCE_MAX: usize = 8;

/// Places of letters, by the key of their object.
type ByObject = BTreeMap<String, BTreeSet<usize>>;

impl<P: Ports> DeadLetters<P> {
    /// Resolves the letters that messages name. Answers the messages that are to come again.
    pub(crate) async fn resolve_delivered(
        &self,
        messages: Vec<ResolvedMessage>,
        deadline: Duration,
    ) -> Vec<MessageId> {
        let letters = messages.iter().flat_map(|message| &message.letters);
        let unwritten = self.resolve(by_object(letters), deadline).await;
        let (failed, done): (Vec<_>, Vec<_>) = messages.into_iter().partition(|message| {
            message
                .letters
                .iter()
                .any(|it| unwritten.contains(&it.object))
        });
        stream::iter(&done)
            .for_each_concurrent(LISTS_AT_ONCE_MAX, |done| self.acknowledge(&done.message))
            .await;
        failed.into_iter().map(|failed| failed.message.id).collect()
    }

    /// Resolves the letters that these, which are written, were made of: a replay takes the new
    /// ones. Where that fails, it takes both.
    pub(crate) async fn resolve_earlier(&self, letters: &[LoadedLetter], deadline: Duration) {
        let events = letters
            .iter()
            .flat_map(|read| &read.letter.dead.delivery.events);
        let earlier = by_object(events.filter_map(|event| event.marks.letter.as_ref()));
        if !earlier.is_empty() {
            self.resolve(earlier, deadline.saturating_sub(LEAVING_TIME))
                .await;
        }
    }

    /// Resolves the letters that events were made of which arrived late.
    pub(crate) async fn resolve_arrived(&self, arrived: &[Vec<Entry>], until: Duration) {
        let letters = by_object(
            arrived
                .iter()
                .flatten()
                .filter_map(|event| event.marks.letter.as_ref()),
        );
        if !letters.is_empty() {
            self.resolve(letters, until).await;
        }
    }

    /// Resolves letters, and answers the objects for which that failed.
    async fn resolve(&self, letters: ByObject, until: Duration) -> BTreeSet<String> {
        let resolved = letters.into_iter().map(|(object, letters)| async move {
            let resolved = resolve_letters(&self.ports.bucket, &object, &letters);
            let error: Box<dyn Error + Send + Sync> =
                match timeout_at(&self.ports.clock, until, Box::pin(resolved)).await {
                    Some(Ok(_)) => return None,
                    Some(Err(error)) => error.into(),
                    None => "out of time".into(),
                };
            let (letters, error) = (letters.len(), &*error as &dyn Error);
            tracing::error!(
                key = object,
                letters,
                error,
                "dead letters not marked as resolved"
            );
            Some(object)
        });
        stream::iter(resolved)
            .buffer_unordered(LISTS_AT_ONCE_MAX)
            .filter_map(std::future::ready)
            .collect()
            .await
    }
}

fn by_object<'a>(letters: impl Iterator<Item = &'a LetterPlace>) -> ByObject {
    let mut by_object = ByObject::new();
    for LetterPlace { object, index } in letters {
        by_object.entry(object.clone()).or_default().insert(*index);
    }
    by_object
}
