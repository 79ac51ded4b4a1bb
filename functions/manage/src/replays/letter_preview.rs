//! The dry run of a replay: counts what it would send, for a limited time.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRef;
use posthaste_core::api::ReplayPreview;
use posthaste_core::release::ReplaySelection;
use posthaste_core::stored::LetterReceiver;
use posthaste_ports::{Clock, Ports};
use posthaste_services::replay::letter_objects;

use crate::answer::ApiError;
use crate::letters::{LetterReader, SelectedLetter, SelectedLetters};
use crate::manage::Manage;
use crate::shared_port::SharedPort;

/// Longest time for counting. A read that begins just before its end still ends before the
/// request's time limit.
const COUNTING_TIME: Duration = Duration::from_secs(8);

/// Most objects that are counted, so that counting ends even if the clock stands still.
const OBJECTS_MAX: u64 = 10_000;

/// Most ids that are shown.
const IDS_MAX: usize = 10;

/// The count of the dead letters that a replay would send.
pub(super) struct LetterPreview<P: Ports> {
    dead_letters: SharedPort<P, P::DeadLetters>,
    clock: P::Clock,
    letters: LetterReader<P>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for LetterPreview<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            dead_letters: SharedPort::new(manage, |it| &it.dead_letters),
            clock: manage.clock.clone(),
            letters: LetterReader::from_ref(manage),
        }
    }
}

impl<P: Ports> LetterPreview<P> {
    /// Counts what a replay would send now.
    pub(super) async fn count_letters(
        &self,
        selection: &ReplaySelection,
        receiver: &LetterReceiver,
    ) -> Result<ReplayPreview, ApiError> {
        let end = self.clock.monotonic() + COUNTING_TIME;
        let mut preview = ReplayPreview::default();
        let mut after = None;
        let mut read = 0;
        loop {
            let page = letter_objects(&*self.dead_letters, selection, after.as_deref()).await?;
            preview.left_out.add_all(&page.left_out(None, None));
            for object in page.objects {
                if read == OBJECTS_MAX || self.clock.monotonic() >= end {
                    return Ok(preview);
                }
                read += 1;
                let letters = &self.letters;
                let selected = letters.select_letters(&object.key, selection, receiver);
                add_letters(&mut preview, selected.await?);
            }
            match page.next_after {
                Some(next) if self.clock.monotonic() < end => after = Some(next),
                Some(_) => return Ok(preview),
                None => {
                    return Ok(ReplayPreview {
                        is_complete: true,
                        ..preview
                    });
                }
            }
        }
    }
}

/// Adds the letters of an object.
fn add_letters(preview: &mut ReplayPreview, letters: SelectedLetters) {
    let SelectedLetters {
        selected,
        resolved,
        left_out,
        broken,
        ..
    } = letters;
    preview.objects += u64::from(!selected.is_empty());
    preview.resolved += resolved;
    preview.left_out.add_all(&left_out);
    for SelectedLetter { letter, .. } in selected {
        preview.events += 1;
        *preview.by_reason.entry(letter.reason.into()).or_default() += 1;
        if preview.ids.len() < IDS_MAX {
            preview.ids.push(letter.event.id().to_owned());
        }
    }
    for failure in broken {
        preview.add_failure(failure);
    }
}
