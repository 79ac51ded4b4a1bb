//! Selection of the events of an object that are sent now, and their results.

use std::error::Error;

use bytes::Bytes;
use posthaste_core::api::LeftOutReason;
use posthaste_core::model::{Subscription, SubscriptionCreation};
use posthaste_core::release::recovery::RecoveryRules;
use posthaste_core::release::{ReplayMessage, ReplaySelection, SelectedLetter};
use posthaste_core::stored::dead_letter::restore_all;
use posthaste_core::stored::{NotDeadLetters, ReplayProgress, ResolvedLetters, RestoredLetter};
use posthaste_ports::{ErrorKind, PortError};

/// The reason why a letter in a place that was asked for cannot be sent.
const NO_SUCH_PLACE: &str = "the object has no letter in this place";

/// An object of dead letters.
#[derive(Debug)]
pub(in crate::jobs) struct LoadedLetters {
    pub(super) key: String,
    pub(super) bytes: Bytes,
    /// Those that are left out.
    pub(super) resolved: ResolvedLetters,
}

/// A part of an object's events, in order.
#[derive(Debug, Default)]
pub(in crate::jobs) struct PickedLetters {
    /// Events that were asked for.
    pub(in crate::jobs) events: Vec<SelectedLetter>,
    /// Events that cannot be sent again, by their place, with the reason.
    broken: Vec<(usize, String)>,
    /// The places of events that were asked for, but are resolved.
    resolved: Vec<usize>,
    /// The places of events that were not asked for, with the reason.
    left_out: Vec<(usize, LeftOutReason)>,
    /// The places that were asked for, and that the object does not have.
    missing: Vec<usize>,
    /// The place after the last that was looked at.
    end: usize,
    /// True if that is the object's end.
    is_whole: bool,
}

/// The choice of events.
#[derive(Debug, Clone, Copy)]
pub(in crate::jobs) struct LetterSelector<'a> {
    /// The selection that was asked for.
    pub(in crate::jobs) selection: &'a ReplaySelection,
    /// The rules of recovery, where nobody asked.
    pub(in crate::jobs) recovery: Option<&'a RecoveryRules>,
}

impl LetterSelector<'_> {
    /// Why the letter in this place is left out.
    fn leaves_out(
        &self,
        letter: &RestoredLetter,
        object: &str,
        index: usize,
        created: &SubscriptionCreation,
    ) -> Option<LeftOutReason> {
        self.selection
            .leaves_out_event(letter, created)
            .or_else(|| self.recovery?.leaves_out(letter, object, index))
    }
}

/// Picks from the events after `done` until as many were found as there is room for.
pub(in crate::jobs) fn pick_letters(
    LoadedLetters {
        key,
        bytes,
        resolved,
    }: &LoadedLetters,
    subscription: &Subscription,
    chosen: LetterSelector<'_>,
    done: usize,
    room: usize,
) -> Result<PickedLetters, NotDeadLetters> {
    let mut picked = PickedLetters {
        end: done,
        is_whole: true,
        ..PickedLetters::default()
    };
    let letters = restore_all(bytes, subscription.delivery_schema)?;
    if let Some(places) = chosen.selection.named_letters(key) {
        picked.missing = places.range(letters.len()..).copied().collect();
    }
    for (index, letter) in letters.into_iter().enumerate().skip(done) {
        if !chosen.selection.may_mean_letter(key, index) {
            picked.end = index + 1;
            continue;
        }
        let letter = letter.map(|letter| {
            let reason = chosen.leaves_out(&letter, key, index, &subscription.created);
            reason.map_or(Ok(letter), Err)
        });
        match letter {
            Ok(Ok(letter)) => {
                if resolved.is_resolved(index) {
                    picked.resolved.push(index);
                    picked.end = index + 1;
                    continue;
                }
                if picked.events.len() == room {
                    picked.is_whole = false;
                    break;
                }
                picked.events.push(SelectedLetter { index, letter });
            }
            Ok(Err(reason)) => picked.left_out.push((index, reason)),
            Err(error) => picked.broken.push((index, error_with_causes(&error))),
        }
        picked.end = index + 1;
    }
    Ok(picked)
}

impl PickedLetters {
    /// Notes what was sent: everything before the first event that must be tried again. Answers the
    /// error of that event.
    pub(super) fn record_results(
        self,
        key: &str,
        messages: &[ReplayMessage],
        sent: Vec<Result<(), PortError>>,
        progress: &mut ReplayProgress,
    ) -> Option<PortError> {
        let mut failed = None;
        let mut refused = Vec::new();
        let mut queued = Vec::new();
        for (message, sent) in messages.iter().zip(sent) {
            match sent {
                Ok(()) => queued.extend(&message.indexes),
                // The queue will never take it.
                Err(error) if error.kind == ErrorKind::Invalid => {
                    refused.extend(
                        message
                            .indexes
                            .iter()
                            .map(|index| (*index, error_with_causes(&error))),
                    );
                }
                Err(error) => {
                    let first = message.indexes.first().copied().unwrap_or(self.end);
                    if failed.as_ref().is_none_or(|(earlier, _)| first < *earlier) {
                        failed = Some((first, error));
                    }
                }
            }
        }
        let end = failed.as_ref().map_or(self.end, |(first, _)| *first);
        progress.found += count_items(self.events.iter().filter(|event| event.index < end));
        progress.queued += count_items(queued.into_iter().filter(|index: &usize| *index < end));
        progress.resolved += count_items(self.resolved.into_iter().filter(|index| *index < end));
        let left_out = self.left_out.into_iter();
        let left_out = left_out.filter(|(index, _)| *index < end);
        left_out.for_each(|(_, reason)| progress.left_out.add(reason));
        for (index, why) in self
            .broken
            .into_iter()
            .chain(refused)
            .filter(|(index, _)| *index < end)
        {
            progress.add_failure(key, Some(index), why);
        }
        if failed.is_none() && self.is_whole {
            for index in self.missing {
                progress.add_failure(key, Some(index), NO_SUCH_PLACE.to_owned());
            }
            progress.finish_object(key);
        } else {
            progress.reach_event(key, end);
        }
        failed.map(|(_, error)| error)
    }
}

fn count_items(items: impl Iterator) -> u64 {
    u64::try_from(items.count()).unwrap_or(u64::MAX)
}

/// An error with its causes, in one line.
pub(super) fn error_with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
