//! Marks of outages: letters that were given up while their endpoint was not well are counted in
//! one object of their subscription, by which wake recovers them.
//!
//! A mark is written after its letters. Letters that cannot be counted leave a message that names
//! their object, so that only the mark and the notices are made the next time. A crash between the
//! two brings the letters again, into a second object: at least once.

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;

use posthaste_core::model::FormatError;
use posthaste_core::release::recovery::{MarkIsGoing, OutageLetters};
use posthaste_core::stored::{RecoveryMark, layout};
use posthaste_ports::{Clock, ErrorKind, PortError, Ports};
use posthaste_services::{ObjectEdit, UpdateError, signal_wake, timeout_at, update_object};

use crate::dead_letters::{DeadLetters, LEAVING_TIME};
use crate::letter::LoadedLetter;

/// The longest time for a mark. Together with the times of records, of the book and
/// [`LEAVING_TIME`], it takes less than the time that is reserved for writing.
const MARK_TIME: Duration = Duration::from_secs(3);

/// Why letters are not counted yet.
#[derive(Debug, thiserror::Error)]
enum MarkError {
    /// The mark was written by a newer program.
    #[error("failed to understand the mark")]
    Newer(#[source] FormatError),
    #[error(transparent)]
    Going(#[from] MarkIsGoing),
}

impl<P: Ports> DeadLetters<P> {
    /// Counts letters of one subscription, which are written, in the mark of their outage. Answers
    /// whether that is done; the letters say then that they are of none.
    pub(crate) async fn mark_outage(
        &self,
        letters: &mut [LoadedLetter],
        deadline: Duration,
    ) -> bool {
        let Some(outage) = self.outage_of(letters) else {
            return true;
        };
        let clock = &self.ports.clock;
        let until = deadline.saturating_sub(LEAVING_TIME);
        let until = until.min(clock.monotonic() + MARK_TIME);
        let marked = timeout_at(clock, until, Box::pin(self.update_mark(&outage))).await;
        let late = || Err(PortError::new("mark an outage in time", ErrorKind::TimedOut).into());
        if let Err(error) = marked.unwrap_or_else(late) {
            let error = &*error as &dyn Error;
            tracing::error!(
                topic = %outage.topic, subscription = %outage.subscription,
                letters = outage.count_uncancelled(None), error,
                "dead letters of an outage not counted yet, recovery does not know of them"
            );
            return false;
        }
        for read in letters {
            read.letter.dead.outage_since = None;
        }
        true
    }

    /// What is counted of letters; `None` if none is of an outage.
    fn outage_of(&self, letters: &[LoadedLetter]) -> Option<OutageLetters> {
        let of_outage = || {
            let letters = letters.iter();
            letters.filter_map(|read| Some((read, read.letter.dead.outage_since?)))
        };
        // The subscription may have been created again meanwhile.
        let newest = of_outage().max_by_key(|(read, _)| read.letter.dead.delivery.published_at)?;
        let delivery = &newest.0.letter.dead.delivery;
        let mut outages = BTreeMap::new();
        for (read, since) in of_outage() {
            *outages.entry(since).or_default() += read.payloads.len() as u64;
        }
        Some(OutageLetters {
            topic: delivery.topic.clone(),
            subscription: delivery.subscription.clone(),
            identity: delivery.identity,
            accepted_at: delivery.published_at,
            outages,
            written_at: self.ports.clock.now(),
        })
    }

    async fn update_mark(
        &self,
        outage: &OutageLetters,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let state = &self.ports.state;
        let key = layout::recovery_mark_key(&outage.topic, &outage.subscription);
        let updated = update_object(state, &key, |found| {
            let found = found.map(|object| RecoveryMark::parse(&object.bytes));
            let found = match found.transpose() {
                Ok(found) => found,
                // Letters that it counted are found by the time of the outage.
                Err(FormatError::Malformed(..)) => None,
                Err(error @ FormatError::Newer(_)) => return Err(MarkError::Newer(error)),
            };
            Ok(match outage.updated_mark(found)? {
                Some(mark) => {
                    let is_new = mark.letters == outage.count_uncancelled(mark.cancelled_at);
                    ObjectEdit::Write(mark.render(), is_new.then_some(mark.outage_since))
                }
                None => ObjectEdit::Keep(None),
            })
        });
        let new_since = match updated.await {
            Ok(updated) => updated.answer,
            Err(UpdateError::Edit(error)) => return Err(error.into()),
            Err(error) => return Err(error.into()),
        };
        if let Some(outage_since) = new_since {
            tracing::warn!(
                topic = %outage.topic, subscription = %outage.subscription, %outage_since,
                "dead letters of an outage are recovered once the endpoint is well"
            );
            if let Err(error) = signal_wake(state, self.ports.clock.now()).await {
                let error = &error as &dyn Error;
                tracing::warn!(
                    error,
                    "wake not told of an outage, it may look minutes later"
                );
            }
        }
        Ok(())
    }
}
