//! Marks of outages: letters that were given up while their endpoint was not well are counted in
//! one object of their subscription, by which wake recovers them.
//!
//! A mark is written after its letters. Letters that cannot be counted leave a message that names
//! their object, so that only the mark and the notices are made the next time. A crash between the
//! two brings the letters again, into a second object: at least once.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use posthaste_core::model::{DeadLetter, Delivery, FormatError};
use posthaste_core::release::recovery::{MarkIsGoing, OutageLetters};
use posthaste_core::stored::{RecoveryMark, layout};
use posthaste_ports::{Clock, ErrorKind, PortError, Ports};
use posthaste_services::{ObjectEdit, UpdateError, signal_wake, timeout_at, update_object};

use crate::deadlines::LEAVING_TIME;
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

/// Counts letters in the marks of their outages.
pub(crate) struct OutageMarker<P: Ports> {
    /// The state bucket, which has the marks.
    pub(crate) state: Arc<P::Store>,
    pub(crate) clock: P::Clock,
}

impl<P: Ports> OutageMarker<P> {
    pub(crate) fn new(state: Arc<P::Store>, clock: P::Clock) -> Self {
        Self { state, clock }
    }

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
        let clock = &self.clock;
        let until = deadline.saturating_sub(LEAVING_TIME);
        let until = until.min(clock.monotonic() + MARK_TIME);
        let marked = timeout_at(clock, until, Box::pin(self.update_mark(&outage))).await;
        if let Err(error) = marked.unwrap_or_else(|| Err(out_of_time().into())) {
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

    /// Counts of the letters, by outage; `None` if none is of an outage.
    fn outage_of(&self, letters: &[LoadedLetter]) -> Option<OutageLetters> {
        let mut newest: Option<&Delivery> = None;
        let mut outages = BTreeMap::new();
        for read in letters {
            let DeadLetter {
                delivery,
                outage_since: Some(since),
                ..
            } = &read.letter.dead
            else {
                continue;
            };
            // The subscription may have been created again meanwhile.
            if newest.is_none_or(|newest| newest.published_at <= delivery.published_at) {
                newest = Some(delivery);
            }
            *outages.entry(*since).or_default() += read.payloads.len() as u64;
        }
        let delivery = newest?;
        Some(OutageLetters {
            topic: delivery.topic.clone(),
            subscription: delivery.subscription.clone(),
            identity: delivery.identity,
            accepted_at: delivery.published_at,
            outages,
            written_at: self.clock.now(),
        })
    }

    async fn update_mark(
        &self,
        outage: &OutageLetters,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let state = &*self.state;
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
            if let Err(error) = signal_wake(state, self.clock.now()).await {
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

fn out_of_time() -> PortError {
    PortError::new("mark an outage in time", ErrorKind::TimedOut)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{MemoryPorts, NOW, clock, deadline, finish, letter, port, stored};
    use bytes::Bytes;
    use posthaste_core::model::Timestamp;
    use posthaste_testkit::memory::MemoryStore;
    use posthaste_testkit::records::{subscription_name, topic_name};
    use posthaste_testkit::{CallFault, FaultPlan};

    /// A letter of two events that was given up in an outage.
    fn letter_of_outage(since: Option<Timestamp>) -> LoadedLetter {
        let payloads = vec![stored("payloads/a", 2), stored("payloads/b", 2)];
        let mut letter = letter("a", payloads);
        letter.dead.outage_since = since;
        LoadedLetter {
            letter,
            payloads: vec![Bytes::from_static(b"{}"); 2],
        }
    }

    fn mark(store: &MemoryStore, plan: &FaultPlan, letters: &mut [LoadedLetter]) -> bool {
        let marker: OutageMarker<MemoryPorts> = OutageMarker {
            state: port(store, plan),
            clock: clock(),
        };
        finish(marker.mark_outage(letters, deadline()))
    }

    #[test]
    fn letters_of_an_outage_are_counted_in_its_mark() {
        let store = MemoryStore::like_s3(7);
        let mut letters = [letter_of_outage(Some(NOW)), letter_of_outage(None)];
        assert!(mark(&store, &FaultPlan::none(), &mut letters));
        let key = layout::recovery_mark_key(&topic_name("orders"), &subscription_name("billing"));
        let objects = store.objects_under(&key);
        let found = RecoveryMark::parse(&objects[0].1).unwrap();
        assert_eq!((found.outage_since, found.letters), (NOW, 2));
        assert_eq!(letters[0].letter.dead.outage_since, None);
    }

    #[test]
    fn letters_of_no_outage_cost_no_mark() {
        let store = MemoryStore::like_s3(7);
        assert!(mark(
            &store,
            &FaultPlan::none(),
            &mut [letter_of_outage(None)]
        ));
        assert!(store.objects_under("").is_empty());
    }

    #[test]
    fn letters_that_cannot_be_counted_stay_of_their_outage() {
        let store = MemoryStore::like_s3(7);
        let plan = FaultPlan::by(|_| Some(CallFault::Before(ErrorKind::Other)));
        let mut letters = [letter_of_outage(Some(NOW))];
        assert!(!mark(&store, &plan, &mut letters));
        assert_eq!(letters[0].letter.dead.outage_since, Some(NOW));
    }
}
