//! The tries of subscriptions: gathered in memory, and added to the book of those that fail.
//!
//! In `serve` deliver notes each try, and wake writes what was gathered, once a minute. On AWS
//! record notes what it reads in the delivery log, and writes at the end of a batch. An arrival is
//! counted only where something fails, so nothing is written or read for what is healthy, except
//! that record looks at the book once a minute.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use posthaste_core::health::{HealthBook, SeenTry, SubscriptionTries, TryResult};
use posthaste_core::model::FormatError;
use posthaste_core::stored::HEALTH;
use posthaste_ports::{Clock, ETag, ObjectStore, PortError, RevalidatedObject};

use crate::update::{ObjectEdit, UpdateError, get_newer, update_object};

/// Most subscriptions whose tries are gathered between two writes: twice as many as the book takes.
/// Tries of others are not counted until then.
const GATHERED_MAX: usize = 4000;

/// The age at which record reads the book again, to learn what another instance wrote.
pub const BOOK_MAX_AGE: Duration = Duration::from_mins(1);

/// Reasons for which the book was not read or written.
#[derive(Debug, thiserror::Error)]
pub enum HealthError {
    /// The book could not be read.
    #[error("failed to read what is known of failing subscriptions")]
    Read(#[source] PortError),
    /// A newer program wrote the book.
    #[error("failed to understand what is known of failing subscriptions")]
    Object(#[source] FormatError),
    /// The book could not be changed.
    #[error("failed to write what is known of failing subscriptions")]
    Write(#[source] UpdateError<FormatError>),
}

/// The tries of subscriptions. Clones share what is gathered.
#[derive(Debug, Clone)]
pub struct ArrivalTracker<S, C> {
    store: S,
    clock: C,
    /// Whether tries are noted here.
    counts: bool,
    memory: Arc<ArrivalMemory>,
}

#[derive(Debug)]
struct ArrivalMemory {
    /// Whether arrivals are worth a look: something fails, or the book was not read yet.
    is_watching: AtomicBool,
    state: Mutex<ArrivalState>,
}

#[derive(Debug, Default)]
struct ArrivalState {
    gathered: BTreeMap<String, SubscriptionTries>,
    /// The part that a write may have added already, with the name under which the book would know
    /// it. It is kept while the write is under way, so that one that is cut off loses nothing.
    unsure: Option<(String, BTreeMap<String, SubscriptionTries>)>,
    /// The subscriptions in the book; `None` before the first read.
    known: Option<BTreeSet<String>>,
    etag: Option<ETag>,
    /// By the clock's `monotonic`.
    checked_at: Option<Duration>,
}

impl ArrivalState {
    /// Whether the book has this subscription, as far as is known.
    fn is_in_book(&self, key: &str) -> bool {
        self.known.as_ref().is_none_or(|known| known.contains(key))
    }

    /// Whether the book has this subscription, or may have it with the write that is under way.
    fn is_known(&self, key: &str) -> bool {
        let unsure = self.unsure.as_ref();
        self.is_in_book(key) || unsure.is_some_and(|(_, tries)| tries.contains_key(key))
    }
}

impl Default for ArrivalMemory {
    fn default() -> Self {
        Self {
            is_watching: AtomicBool::new(true),
            state: Mutex::default(),
        }
    }
}

impl<S: ObjectStore, C: Clock> ArrivalTracker<S, C> {
    /// The tries of subscriptions whose book is in this state bucket, where other processes note
    /// them.
    pub fn new(store: S, clock: C) -> Self {
        Self {
            store,
            clock,
            counts: false,
            memory: Arc::default(),
        }
    }

    /// The same, where tries are noted here.
    #[must_use]
    pub fn with_counting(self) -> Self {
        Self {
            counts: true,
            ..self
        }
    }

    /// Whether tries are noted here.
    pub fn is_counting(&self) -> bool {
        self.counts
    }

    /// Notes a try of the subscription with this key in the book.
    pub fn note_try(&self, key: impl FnOnce() -> String, seen: &SeenTry<'_>) {
        let is_arrival = matches!(seen.result, TryResult::Arrived | TryResult::Ended);
        if !self.counts || (is_arrival && !self.is_watching()) {
            return;
        }
        let key = key();
        let mut state = self.memory.state.lock();
        let is_known = state.is_known(&key);
        let is_full = state.gathered.len() >= GATHERED_MAX;
        if let Some(tries) = state.gathered.get_mut(&key) {
            tries.add_try(seen);
        } else if !is_full && (is_known || !is_arrival) {
            state.gathered.entry(key).or_default().add_try(seen);
            self.memory.is_watching.store(true, Ordering::Relaxed);
        }
    }

    /// Gathers tries of a later time. Those of a subscription that is not known to fail are passed
    /// over, unless one failed.
    pub fn gather_tries(&self, tries: BTreeMap<String, SubscriptionTries>) {
        let mut state = self.memory.state.lock();
        for (key, tries) in tries {
            let is_known = state.is_known(&key);
            let is_full = state.gathered.len() >= GATHERED_MAX;
            if let Some(gathered) = state.gathered.get_mut(&key) {
                gathered.append_later(tries);
            } else if !is_full && (is_known || tries.has_news()) {
                state.gathered.insert(key, tries);
            }
        }
    }

    /// Whether an arrival may be news: something fails, or it is not known whether anything does.
    pub fn is_watching(&self) -> bool {
        self.counts && self.memory.is_watching.load(Ordering::Relaxed)
    }

    /// Whether tries that failed are gathered here and not written yet, or the book was not read.
    pub fn has_news(&self) -> bool {
        if !self.is_watching() {
            return false;
        }
        let state = self.memory.state.lock();
        state.known.is_none()
            || state.unsure.is_some()
            || state.gathered.values().any(SubscriptionTries::has_news)
    }

    /// The book, with what is gathered here.
    pub async fn current_book(&self) -> Result<HealthBook, HealthError> {
        let mut book = self.stored_book().await?;
        let state = self.memory.state.lock();
        if let Some((run, tries)) = &state.unsure {
            book.add_tries(tries.clone(), run);
        }
        book.add_tries(state.gathered.clone(), "");
        Ok(book)
    }

    /// Reads the book again if it was read longer ago than this.
    pub async fn refresh_if_older(&self, age_max: Duration) -> Result<(), HealthError> {
        let (etag, checked_at) = {
            let state = self.memory.state.lock();
            (state.etag.clone(), state.checked_at)
        };
        let now = self.clock.monotonic();
        if checked_at.is_some_and(|at| now.saturating_sub(at) < age_max) {
            return Ok(());
        }
        let found = get_newer(&self.store, HEALTH, etag.as_ref());
        match found.await.map_err(HealthError::Read)? {
            RevalidatedObject::Unchanged => self.memory.state.lock().checked_at = Some(now),
            RevalidatedObject::Missing => self.remember_book(&HealthBook::default(), None),
            RevalidatedObject::Changed(object) => {
                let book = parse_book(&object.bytes).map_err(HealthError::Object)?;
                self.remember_book(&book, Some(object.etag));
            }
        }
        Ok(())
    }

    /// Writes what is gathered, under the name `run`; whether that changed the book. What could not
    /// be written, or was cut off, is written with the next call, under the same name, so that it
    /// counts once. What is gathered meanwhile is left to the next call: a second part of the same
    /// name would not count.
    pub async fn write_gathered(&self, run: &str) -> Result<bool, HealthError> {
        let is_changed_before = self.write_unsure().await?;
        self.begin_part(run);
        Ok(self.write_unsure().await? || is_changed_before)
    }

    /// Changes the book, and returns it as it is then. `change` is called again where others
    /// wrote.
    pub async fn change_book(
        &self,
        mut change: impl FnMut(&mut HealthBook),
    ) -> Result<HealthBook, HealthError> {
        let updated = update_object(&self.store, HEALTH, |found| {
            let before = match &found {
                Some(object) => parse_book(&object.bytes)?,
                None => HealthBook::default(),
            };
            let mut book = before.clone();
            change(&mut book);
            if book == before {
                return Ok(ObjectEdit::Keep(book));
            }
            Ok(ObjectEdit::Write(book.render(), book))
        });
        // Boxed: the compiler would find the layout of the SDK's futures too deep otherwise.
        let updated = Box::pin(updated).await.map_err(HealthError::Write)?;
        self.remember_book(&updated.answer, updated.etag);
        Ok(updated.answer)
    }

    async fn add_tries(
        &self,
        run: &str,
        tries: &BTreeMap<String, SubscriptionTries>,
    ) -> Result<bool, HealthError> {
        if !self.is_news(tries) {
            return Ok(false);
        }
        let mut is_changed = false;
        self.change_book(|book| is_changed = book.add_tries(tries.clone(), run))
            .await?;
        Ok(is_changed)
    }

    /// Whether tries say anything of what is in the book, as far as is known, or failed.
    fn is_news(&self, tries: &BTreeMap<String, SubscriptionTries>) -> bool {
        let state = self.memory.state.lock();
        tries
            .iter()
            .any(|(key, tries)| tries.has_news() || state.is_in_book(key))
    }

    /// Makes what is gathered the part that is written next, unless there is one.
    fn begin_part(&self, run: &str) {
        let mut state = self.memory.state.lock();
        if state.unsure.is_none() && !state.gathered.is_empty() {
            let gathered = std::mem::take(&mut state.gathered);
            state.unsure = Some((run.to_owned(), gathered));
        }
    }

    /// Writes the part that was begun, if there is one; whether that changed the book.
    async fn write_unsure(&self) -> Result<bool, HealthError> {
        let unsure = self.memory.state.lock().unsure.clone();
        let Some((run, tries)) = unsure else {
            return Ok(false);
        };
        let is_changed = self.add_tries(&run, &tries).await?;
        // Another caller may have begun another part meanwhile.
        let mut state = self.memory.state.lock();
        state.unsure.take_if(|(begun, _)| *begun == run);
        Ok(is_changed)
    }

    /// The book, as it is stored.
    pub async fn stored_book(&self) -> Result<HealthBook, HealthError> {
        // Boxed: the compiler would find the layout of the SDK's futures too deep otherwise.
        let found = Box::pin(self.store.get(HEALTH));
        let Some(object) = found.await.map_err(HealthError::Read)? else {
            self.remember_book(&HealthBook::default(), None);
            return Ok(HealthBook::default());
        };
        let book = parse_book(&object.bytes).map_err(HealthError::Object)?;
        self.remember_book(&book, Some(object.etag));
        Ok(book)
    }

    fn remember_book(&self, book: &HealthBook, etag: Option<ETag>) {
        let mut state = self.memory.state.lock();
        let known: BTreeSet<_> = book
            .subscriptions()
            .map(|(key, _)| key.to_owned())
            .collect();
        let has_tries = !state.gathered.is_empty() || state.unsure.is_some();
        let is_watching = !known.is_empty() || has_tries;
        state.known = Some(known);
        state.etag = etag;
        state.checked_at = Some(self.clock.monotonic());
        self.memory
            .is_watching
            .store(is_watching, Ordering::Relaxed);
    }
}

/// The book in an object. One that is not understood counts as empty, and the next write replaces
/// it.
fn parse_book(bytes: &[u8]) -> Result<HealthBook, FormatError> {
    match HealthBook::parse(bytes) {
        Err(error @ FormatError::Malformed(..)) => {
            let error = &error as &dyn Error;
            tracing::error!(
                key = HEALTH,
                error,
                "failing subscriptions not understood, they count as healthy"
            );
            Ok(HealthBook::default())
        }
        parsed => parsed,
    }
}
