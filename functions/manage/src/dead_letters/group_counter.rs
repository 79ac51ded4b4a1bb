//! The count of dead letters by subscription and reason: walks the newest objects, and reads those
//! that this process has not counted yet.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRef;
use futures_util::future::join;
use futures_util::stream::{self, StreamExt};
use posthaste_core::api::{LetterGroupPage, ReplayFailure};
use posthaste_core::model::{DeadLetterReason, TopicName};
use posthaste_core::stored::dead_letter::shown_letters;
use posthaste_core::stored::{ResolvedLetters, TopicRecord, WrittenIn};
use posthaste_ports::{Clock, ObjectStore, PortError, Ports};
use posthaste_services::resolved::resolved_letters;

use super::group_rows::{GroupBuilder, ShownNames};
use super::owners::DeadLetterScope;
use super::search::{CLOCKS_DIFFER_MAX, OBJECT_BYTES_MAX, SearchPosition, is_lasting};
use super::tally::{LetterTallies, LetterTally, ObjectTally, TalliedObject};
use super::walk::{DatedObject, NewestFirstWalk, WalkStep};
use crate::answer::ApiError;
use crate::manage::Manage;
use crate::request_caches::RequestCaches;
use crate::shared_port::SharedPort;
use crate::topic_records::TopicRecords;

/// The time after which counting ends: a person waits for the page.
const COUNT_TIME: Duration = Duration::from_secs(2);

/// Most objects of one request, so that it ends even if the clock stands still.
const OBJECTS_MAX: usize = 20_000;

/// Objects that are counted side by side: the lists of what is resolved in them are small.
const AT_ONCE: usize = 16;

/// Objects that are read side by side, of some 4 MiB each.
const READS_AT_ONCE: usize = 4;

/// Most groups of an answer.
const GROUPS_MAX: usize = 1_000;

/// Most reasons of a subscription's groups: the known ones, and none.
const REASONS_MAX: usize = DeadLetterReason::ALL.len() + 1;

/// Topic records that are read side by side.
const RECORDS_AT_ONCE: usize = 16;

/// The note of groups of more subscriptions than one request looks at.
const TOO_MANY_OWNERS: &str = "the first 1,000 subscriptions with dead letters are counted only, by name: \
    name a topic or a subscription";

/// The dead letters that are counted.
#[derive(Debug)]
pub(super) struct GroupSearch {
    pub(super) scope: DeadLetterScope,
    pub(super) written: WrittenIn,
    pub(super) include_resolved: bool,
    /// The place up to which an earlier request counted.
    pub(super) after: Option<SearchPosition>,
}

/// The letters of an object, and which of them are resolved; or why it cannot be read.
type CountedObject = Result<(ObjectTally, ResolvedLetters), String>;

/// A count that goes on.
struct GroupCount<'a> {
    search: &'a GroupSearch,
    builder: GroupBuilder,
    /// The number of objects that are counted.
    objects: usize,
    /// The last of them.
    last: Option<SearchPosition>,
    /// The time of the clock's `monotonic` at which the count ends.
    end: Duration,
}

/// The counter of groups.
pub(super) struct GroupCounter<P: Ports> {
    dead_letters: SharedPort<P, P::DeadLetters>,
    clock: P::Clock,
    caches: SharedPort<P, RequestCaches>,
    records: TopicRecords<P>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for GroupCounter<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            dead_letters: SharedPort::new(manage, |it| &it.dead_letters),
            clock: manage.clock.clone(),
            caches: SharedPort::new(manage, |it| &it.caches),
            records: TopicRecords::from_ref(manage),
        }
    }
}

impl<P: Ports> GroupCounter<P> {
    /// Counts for a while.
    pub(super) async fn count_groups(
        &self,
        search: GroupSearch,
    ) -> Result<LetterGroupPage, ApiError> {
        let end = self.clock.monotonic() + COUNT_TIME;
        let (owners, is_cut) = search.scope.list_owners(&*self.dead_letters).await?;
        let mut written = search.written;
        if let Some(after) = &search.after {
            let until = after.end_time();
            written.to = Some(written.to.map_or(until, |to| to.min(until)));
        }
        let prefixes = owners.iter().map(|owner| owner.prefix.clone()).collect();
        let mut walk = NewestFirstWalk::new(owners, written, self.clock.now() + CLOCKS_DIFFER_MAX);
        let mut count = GroupCount {
            search: &search,
            builder: GroupBuilder::new(prefixes, search.include_resolved),
            objects: 0,
            last: None,
            end,
        };
        let cut = loop {
            let has_time = || self.clock.monotonic() < end;
            match walk.next_step(&*self.dead_letters, has_time).await? {
                WalkStep::End => break None,
                WalkStep::Cut(at) => break Some(SearchPosition::since(at)),
                WalkStep::Objects(objects) => {
                    if let Some(cut) = self.count_objects(&mut count, objects).await? {
                        break Some(cut);
                    }
                }
            }
        };
        let builder = count.builder;
        let names = self.load_names(&builder).await;
        let mut page = builder.into_page(&names);
        page.note = is_cut.then(|| TOO_MANY_OWNERS.to_owned());
        page.counted_back_to = cut.as_ref().map(SearchPosition::shown_time);
        page.cursor = cut.map(|place| place.to_cursor());
        Ok(page)
    }

    /// Counts objects of one step of the walk. Returns the place at which the count must end, if it
    /// must.
    async fn count_objects(
        &self,
        count: &mut GroupCount<'_>,
        objects: Vec<DatedObject>,
    ) -> Result<Option<SearchPosition>, ApiError> {
        let after = count.search.after.as_ref();
        let objects: Vec<_> = objects
            .into_iter()
            .filter(|object| after.is_none_or(|after| after.is_before(object, usize::MAX)))
            .collect();
        for chunk in objects.chunks(AT_ONCE) {
            if count.is_over(self.clock.monotonic()) {
                return Ok(count.last.clone());
            }
            for (object, read) in chunk.iter().zip(self.read_objects(chunk).await) {
                match read? {
                    Ok((letters, resolved)) => {
                        count.builder.add_letters(object, &letters, &resolved);
                    }
                    Err(detail) => {
                        let failure = ReplayFailure::of_object(&object.key, detail);
                        count.builder.add_failure(failure);
                    }
                }
                count.objects += 1;
                count.last = Some(object.position(usize::MAX));
            }
        }
        Ok(None)
    }

    /// The letters of some objects, and which of them are resolved now.
    async fn read_objects(&self, objects: &[DatedObject]) -> Vec<Result<CountedObject, PortError>> {
        let tallies = stream::iter(objects.to_vec())
            .map(|object| async move { self.tally_object(&object).await })
            .buffered(READS_AT_ONCE);
        let resolved = stream::iter(objects.to_vec())
            .map(|object| async move { resolved_letters(&*self.dead_letters, &object.key).await })
            .buffered(AT_ONCE);
        let (tallies, resolved): (Vec<_>, Vec<_>) =
            join(tallies.collect(), resolved.collect()).await;
        tallies
            .into_iter()
            .zip(resolved)
            .map(|(tally, resolved)| lasting_as_text(join_reads(tally, resolved)))
            .collect()
    }

    /// The letters of an object, as they are remembered or else read; or why they cannot be read.
    async fn tally_object(
        &self,
        object: &DatedObject,
    ) -> Result<Result<ObjectTally, String>, PortError> {
        let of = TalliedObject {
            key: &object.key,
            bytes: object.bytes,
        };
        let tallies: &LetterTallies = &self.caches.letter_tallies;
        if let Some(letters) = tallies.find(of) {
            return Ok(Ok(letters));
        }
        if object.bytes > OBJECT_BYTES_MAX {
            return Ok(Err("it has more than 16 MiB".to_owned()));
        }
        let Some(stored) = self.dead_letters.get(&object.key).await? else {
            // It was deleted since it was listed.
            return Ok(Ok(ObjectTally::default()));
        };
        let letters = match shown_letters(&stored.bytes) {
            Ok(letters) => letters,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let letters: ObjectTally = letters.iter().map(LetterTally::from_letter).collect();
        tallies.keep(of, &letters);
        Ok(Ok(letters))
    }

    /// The records of the topics that have groups. One that is damaged is named as in the key.
    async fn load_names(&self, builder: &GroupBuilder) -> ShownNames {
        let topics = builder.topics();
        let records = stream::iter(topics)
            .map(|folder| async move {
                let record = self.load_topic(&folder).await;
                (folder, record)
            })
            .buffered(RECORDS_AT_ONCE);
        ShownNames(records.collect::<BTreeMap<_, _>>().await)
    }

    async fn load_topic(&self, folder: &str) -> Result<Option<TopicRecord>, ApiError> {
        match TopicName::parse(folder) {
            Ok(topic) => self.records.load_record(&topic).await,
            Err(_) => Ok(None),
        }
    }
}

impl GroupCount<'_> {
    /// Whether the next objects are left to the next request.
    fn is_over(&self, now: Duration) -> bool {
        let has_room = self.builder.groups() + AT_ONCE * REASONS_MAX <= GROUPS_MAX;
        self.objects > 0 && (now >= self.end || self.objects >= OBJECTS_MAX || !has_room)
    }
}

fn join_reads(
    tally: Result<Result<ObjectTally, String>, PortError>,
    resolved: Result<ResolvedLetters, PortError>,
) -> Result<CountedObject, PortError> {
    let resolved = resolved?;
    Ok(tally?.map(|letters| (letters, resolved)))
}

/// An error that will be the same the next time is that of the object alone.
fn lasting_as_text(read: Result<CountedObject, PortError>) -> Result<CountedObject, PortError> {
    match read {
        Err(error) if is_lasting(&error) => Ok(Err(error.to_string())),
        read => read,
    }
}
