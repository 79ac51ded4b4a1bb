//! The numbers of waiting events that record adds up from the records of the delivery log: sixteen
//! objects, of which each subscription is in one.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::stream::{self, StreamExt};
use parking_lot::Mutex;
use posthaste_core::delivery_log::{
    COUNTED_MESSAGES_MAX, LookOutcome, PartChanges, WAITING_PARTS, WaitChanges, WaitingLook,
    rest_digest, waiting_part,
};
use posthaste_core::stored::{WAITING_LOOK, waiting_part_key};
use posthaste_ports::{Clock, ErrorKind, ObjectStore, PutCondition, QueueReceiver};

use super::WaitingEvents;
use super::numbers::{
    FoundPart, PARTS_AT_ONCE, WaitingBookError, found_look, parse_part, read_parts,
};
use crate::update::{ObjectEdit, update_object};

/// Changes of a part that are not written yet, message by message.
type UnwrittenChanges = BTreeMap<usize, Vec<(String, PartChanges)>>;

/// The book of waiting events, where record adds them up. Clones share what is not written yet.
#[derive(Debug, Clone)]
pub struct WaitingBook<S, C> {
    state: S,
    clock: C,
    unwritten: Arc<Mutex<UnwrittenChanges>>,
}

impl<S: ObjectStore, C: Clock> WaitingBook<S, C> {
    /// The numbers in this state bucket.
    pub fn new(state: S, clock: C) -> Self {
        Self {
            state,
            clock,
            unwritten: Arc::default(),
        }
    }

    /// Gathers the changes of a message whose records are in the log. Returns whether a part has
    /// gathered as much as it remembers, and should be written before more is gathered. If it could
    /// not be, its messages become one doubtful sum, so that no more is kept.
    pub fn gather_changes(&self, changes: WaitChanges) -> bool {
        let mut unwritten = self.unwritten.lock();
        let mut is_full = false;
        for (part, changes) in changes.into_parts() {
            let gathered = unwritten.entry(part).or_default();
            if gathered.len() >= COUNTED_MESSAGES_MAX {
                *gathered = vec![PartChanges::fold_messages(gathered)];
            }
            gathered.push(changes);
            is_full |= gathered.len() >= COUNTED_MESSAGES_MAX;
        }
        is_full
    }

    /// Writes what is gathered: a read and a write for each part that changes. What could not be
    /// written is written with the next call. A message whose write was cut off counts once.
    pub async fn write_gathered(&self) -> Result<(), WaitingBookError> {
        let parts: Vec<_> = self.unwritten.lock().keys().copied().collect();
        let writes: Vec<_> = parts
            .into_iter()
            .map(|part| Box::pin(self.write_part(part)))
            .collect();
        let written: Vec<_> = stream::iter(writes)
            .buffer_unordered(PARTS_AT_ONCE)
            .collect()
            .await;
        written.into_iter().collect()
    }

    async fn write_part(&self, part: usize) -> Result<(), WaitingBookError> {
        let gathered = self.unwritten.lock().get(&part).cloned();
        let Some(messages) = gathered else {
            return Ok(());
        };
        let now = self.clock.now();
        let key = waiting_part_key(part);
        let updated = update_object(&self.state, &key, |found| {
            let before = parse_part(found.as_ref())?;
            let mut after = before.clone();
            after.add_messages(&messages, now);
            if after == before {
                return Ok(ObjectEdit::Keep(()));
            }
            Ok(ObjectEdit::Write(after.render(), ()))
        });
        updated.await.map_err(WaitingBookError::Write)?;
        let mut unwritten = self.unwritten.lock();
        if let Some(gathered) = unwritten.get_mut(&part) {
            // More may have been gathered meanwhile, or another call has written the same.
            let written = gathered.iter().zip(&messages);
            let written = written.take_while(|(one, other)| one == other).count();
            gathered.drain(..written);
            if gathered.is_empty() {
                unwritten.remove(&part);
            }
        }
        Ok(())
    }

    /// Looks whether everything is at rest, if that is due: nothing in these queues, and no change
    /// for some minutes. If the next look sees the same again, what is parked and held is all that
    /// waits, and the numbers are set to that. One look alone may overlook what is on its way from one
    /// place to another.
    pub async fn compare_if_due<Q: QueueReceiver>(
        &self,
        deliveries: &Q,
        others: &[&Q],
    ) -> Result<(), WaitingBookError> {
        let found = Box::pin(self.state.get(WAITING_LOOK));
        let (look, etag) = found_look(found.await)?;
        let now = self.clock.now();
        if !look.is_due(now) {
            return Ok(());
        }
        let outcome = if !look.is_comparison_due(now) {
            LookOutcome::NotCompared
        } else if self.is_at_rest(deliveries, others).await? {
            self.compare_with_list(&look, deliveries).await?
        } else {
            LookOutcome::Busy
        };
        let next = look.next(now, outcome);
        let condition = etag.map_or(PutCondition::IfAbsent, PutCondition::IfMatch);
        let put = Box::pin(self.state.put(WAITING_LOOK, next.render(), condition));
        match put.await {
            // Another run has looked.
            Err(error) if error.kind == ErrorKind::PreconditionFailed => Ok(()),
            put => put.map(drop).map_err(WaitingBookError::Look),
        }
    }

    async fn is_at_rest<Q: QueueReceiver>(
        &self,
        deliveries: &Q,
        others: &[&Q],
    ) -> Result<bool, WaitingBookError> {
        if !self.unwritten.lock().is_empty() {
            return Ok(false);
        }
        for queue in [&[deliveries], others].concat() {
            let counts = queue.counts().await.map_err(WaitingBookError::Read)?;
            if counts.total() > 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Compares the numbers with what is listed, and sets them to it if the last look saw the same.
    async fn compare_with_list<Q: QueueReceiver>(
        &self,
        look: &WaitingLook,
        deliveries: &Q,
    ) -> Result<LookOutcome, WaitingBookError> {
        let now = self.clock.now();
        let parts = read_parts(&self.state, (0..WAITING_PARTS).collect()).await?;
        if !parts.values().all(|found| found.part.is_quiet(now)) {
            return Ok(LookOutcome::Busy);
        }
        let events = WaitingEvents {
            deliveries,
            // The list is of objects alone.
            slow_deliveries: None,
            state: &self.state,
            clock: &self.clock,
            recorded_until: None,
        };
        let listed = events
            .count_listed()
            .await
            .map_err(WaitingBookError::Read)?;
        let Some(listed) = listed else {
            return Ok(LookOutcome::Busy);
        };
        let digest = rest_digest(&listed, parts.values().map(|found| &found.part));
        let corrections = find_corrections(parts, listed);
        if corrections.is_empty() && look.is_exact(now) {
            return Ok(LookOutcome::Exact);
        }
        if !look.has_seen(&digest, now) {
            return Ok(LookOutcome::Rest(digest));
        }
        self.write_corrections(corrections).await
    }

    /// Writes parts with the numbers of the list. A part that another process changed meanwhile is
    /// left to the next look.
    async fn write_corrections(
        &self,
        corrections: BTreeMap<usize, FoundPart>,
    ) -> Result<LookOutcome, WaitingBookError> {
        for (number, FoundPart { part, etag }) in corrections {
            let condition = etag.map_or(PutCondition::IfAbsent, PutCondition::IfMatch);
            let key = waiting_part_key(number);
            let put = Box::pin(self.state.put(&key, part.render(), condition));
            match put.await {
                Ok(_) => {}
                Err(error) if error.kind == ErrorKind::PreconditionFailed => {
                    return Ok(LookOutcome::Busy);
                }
                Err(error) => return Err(WaitingBookError::Look(error)),
            }
        }
        Ok(LookOutcome::Exact)
    }
}

/// The parts whose numbers are not those of what is listed, with these numbers.
fn find_corrections(
    parts: BTreeMap<usize, FoundPart>,
    listed: BTreeMap<String, u64>,
) -> BTreeMap<usize, FoundPart> {
    let mut by_part = BTreeMap::<usize, BTreeMap<String, u64>>::new();
    for (key, events) in listed {
        let part = by_part.entry(waiting_part(&key)).or_default();
        part.insert(key, events);
    }
    let mut corrections = BTreeMap::new();
    for (number, FoundPart { part, etag }) in parts {
        let corrected = part.with_exact_counts(&by_part.remove(&number).unwrap_or_default());
        if corrected != part {
            let part = corrected;
            corrections.insert(number, FoundPart { part, etag });
        }
    }
    corrections
}

#[cfg(test)]
mod tests;
