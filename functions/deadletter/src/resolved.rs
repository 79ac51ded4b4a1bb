//! Dead letters that need nothing more: they were delivered again, or failed again and were written
//! anew. An event of a subscription that was not delivered has one letter that is not resolved.
//!
//! A newer letter is written first, and then the one that it was made of is resolved. That says which
//! letter is the newer one: several deliveries may have been made of one letter, because it was sent
//! again while one of them still waited. If another of them was given up before, its letter is
//! resolved too, and so on: the newest is left. Once one of them is delivered, none is.
//!
//! A letter that cannot be resolved leaves a message in the dead-letter queue, as one that was
//! delivered does.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use posthaste_core::model::{DeliveryEntry, LetterPlace};
use posthaste_core::stored::resolved_message::ResolvedLetter;
use posthaste_ports::{MessageId, Ports};
use posthaste_services::resolved::resolve_each;
use posthaste_services::timeout_at;

use crate::deadlines::LEAVING_TIME;
use crate::letter::{LoadedLetter, ReceivedLetter};
use crate::receive::ResolvedMessage;
use crate::settle::MessageSettler;

/// Lists that are written at once.
const LISTS_AT_ONCE_MAX: usize = 8;

/// Most letters of one event that are looked at one after the other: more than it has lives. Each
/// is a day long, or as long as its subscription says.
const LIVES_MAX: usize = 100;

/// Resolves letters.
pub(crate) struct LetterResolver<P: Ports> {
    /// The dead-letter bucket.
    pub(crate) bucket: Arc<P::DeadLetters>,
    pub(crate) clock: P::Clock,
    pub(crate) settler: Arc<MessageSettler<P>>,
}

/// A letter that is to be resolved.
struct ResolveStep {
    /// The index of what this is for.
    of: usize,
    letter: LetterPlace,
    /// The newer letter of its event; `None` if that was delivered.
    newer: Option<LetterPlace>,
}

impl<P: Ports> LetterResolver<P> {
    /// Resolves the letters that messages name. Returns the messages that are to come again.
    pub(crate) async fn resolve_delivered(
        &self,
        messages: Vec<ResolvedMessage>,
        deadline: Duration,
    ) -> Vec<MessageId> {
        let named = messages.iter().enumerate().flat_map(|(of, message)| {
            let letters = message.letters.iter();
            letters.map(move |letter| (of, letter.clone()))
        });
        let unresolved = self.resolve_letters(named.collect(), deadline).await;
        let mut failed = Vec::new();
        let mut done = Vec::new();
        for (of, ResolvedMessage { message, .. }) in messages.into_iter().enumerate() {
            if unresolved.contains(&of) {
                failed.push(message.id);
            } else {
                done.push(message);
            }
        }
        stream::iter(&done)
            .for_each_concurrent(LISTS_AT_ONCE_MAX, |done| self.settler.acknowledge(done))
            .await;
        failed
    }

    /// Resolves the letters that these, which are written into this object, were made of. What
    /// cannot be resolved is noted in them.
    pub(crate) async fn resolve_earlier(
        &self,
        letters: &mut [LoadedLetter],
        object: &str,
        deadline: Duration,
    ) {
        let mut index = 0;
        let mut made_of = Vec::new();
        let mut of_letter = Vec::new();
        for (at, read) in letters.iter().enumerate() {
            for event in &read.letter.dead.delivery.events {
                let object = object.to_owned();
                let newer = LetterPlace { object, index };
                index += 1;
                if let Some(letter) = event.marks.letter.clone() {
                    let newer = Some(newer);
                    made_of.push((made_of.len(), ResolvedLetter { letter, newer }));
                    of_letter.push(at);
                }
            }
        }
        let until = deadline.saturating_sub(LEAVING_TIME);
        for of in self.resolve_letters(made_of.clone(), until).await {
            let unresolved = &mut letters[of_letter[of]].letter.unresolved;
            unresolved.push(made_of[of].1.clone());
        }
    }

    /// Resolves the letters that events were made of which arrived late, those of each of these
    /// letters. What cannot be resolved is noted in them.
    pub(crate) async fn resolve_arrived(
        &self,
        letters: &mut [ReceivedLetter],
        arrived: &[Vec<DeliveryEntry>],
        until: Duration,
    ) {
        let made_of: Vec<_> = arrived
            .iter()
            .map(|entries| delivered_letters(entries))
            .collect();
        let all = made_of.iter().enumerate();
        let all = all.flat_map(|(of, letters)| letters.iter().map(move |it| (of, it.clone())));
        for of in self.resolve_letters(all.collect(), until).await {
            letters[of].unresolved.extend(made_of[of].iter().cloned());
        }
    }

    /// Resolves letters, each for what its index says, and with them the other letters of their
    /// events. Returns the indexes of those for which that failed.
    async fn resolve_letters(
        &self,
        letters: Vec<(usize, ResolvedLetter)>,
        until: Duration,
    ) -> BTreeSet<usize> {
        let mut failed = BTreeSet::new();
        let first = letters.into_iter().map(|(of, named)| ResolveStep {
            of,
            letter: named.letter,
            newer: named.newer,
        });
        let mut steps: Vec<_> = first.collect();
        for _ in 0..LIVES_MAX {
            if steps.is_empty() {
                return failed;
            }
            let mut by_object = BTreeMap::<String, Vec<ResolveStep>>::new();
            for step in steps {
                let of_object = by_object.entry(step.letter.object.clone());
                of_object.or_default().push(step);
            }
            let taken = by_object
                .into_iter()
                .map(|(object, steps)| self.take_steps(object, steps, until));
            let taken: Vec<_> = stream::iter(taken)
                .buffer_unordered(LISTS_AT_ONCE_MAX)
                .collect()
                .await;
            steps = Vec::new();
            for taken in taken {
                match taken {
                    Ok(next) => steps.extend(next),
                    Err(of) => failed.extend(of),
                }
            }
        }
        failed.extend(steps.into_iter().map(|step| step.of));
        failed
    }

    /// Resolves letters of one object. Returns what is to be done next or, if that failed, the
    /// indexes of what they are for.
    async fn take_steps(
        &self,
        object: String,
        steps: Vec<ResolveStep>,
        until: Duration,
    ) -> Result<Vec<ResolveStep>, Vec<usize>> {
        let letters = steps.iter().map(|it| (it.letter.index, it.newer.clone()));
        let letters: Vec<_> = letters.collect();
        let resolved = resolve_each(&*self.bucket, &object, &letters);
        let error: Box<dyn Error + Send + Sync> =
            match timeout_at(&self.clock, until, Box::pin(resolved)).await {
                Some(Ok(stood)) => {
                    let next = steps.into_iter().zip(stood);
                    let next = next.filter_map(|(step, stood)| {
                        let letter = stood?;
                        Some(ResolveStep { letter, ..step })
                    });
                    return Ok(next.collect());
                }
                Some(Err(error)) => error.into(),
                None => "out of time".into(),
            };
        let error = &*error as &dyn Error;
        tracing::error!(
            key = object,
            letters = letters.len(),
            error,
            "dead letters not marked as resolved"
        );
        Err(steps.into_iter().map(|step| step.of).collect())
    }
}

/// The letters that these events were made of, now that the events were delivered.
fn delivered_letters(entries: &[DeliveryEntry]) -> Vec<ResolvedLetter> {
    let letters = entries.iter().filter_map(|it| it.marks.letter.clone());
    let delivered = letters.map(|letter| ResolvedLetter {
        letter,
        newer: None,
    });
    delivered.collect()
}
