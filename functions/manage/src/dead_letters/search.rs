//! A search for dead letters: reads the newest objects, a few side by side, until the page is full
//! or its time is over.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRef;
use futures_util::future::try_join;
use futures_util::stream::{self, StreamExt};
use posthaste_core::api::{DeadLetterPage, DeadLetterView, IsoTimestamp, ReplayFailure};
use posthaste_core::model::{DeadLetterReason, SubscriptionName, Timestamp, TopicName};
use posthaste_core::stored::dead_letter::{ShownLetter, shown_letters, written_at};
use posthaste_core::stored::{DeadLetterKey, ResolvedLetters, TopicRecord, WrittenIn};
use posthaste_ports::{Clock, ErrorKind, ObjectStore, PortError, Ports, StoredObject};
use posthaste_services::resolved::resolved_letters;

use super::owners::DeadLetterScope;
use super::walk::{DatedObject, NewestFirstWalk, WalkStep};
use crate::answer::ApiError;
use crate::manage::Manage;
use crate::paging::encode_cursor;
use crate::shared_port::SharedPort;
use crate::topic_records::TopicRecords;

/// The time after which a page ends. A read that begins just before still ends before the request's
/// time limit.
const SEARCH_TIME: Duration = Duration::from_secs(5);

/// Most objects that a page reads, so that it ends even if the clock stands still.
const READS_MAX: usize = 500;

/// Objects that are read side by side, of some 4 MiB each.
const READS_AT_ONCE: usize = 4;

/// Largest object that is read, in bytes: four times what deadletter gathers, as for replays.
pub(super) const OBJECT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The time by which clocks may differ: what was written in the first minutes of a month is found
/// although the clock of manage has not reached it.
pub(crate) const CLOCKS_DIFFER_MAX: Duration = Duration::from_hours(1);

/// The note of a list over more subscriptions than one request looks at.
const TOO_MANY_OWNERS: &str = "the list has the dead letters of the first 1,000 subscriptions only, by name: \
    name a topic or a subscription";

/// The letters of a page.
#[derive(Debug)]
pub(super) struct LetterSearch {
    pub(super) scope: DeadLetterScope,
    pub(super) written: WrittenIn,
    pub(super) reason: Option<DeadLetterReason>,
    pub(super) event_type: Option<String>,
    pub(super) include_resolved: bool,
    /// Most letters on the page.
    pub(super) items: usize,
    /// The place after which the page begins.
    pub(super) after: Option<SearchPosition>,
}

/// A place in a list: by time, the newest first, then by key and place in the object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SearchPosition {
    written_at: Timestamp,
    /// `None` behind all objects of this time.
    object: Option<(String, usize)>,
}

impl SearchPosition {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, ' ');
        let written_at = Timestamp::from_millis(parts.next()?.parse().ok()?);
        let Some(index) = parts.next() else {
            return Some(Self {
                written_at,
                object: None,
            });
        };
        Some(Self {
            written_at,
            object: Some((parts.next()?.to_owned(), index.parse().ok()?)),
        })
    }

    /// The place behind all that was written at this time or later.
    pub(super) fn since(written_at: Timestamp) -> Self {
        Self {
            written_at,
            object: None,
        }
    }

    /// The time back to which all before this place was looked at.
    pub(super) fn shown_time(&self) -> IsoTimestamp {
        IsoTimestamp(self.written_at)
    }

    pub(super) fn to_cursor(&self) -> String {
        let time = self.written_at.as_millis();
        match &self.object {
            Some((key, index)) => encode_cursor(&format!("{time} {index} {key}")),
            None => encode_cursor(&time.to_string()),
        }
    }

    /// The time at which, and after which, nothing comes after this place.
    pub(super) fn end_time(&self) -> Timestamp {
        let has_more_of_it = u64::from(self.object.is_some());
        Timestamp::from_millis(self.written_at.as_millis().saturating_add(has_more_of_it))
    }

    /// Whether a letter comes after this place.
    pub(super) fn is_before(&self, object: &DatedObject, index: usize) -> bool {
        match &self.object {
            _ if object.written_at != self.written_at => object.written_at < self.written_at,
            Some((key, place)) => (&*object.key, index) > (&**key, *place),
            None => false,
        }
    }
}

/// The letters of an object, and which of them are resolved.
#[derive(Debug, Default)]
struct LettersOfObject {
    letters: Vec<ShownLetter>,
    resolved: ResolvedLetters,
}

/// A page while it fills.
struct PageBuilder<'a> {
    search: &'a LetterSearch,
    page: DeadLetterPage,
    /// The last letter that was looked at.
    last: Option<SearchPosition>,
    reads: usize,
    end: Duration,
}

/// The search for dead letters.
pub(crate) struct DeadLetterSearch<P: Ports> {
    dead_letters: SharedPort<P, P::DeadLetters>,
    clock: P::Clock,
    records: TopicRecords<P>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for DeadLetterSearch<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            dead_letters: SharedPort::new(manage, |it| &it.dead_letters),
            clock: manage.clock.clone(),
            records: TopicRecords::from_ref(manage),
        }
    }
}

impl<P: Ports> DeadLetterSearch<P> {
    /// One page of a search.
    pub(super) async fn search_letters(
        &self,
        search: LetterSearch,
    ) -> Result<DeadLetterPage, ApiError> {
        let (owners, is_cut) = search.scope.list_owners(&*self.dead_letters).await?;
        let mut written = search.written;
        if let Some(after) = &search.after {
            let end = after.end_time();
            written.to = Some(written.to.map_or(end, |to| to.min(end)));
        }
        let mut walk = NewestFirstWalk::new(owners, written, self.clock.now() + CLOCKS_DIFFER_MAX);
        let end = self.clock.monotonic() + SEARCH_TIME;
        let mut filling = PageBuilder {
            search: &search,
            page: DeadLetterPage::default(),
            last: None,
            reads: 0,
            end,
        };
        let cut = loop {
            match walk
                .next_step(&*self.dead_letters, || self.clock.monotonic() < end)
                .await?
            {
                WalkStep::End => break None,
                WalkStep::Cut(written_at) => {
                    break Some(SearchPosition::since(written_at));
                }
                WalkStep::Objects(objects) => {
                    if let Some(cut) = self.fill_page(&mut filling, &walk, objects).await? {
                        break Some(cut);
                    }
                }
            }
        };
        let mut page = filling.page;
        page.note = is_cut.then(|| TOO_MANY_OWNERS.to_owned());
        self.write_names(&mut page).await;
        Ok(DeadLetterPage {
            searched_back_to: cut.as_ref().map(SearchPosition::shown_time),
            cursor: cut.map(|place| place.to_cursor()),
            ..page
        })
    }

    /// The letters of an object, and failures if it cannot be read. Both are empty where there is
    /// no such object.
    pub(crate) async fn letters_of_object(
        &self,
        key: &DeadLetterKey,
    ) -> Result<DeadLetterPage, ApiError> {
        let listed = self.dead_letters.list(&key.key, None, 1).await?.objects;
        let Some(object) = listed.into_iter().find(|object| object.key == key.key) else {
            return Ok(DeadLetterPage::default());
        };
        let hour = written_at(&key.prefix, &key.key, object.modified_at);
        let object = DatedObject {
            written_at: hour.unwrap_or(object.modified_at),
            key: object.key,
            bytes: object.size,
            owner: 0,
        };
        let search = LetterSearch {
            scope: DeadLetterScope::Subscription(key.prefix.clone()),
            written: WrittenIn::default(),
            reason: None,
            event_type: None,
            include_resolved: true,
            items: usize::MAX,
            after: None,
        };
        let read = self.read_letters(object.clone()).await?;
        let mut filling = PageBuilder {
            search: &search,
            page: DeadLetterPage::default(),
            last: None,
            reads: 0,
            end: Duration::ZERO,
        };
        filling.add_letters(&object, &key.prefix, read);
        let mut page = filling.page;
        self.write_names(&mut page).await;
        Ok(page)
    }

    /// Adds the letters of objects. Answers where the page ends, if it does.
    async fn fill_page(
        &self,
        filling: &mut PageBuilder<'_>,
        walk: &NewestFirstWalk,
        objects: Vec<DatedObject>,
    ) -> Result<Option<SearchPosition>, ApiError> {
        let objects: Vec<_> = objects
            .into_iter()
            .filter(|object| filling.search.includes_place(object, usize::MAX))
            .collect();
        let reads = objects
            .clone()
            .into_iter()
            .map(|object| self.read_letters(object));
        let mut reads = pin!(stream::iter(reads).buffered(READS_AT_ONCE));
        for object in &objects {
            if filling.reads == READS_MAX
                || (filling.reads > 0 && self.clock.monotonic() >= filling.end)
            {
                return Ok(filling.last.clone());
            }
            filling.reads += 1;
            let Some(read) = reads.next().await else {
                break;
            };
            let prefix = &walk.owners()[object.owner].prefix;
            if let Some(end) = filling.add_letters(object, prefix, read?) {
                return Ok(Some(end));
            }
        }
        Ok(None)
    }

    /// The letters of an object and which of them are resolved, or why it cannot be read.
    async fn read_letters(
        &self,
        object: DatedObject,
    ) -> Result<Result<LettersOfObject, String>, PortError> {
        if object.bytes > OBJECT_BYTES_MAX {
            return Ok(Err("the object has more than 16 MiB".to_owned()));
        }
        let read = try_join(
            self.dead_letters.get(&object.key),
            resolved_letters(&*self.dead_letters, &object.key),
        );
        match read.await {
            Ok((Some(StoredObject { bytes, .. }), resolved)) => {
                let letters = shown_letters(&bytes).map_err(|error| error.to_string());
                Ok(letters.map(|letters| LettersOfObject { letters, resolved }))
            }
            // It was deleted since it was listed.
            Ok((None, _)) => Ok(Ok(LettersOfObject::default())),
            Err(error) if is_lasting(&error) => Ok(Err(error.to_string())),
            Err(error) => Err(error),
        }
    }

    /// Puts the names as they were created into rows, where topics and subscriptions still exist.
    async fn write_names(&self, page: &mut DeadLetterPage) {
        let mut topics = BTreeMap::new();
        for row in &mut page.dead_letters {
            let Ok(topic) = TopicName::parse(&row.topic) else {
                continue;
            };
            if !topics.contains_key(&row.topic) {
                topics.insert(row.topic.clone(), self.records.load_record(&topic).await);
            }
            match topics.get(&row.topic) {
                Some(Ok(Some(record))) => write_name(record, row),
                Some(Ok(None)) => row.owner_deleted = true,
                // A topic that is damaged is named as in the key.
                Some(Err(_)) | None => {}
            }
        }
    }

    /// Whether no object lies under a prefix. An empty list would hide a name that is written
    /// wrong.
    pub(super) async fn has_no_letters(&self, prefix: &str) -> Result<bool, ApiError> {
        Ok(self
            .dead_letters
            .list(prefix, None, 1)
            .await?
            .objects
            .is_empty())
    }
}

/// Writes the names of a row as they are in the topic's record.
fn write_name(record: &TopicRecord, row: &mut DeadLetterView) {
    row.topic = record.name.to_string();
    let name = SubscriptionName::parse(&row.subscription).ok();
    match name.and_then(|name| record.settings.find_subscription(&name)) {
        Some((name, _)) => row.subscription = name.to_string(),
        None => row.owner_deleted = true,
    }
}

impl PageBuilder<'_> {
    /// Adds the letters of an object. Answers the place at which the page is full.
    fn add_letters(
        &mut self,
        object: &DatedObject,
        prefix: &str,
        read: Result<LettersOfObject, String>,
    ) -> Option<SearchPosition> {
        let search = self.search;
        let LettersOfObject { letters, resolved } = read.unwrap_or_else(|detail| {
            let failure = ReplayFailure::of_object(&object.key, detail);
            failure.show_in(&mut self.page.failures);
            LettersOfObject::default()
        });
        for (index, letter) in letters.into_iter().enumerate() {
            let is_after = search.includes_place(object, index);
            let is_resolved = resolved.is_resolved(index);
            if !is_after || !search.matches(&letter) || (is_resolved && !search.include_resolved) {
                continue;
            }
            if self.page.dead_letters.len() == search.items {
                return self.last.clone();
            }
            self.page.dead_letters.push(dead_letter_view(
                object,
                prefix,
                index,
                letter,
                is_resolved,
            ));
            self.last = Some(object.position(index));
        }
        self.last = Some(object.position(usize::MAX));
        None
    }
}

impl LetterSearch {
    /// Whether a letter of an object comes after the place at which the page begins.
    fn includes_place(&self, object: &DatedObject, index: usize) -> bool {
        let after = self.after.as_ref();
        after.is_none_or(|after| after.is_before(object, index))
    }

    fn matches(&self, letter: &ShownLetter) -> bool {
        let has_reason = self
            .reason
            .is_none_or(|reason| letter.reason.as_deref() == Some(reason.as_str()));
        has_reason && (self.event_type.is_none() || letter.event_type == self.event_type)
    }
}

impl DatedObject {
    pub(super) fn position(&self, index: usize) -> SearchPosition {
        SearchPosition {
            written_at: self.written_at,
            object: Some((self.key.clone(), index)),
        }
    }
}

/// Whether an object will not be read the next time either. A list goes on without it.
pub(crate) fn is_lasting(error: &PortError) -> bool {
    matches!(
        error.kind,
        ErrorKind::Invalid | ErrorKind::Denied | ErrorKind::Damaged
    )
}

fn dead_letter_view(
    object: &DatedObject,
    prefix: &str,
    index: usize,
    letter: ShownLetter,
    resolved: bool,
) -> DeadLetterView {
    let mut names = prefix.split('/').map(str::to_owned);
    let ShownLetter {
        id,
        event_type,
        reason,
        attempts,
        status,
    } = letter;
    DeadLetterView {
        object: object.key.clone(),
        index,
        topic: names.next().unwrap_or_default(),
        subscription: names.next().unwrap_or_default(),
        id,
        event_type,
        reason,
        attempts,
        status,
        written_at: IsoTimestamp(object.written_at),
        resolved,
        owner_deleted: false,
    }
}
