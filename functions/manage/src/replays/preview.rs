//! The dry run of a replay: counts what it would send, for a limited time.

use std::time::Duration;

use posthaste_core::api::{ReplayFailure, ReplayPreview};
use posthaste_core::model::{Created, REPLAY_FAILURES_SHOWN_MAX, Schema};
use posthaste_core::release::Selection;
use posthaste_core::stored::dead_letter::restore_all;
use posthaste_ports::{Clock, ErrorKind, Object, ObjectStore, PortError, Ports};
use posthaste_services::replay::{LetterObject, letter_objects};

use crate::answer::ApiError;
use crate::manage::Manage;

/// Longest time for counting. A read that begins just before its end still ends before the request's time
/// limit.
const COUNTING_TIME: Duration = Duration::from_secs(8);

/// Most objects that are counted, so that counting ends even if the clock stands still.
const OBJECTS_MAX: u64 = 10_000;

/// Most ids that are shown.
const IDS_MAX: usize = 10;

/// A subscription as a replay sees it: the schema in which it receives events, and its creation.
type Receiver<'a> = (Schema, &'a Created);

impl<P: Ports> Manage<P> {
    /// Counts what a replay would send now.
    pub(super) async fn preview(
        &self,
        selection: &Selection,
        subscription: Receiver<'_>,
    ) -> Result<ReplayPreview, ApiError> {
        let end = self.clock.monotonic() + COUNTING_TIME;
        let (mut preview, mut after, mut read) = (ReplayPreview::default(), None, 0);
        loop {
            let page = letter_objects(&self.dead_letters, selection, after.as_deref()).await?;
            for object in page.objects {
                if read == OBJECTS_MAX || self.clock.monotonic() >= end {
                    return Ok(preview);
                }
                read += 1;
                self.count(&object, selection, subscription, &mut preview).await?;
            }
            match page.next_after {
                Some(next) if self.clock.monotonic() < end => after = Some(next),
                Some(_) => return Ok(preview),
                None => return Ok(ReplayPreview { is_complete: true, ..preview }),
            }
        }
    }

    /// Adds the letters of an object.
    async fn count(
        &self,
        object: &LetterObject,
        selection: &Selection,
        (output, created): Receiver<'_>,
        preview: &mut ReplayPreview,
    ) -> Result<(), ApiError> {
        let key = &object.key;
        let bytes = match self.dead_letters.get(key).await {
            Ok(Some(Object { bytes, .. })) => bytes,
            Ok(None) | Err(PortError { kind: ErrorKind::Invalid, .. }) => {
                fail(preview, key, None, "there is no such object");
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let letters = match restore_all(&bytes, output) {
            Ok(letters) => letters,
            Err(error) => {
                fail(preview, key, None, &error.to_string());
                return Ok(());
            }
        };
        let before = preview.events;
        for (index, letter) in letters.into_iter().enumerate() {
            match letter {
                Ok(letter) if selection.takes_event(&letter, created) => {
                    preview.events += 1;
                    *preview.by_reason.entry(letter.reason.into()).or_default() += 1;
                    if preview.ids.len() < IDS_MAX {
                        preview.ids.push(letter.event.id().to_owned());
                    }
                }
                Ok(_) => {}
                Err(error) => fail(preview, key, Some(index), &error.to_string()),
            }
        }
        preview.objects += u64::from(preview.events > before);
        Ok(())
    }
}

fn fail(preview: &mut ReplayPreview, key: &str, index: Option<usize>, detail: &str) {
    preview.failed += 1;
    if preview.failures.len() < REPLAY_FAILURES_SHOWN_MAX {
        preview.failures.push(ReplayFailure { key: key.to_owned(), index, detail: detail.to_owned() });
    }
}
