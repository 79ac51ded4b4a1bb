//! The numbers of waiting events that record adds up, as they are read.

use std::collections::BTreeMap;
use std::error::Error;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use posthaste_core::delivery_log::{WAITING_PARTS, WaitingLook, WaitingPart, waiting_part};
use posthaste_core::model::{FormatError, Timestamp};
use posthaste_core::stored::{WAITING_LOOK, waiting_part_key};
use posthaste_ports::{ETag, ObjectStore, PortError, StoredObject};

use crate::update::UpdateError;

/// Parts that are read or written at once.
pub(super) const PARTS_AT_ONCE: usize = 8;

/// Reasons for which the book was not read or written.
#[derive(Debug, thiserror::Error)]
pub enum WaitingBookError {
    /// A part could not be read.
    #[error("failed to read what waits")]
    Read(#[source] PortError),
    /// A newer program wrote the part.
    #[error("failed to understand what waits")]
    Object(#[source] FormatError),
    /// A part could not be changed.
    #[error("failed to write what waits")]
    Write(#[source] UpdateError<FormatError>),
    /// The look could not be written.
    #[error("failed to write the look at what waits")]
    Look(#[source] PortError),
}

/// The numbers, as they were read.
#[derive(Debug)]
pub struct WaitingNumbers {
    parts: BTreeMap<usize, WaitingPart>,
    /// Whether all changes since everything was at rest reached the parts.
    is_continued: bool,
}

impl WaitingNumbers {
    /// The numbers of subscriptions with these keys. `None` if they cannot be read.
    pub async fn for_keys(
        state: &impl ObjectStore,
        keys: &[String],
        now: Timestamp,
    ) -> Option<Self> {
        let mut parts: Vec<_> = keys.iter().map(|key| waiting_part(key)).collect();
        parts.sort_unstable();
        parts.dedup();
        Self::read_numbers(state, parts, now).await
    }

    /// All numbers. `None` if they cannot be read.
    pub async fn read_all(state: &impl ObjectStore, now: Timestamp) -> Option<Self> {
        Self::read_numbers(state, (0..WAITING_PARTS).collect(), now).await
    }

    /// The number of events that wait for a subscription.
    pub fn waiting_events(&self, key: &str) -> u64 {
        let part = self.parts.get(&waiting_part(key));
        part.and_then(|part| part.waiting_events(key))
            .unwrap_or_default()
    }

    /// Whether all changes of a subscription are counted.
    pub fn is_exact(&self, key: &str) -> bool {
        let part = self.parts.get(&waiting_part(key));
        self.is_continued && !part.is_some_and(WaitingPart::is_doubtful)
    }

    /// Whether all changes of all subscriptions that were read are counted.
    pub fn are_exact(&self) -> bool {
        self.is_continued && !self.parts.values().any(WaitingPart::is_doubtful)
    }

    /// Each subscription whose events wait.
    pub fn counts_by_key(&self) -> impl Iterator<Item = (&str, u64)> {
        self.parts
            .values()
            .flat_map(WaitingPart::waiting_subscriptions)
    }

    async fn read_numbers(
        state: &impl ObjectStore,
        parts: Vec<usize>,
        now: Timestamp,
    ) -> Option<Self> {
        let read = async {
            let (look, _) = found_look(state.get(WAITING_LOOK).await)?;
            let parts = read_parts(state, parts).await?.into_iter();
            let parts = parts.map(|(part, found)| (part, found.part)).collect();
            let is_continued = look.is_exact(now);
            Ok(Self {
                parts,
                is_continued,
            })
        };
        let read: Result<_, WaitingBookError> = read.await;
        read.inspect_err(|error| {
            let error = error as &dyn Error;
            tracing::warn!(error, "what waits is shown without what records say");
        })
        .ok()
    }
}

/// A part as it was read, with its version.
#[derive(Debug)]
pub(super) struct FoundPart {
    pub(super) part: WaitingPart,
    pub(super) etag: Option<ETag>,
}

pub(super) async fn read_parts(
    state: &impl ObjectStore,
    parts: Vec<usize>,
) -> Result<BTreeMap<usize, FoundPart>, WaitingBookError> {
    let reads: Vec<_> = parts
        .into_iter()
        .map(|part| read_part(state, part))
        .collect();
    stream::iter(reads)
        .buffer_unordered(PARTS_AT_ONCE)
        .try_collect()
        .await
}

async fn read_part(
    state: &impl ObjectStore,
    number: usize,
) -> Result<(usize, FoundPart), WaitingBookError> {
    // Boxed: the compiler would find the layout of the SDK's futures too deep otherwise.
    let found = Box::pin(async move { state.get(&waiting_part_key(number)).await });
    let found = found.await.map_err(WaitingBookError::Read)?;
    let etag = found.as_ref().map(|object| object.etag.clone());
    let part = parse_part(found.as_ref()).map_err(WaitingBookError::Object)?;
    Ok((number, FoundPart { part, etag }))
}

/// The part in an object. One that is not understood counts as empty and doubtful, and the next
/// write replaces it.
pub(super) fn parse_part(object: Option<&StoredObject>) -> Result<WaitingPart, FormatError> {
    let Some(object) = object else {
        return Ok(WaitingPart::default());
    };
    match WaitingPart::parse(&object.bytes) {
        Err(error @ FormatError::Malformed(..)) => {
            let error = &error as &dyn Error;
            tracing::error!(error, "what waits not understood, its numbers begin again");
            Ok(WaitingPart::new_doubtful())
        }
        parsed => parsed,
    }
}

pub(super) fn found_look(
    found: Result<Option<StoredObject>, PortError>,
) -> Result<(WaitingLook, Option<ETag>), WaitingBookError> {
    let Some(object) = found.map_err(WaitingBookError::Read)? else {
        return Ok((WaitingLook::default(), None));
    };
    let look = match WaitingLook::parse(&object.bytes) {
        Err(FormatError::Malformed(..)) => WaitingLook::default(),
        parsed => parsed.map_err(WaitingBookError::Object)?,
    };
    Ok((look, Some(object.etag)))
}
