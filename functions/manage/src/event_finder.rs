//! The search for events by an event's id, a `webhook-id`, or the key of a dead letter.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRef;
use futures_util::stream::{self, StreamExt};
use posthaste_core::api::events::{DeliveryView, EventQuery, ListTime, LogGapView, LogNote};
use posthaste_core::api::{DeadLetterPage, DeadLetterView, FoundEvent, FoundEvents, IsoTimestamp};
use posthaste_core::delivery_log::{EventHistory, LogRecord, RecordLookup, log_text};
use posthaste_core::model::{Timestamp, TopicName, WrittenTime};
use posthaste_core::stored::{EventReference, TopicRecord};
use posthaste_delivery_log::{DeliveryLog, LogError, LookUpResult};
use posthaste_ports::{Clock, Ports};

use crate::answer::ApiError;
use crate::dead_letters::search::DeadLetterSearch;
use crate::event_log::{LOOK_UP_TIME_MAX, event_lifetime, log_damaged_files, written_name};
use crate::log_coverage::{LogCoverage, TimeBounds};
use crate::manage::Manage;
use crate::shared_port::SharedPort;
use crate::topic_records::TopicRecords;

/// Most events that an answer shows: a producer may give one id to every event.
const EVENTS_MAX: usize = 100;

/// Most events that are looked up because a request's id or a dead letter says their ids: each is a
/// search of its own. A batch has ten events by default.
const EVENTS_LOOKED_UP_MAX: usize = 10;

/// Most dead letters that an answer shows of one object, which may have thousands.
const LETTERS_MAX: usize = 100;

/// Topics that are read side by side.
const TOPICS_AT_ONCE: usize = 8;

/// The findings of the log so far.
#[derive(Default)]
struct LogFindings {
    records: Vec<LogRecord>,
    is_cut: bool,
    /// The newest of the times at which a search ended before its end.
    ended_at: Option<Timestamp>,
    /// The beginning of the oldest hour that was searched.
    begins: Option<Timestamp>,
    damaged: Vec<LogError>,
}

/// An event of a topic: the topic's name in lower case, and the id.
type TopicEventId = (String, String);

/// An event with the history of its deliveries.
type EventWithHistory = (TopicEventId, EventHistory);

/// The search for events, in the delivery log and in dead letters.
pub(crate) struct EventFinder<P: Ports> {
    log: SharedPort<P, DeliveryLog<P::Log>>,
    clock: P::Clock,
    coverage: LogCoverage<P>,
    records: TopicRecords<P>,
    letters: DeadLetterSearch<P>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for EventFinder<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            log: SharedPort::new(manage, |it| &it.log),
            clock: manage.clock.clone(),
            coverage: LogCoverage::from_ref(manage),
            records: TopicRecords::from_ref(manage),
            letters: DeadLetterSearch::from_ref(manage),
        }
    }
}

impl<P: Ports> EventFinder<P> {
    /// The events that this text leads to, as far as the log is searched in this time.
    pub(crate) async fn find_events(
        &self,
        id: String,
        query: &EventQuery,
        time: Option<ListTime>,
    ) -> Result<FoundEvents, ApiError> {
        let known_by = EventReference::from_text(&id);
        let (from, to) = WrittenTime::resolve_period(query.from, query.to, self.clock.now());
        let asked = TimeBounds { from, to };
        let time = time.map_or(LOOK_UP_TIME_MAX, |ListTime(time)| {
            time.min(LOOK_UP_TIME_MAX)
        });
        let until = self.clock.monotonic() + time;
        let mut letters = match &known_by.dead_letter {
            Some(key) => self.letters.letters_of_object(key).await?,
            None => DeadLetterPage::default(),
        };
        let mut search = LogFindings::default();
        self.search_log(&mut search, &known_by, asked, until)
            .await?;
        let of_letters = events_of_letters(&letters.dead_letters);
        self.search_events(&mut search, of_letters, asked, until)
            .await?;
        let found = self.histories_of_events(&mut search, asked);
        let events = self
            .found_events(&found, query.payload.unwrap_or_default())
            .await;
        let lifetime = event_lifetime(found.iter().flat_map(|(_, it)| &it.deliveries), asked);
        let gaps = self.coverage.gaps(lifetime.from, lifetime.to);
        let damaged = log_damaged_files(&search.damaged);
        let note = LogNote {
            is_unknown: found.is_empty(),
            is_cut: search.is_cut || events.len() > EVENTS_MAX,
            searched_from: search.ended_at,
            damaged: &damaged,
            gaps: &gaps,
            ..LogNote::default()
        };
        let note = [note.text(), letters_note(&letters)];
        letters.dead_letters.truncate(LETTERS_MAX);
        let searched_from = search.ended_at.or(search.begins.max(asked.from));
        Ok(FoundEvents {
            id,
            events: events.into_iter().take(EVENTS_MAX).collect(),
            dead_letters: letters.dead_letters,
            searched_from: searched_from.map(IsoTimestamp),
            is_cut_short: search.ended_at.is_some(),
            complete_until: self.coverage.complete_until(),
            gaps: gaps.iter().map(LogGapView::from).collect(),
            note: join_sentences(note),
        })
    }

    /// Searches the log for the text as an event's id, and as a request's.
    async fn search_log(
        &self,
        search: &mut LogFindings,
        known_by: &EventReference,
        asked: TimeBounds,
        until: Duration,
    ) -> Result<(), ApiError> {
        if let Some(webhook_id) = &known_by.webhook_id {
            let by_request = RecordLookup {
                webhook_id: Some(webhook_id.clone()),
                ..in_period(asked)
            };
            self.look_up(search, by_request, until).await?;
            let events = events_of(&search.records);
            self.search_events(search, events, asked, until).await?;
        }
        let by_event = RecordLookup {
            event_id: Some(known_by.event_id.clone()),
            ..in_period(asked)
        };
        self.look_up(search, by_event, until).await
    }

    /// Looks up events whose ids are known, if they are few.
    async fn search_events(
        &self,
        search: &mut LogFindings,
        events: BTreeSet<TopicEventId>,
        asked: TimeBounds,
        until: Duration,
    ) -> Result<(), ApiError> {
        search.is_cut |= events.len() > EVENTS_LOOKED_UP_MAX;
        for (topic, event_id) in events.into_iter().take(EVENTS_LOOKED_UP_MAX) {
            let of_topic = RecordLookup {
                topic: Some(topic),
                event_id: Some(event_id),
                ..in_period(asked)
            };
            self.look_up(search, of_topic, until).await?;
        }
        Ok(())
    }

    async fn look_up(
        &self,
        search: &mut LogFindings,
        look_up: RecordLookup,
        until: Duration,
    ) -> Result<(), ApiError> {
        let found = self
            .log
            .look_up_event(look_up, || self.clock.monotonic() < until)
            .await?;
        search.add_looked_up(found);
        Ok(())
    }

    /// The events of all records that were found, the last accepted first: one more than
    /// [`EVENTS_MAX`] at most.
    fn histories_of_events(
        &self,
        search: &mut LogFindings,
        asked: TimeBounds,
    ) -> Vec<EventWithHistory> {
        let records = std::mem::take(&mut search.records);
        let bounds = [search.ended_at, asked.from];
        let complete_from = self.coverage.complete_from(&records, search.is_cut, bounds);
        let mut by_event: BTreeMap<TopicEventId, Vec<LogRecord>> = BTreeMap::new();
        for record in records {
            by_event.entry(event_of(&record)).or_default().push(record);
        }
        let mut events: Vec<_> = by_event.into_iter().collect();
        events.sort_by_key(|(_, records)| {
            Reverse(records.iter().map(|record| record.accepted_at).max())
        });
        events.truncate(EVENTS_MAX + 1);
        let now = self.coverage.end_of(asked);
        events
            .into_iter()
            .map(|(event, records)| {
                let history = EventHistory::from_records(records, complete_from, now);
                (event, history)
            })
            .collect()
    }

    async fn found_events(
        &self,
        found: &[EventWithHistory],
        with_payload: bool,
    ) -> Vec<FoundEvent> {
        let topics = self.topics_of(found).await;
        let retention = self.coverage.retention();
        let events = found.iter().map(|((topic, id), history)| {
            let record = topics.get(topic).and_then(Option::as_ref);
            let deliveries = history
                .deliveries
                .iter()
                .map(|history| DeliveryView::from_history(history, retention, with_payload));
            FoundEvent {
                topic: record.map_or_else(|| topic.clone(), |record| record.name.to_string()),
                id: id.clone(),
                state: history.state,
                deliveries: deliveries
                    .map(|view| DeliveryView {
                        subscription: written_name(record, &view.subscription),
                        ..view
                    })
                    .collect(),
            }
        });
        events.collect()
    }

    /// The records of topics, for the names as they were created. One that cannot be read is left
    /// out: its name is that of the log.
    async fn topics_of<T>(
        &self,
        events: &[(TopicEventId, T)],
    ) -> BTreeMap<String, Option<TopicRecord>> {
        let names: BTreeSet<&String> = events.iter().map(|((topic, _), _)| topic).collect();
        let reads: Vec<_> = names
            .into_iter()
            .map(|name| async move {
                let record = match TopicName::parse(name) {
                    Ok(topic) => self.records.load_record(&topic).await.unwrap_or_default(),
                    Err(_) => None,
                };
                (name.clone(), record)
            })
            .collect();
        stream::iter(reads).buffered(TOPICS_AT_ONCE).collect().await
    }
}

impl LogFindings {
    fn add_looked_up(&mut self, found: LookUpResult) {
        let LookUpResult {
            records,
            is_cut,
            searched_from,
            begins,
            damaged,
        } = found;
        self.records.extend(records);
        self.is_cut |= is_cut;
        self.ended_at = self.ended_at.max(searched_from);
        self.begins = self.begins.into_iter().chain(begins).min();
        for error in damaged {
            let file = error.damaged_file();
            if self
                .damaged
                .iter()
                .all(|known| known.damaged_file() != file)
            {
                self.damaged.push(error);
            }
        }
    }
}

fn in_period(period: TimeBounds) -> RecordLookup {
    RecordLookup {
        from: period.from,
        to: period.to,
        ..RecordLookup::default()
    }
}

fn event_of(record: &LogRecord) -> TopicEventId {
    let id = record.event_id.clone().unwrap_or_default();
    (record.topic.clone(), id)
}

fn events_of(records: &[LogRecord]) -> BTreeSet<TopicEventId> {
    let known = records.iter().filter(|record| record.event_id.is_some());
    known.map(event_of).collect()
}

/// The events that dead letters have, as the log knows them.
fn events_of_letters(letters: &[DeadLetterView]) -> BTreeSet<TopicEventId> {
    letters
        .iter()
        .filter_map(|letter| {
            let topic = TopicName::parse(&letter.topic).ok()?;
            Some((topic.folded(), log_text(letter.id.as_deref()?)))
        })
        .collect()
}

/// The note on letters that the list of dead letters lacks.
fn letters_note(page: &DeadLetterPage) -> Option<String> {
    if let Some(failure) = page.failures.first() {
        return Some(format!("The object cannot be read: {}.", failure.detail));
    }
    let letters = page.dead_letters.len();
    (letters > LETTERS_MAX).then(|| {
        format!(
            "The object has {letters} dead letters, of which the first {LETTERS_MAX} are shown."
        )
    })
}

fn join_sentences(sentences: [Option<String>; 2]) -> Option<String> {
    let sentences: Vec<String> = sentences.into_iter().flatten().collect();
    (!sentences.is_empty()).then(|| sentences.join(" "))
}
