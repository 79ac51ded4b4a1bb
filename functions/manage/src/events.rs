//! What became of events: one event by its id, and lists of records of the delivery log.

use std::error::Error;
use std::time::Duration;

use axum::extract::State;
use posthaste_core::api::IsoTimestamp;
use posthaste_core::api::events::{
    DeliveryView, EncodedId, EventQuery, EventView, LogGapView, LogNote, RecordPage, RecordQuery,
    RecordView,
};
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::delivery_log::{
    DeliveryHistory, DeliveryState, EventHistory, LogGap, LogRecord, RecordCursor, RecordFilter,
    RecordLookup,
};
use posthaste_core::model::{SubscriptionName, Timestamp, TopicName};
use posthaste_core::stored::TopicRecord;
use posthaste_delivery_log::{LogError, LookUpResult};
use posthaste_ports::{Clock, Ports};
use serde::Deserialize;

use crate::answer::{ApiError, ApiResult, JsonResponse, unknown_topic};
use crate::document::{BadRequests, LargeObject, Problems, UnknownTopic};
use crate::extract::{Path, Query, TopicPath};
use crate::manage::{Manage, ManageState};
use crate::paging::{PageRequest, bad_cursor, encode_cursor};

/// The time after which a list answers what it has found, and where to go on.
pub(crate) const LIST_TIME_MAX: Duration = Duration::from_secs(5);

/// The time after which a look-up answers what it has found. Two rounds of reads that begin just
/// before its end, and a search of the dead letters, still end before the request's time limit.
pub(crate) const LOOK_UP_TIME_MAX: Duration = Duration::from_secs(10);

/// Most times without records in an answer, the newest.
const GAPS_SHOWN_MAX: usize = 20;

/// A period. `None` is an open end.
pub(crate) type TimeBounds = (Option<Timestamp>, Option<Timestamp>);

/// The path of an event.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct EventPath {
    /// The topic's name, in any case.
    #[param(value_type = String)]
    pub(crate) topic: TopicName,
    /// The event's id, percent-encoded. Any text where the query has the id.
    pub(crate) id: String,
}

/// The query of a request about one event that is named by its id.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventIdQuery {
    /// The event's id, in place of that of the path: for every id that has other characters than
    /// ASCII letters, digits, `_`, `-` and `.`, which proxies may change in a path.
    id: Option<String>,
    /// The same in base64url: for an id that is too long for a URL in percent-encoding.
    #[param(value_type = Option<String>)]
    id64: Option<EncodedId>,
}

impl EventIdQuery {
    /// The event's id: this, or that of the path.
    pub(crate) fn event_id(self, of_path: String) -> String {
        self.id64.map(|id| id.0).or(self.id).unwrap_or(of_path)
    }
}

/// Show what became of an event
///
/// One entry for each delivery of the event to a subscription, with its attempts, and the state of
/// the event as a whole. A subscription that the event matches and that has no record yet is
/// `pending`. The note says how late the first record of an event may come. At most 1,000 records
/// are read, the newest, and for at most ten seconds; the note says if there may be more.
#[utoipa::path(get, path = "/topics/{topic}/events/{id}", tag = "events", params(EventPath, EventQuery),
    responses((status = 200, description = "The deliveries of the event", body = EventView),
        LargeObject, BadRequests, UnknownTopic, Problems))]
pub(crate) async fn show_event<P: Ports>(
    State(manage): ManageState<P>,
    Path(EventPath { topic, id }): Path<EventPath>,
    Query(query): Query<EventQuery>,
) -> ApiResult<EventView> {
    let id = query.event_id(id);
    let complete_until = manage.log_complete_until();
    let record = manage.load_record(&topic).await?;
    let look_up = query.look_up(&topic, &id, manage.clock.now());
    let asked = (look_up.from, look_up.to);
    let found = manage.log_event(look_up).await?;
    if found.records.is_empty() && found.searched_from.is_none() && record.is_none() {
        return Err(unknown_topic(&topic).into());
    }
    let bounds = [found.searched_from, asked.0];
    let complete_from = manage.complete_from(&found.records, found.is_cut, bounds);
    let EventHistory { deliveries, state } =
        EventHistory::from_records(found.records, complete_from, manage.end_of(asked));
    let (from, to) = event_lifetime(deliveries.iter(), asked);
    let gaps = manage.log_gaps(from, to);
    let damaged = log_damaged_files(&found.damaged);
    let note = LogNote {
        is_unknown: state.is_none(),
        delay: manage.settings.log.delay,
        is_off: manage.is_log_off(record.as_ref()),
        is_cut: found.is_cut,
        searched_from: found.searched_from,
        damaged: &damaged,
        gaps: &gaps,
    };
    let retention = manage.settings.log.retention;
    let with_payload = query.payload.unwrap_or_default();
    let views = deliveries
        .iter()
        .map(|history| DeliveryView::from_history(history, retention, with_payload));
    let mut deliveries: Vec<_> = views
        .map(|view| DeliveryView {
            subscription: written_name(record.as_ref(), &view.subscription),
            ..view
        })
        .collect();
    manage
        .add_next_attempts(record.as_ref(), &mut deliveries)
        .await;
    Ok(JsonResponse::new(EventView {
        id,
        state,
        deliveries,
        complete_until,
        gaps: gaps.iter().map(LogGapView::from).collect(),
        note: note.text(),
    }))
}

/// List what became of a topic's events
///
/// The records of the delivery log, the newest first: one for each attempt, and for each change
/// without one.
#[utoipa::path(get, path = "/topics/{topic}/events", tag = "events",
    params(TopicPath,
        ("subscription" = Option<String>, Query, description = "Only this subscription, in any case"),
        RecordQuery),
    responses((status = 200, description = "One page of records", body = RecordPage),
        BadRequests, UnknownTopic, Problems))]
pub(crate) async fn list_events<P: Ports>(
    State(manage): ManageState<P>,
    Path(path): Path<TopicPath>,
    Query(query): Query<RecordQuery>,
) -> ApiResult<RecordPage> {
    let record = manage.load_record(&path.topic).await?;
    let (filter, items) = read_query(&query, &path.topic, manage.clock.now())?;
    let is_first = filter.after.is_none();
    let page = manage.log_page(record.as_ref(), filter, items).await?;
    if is_first && record.is_none() && is_empty(&page) {
        return Err(unknown_topic(&path.topic).into());
    }
    let records = page
        .records
        .into_iter()
        .map(RecordView::without_answer)
        .collect();
    Ok(JsonResponse::new(RecordPage { records, ..page }))
}

/// The filter and the length of a page, or a problem that names every parameter at fault.
pub(crate) fn read_query(
    query: &RecordQuery,
    topic: &TopicName,
    now: Timestamp,
) -> Result<(RecordFilter, usize), ApiProblem> {
    let PageRequest { items, after } = PageRequest::parse(query.limit, query.cursor.as_deref())?;
    let bad_query = |mistakes| ApiProblem::new(ProblemKind::BadRequest).mistakes(mistakes);
    let filter = query.to_filter(topic, now).map_err(bad_query)?;
    let after = after
        .map(|after| RecordCursor::parse(&after).ok_or_else(bad_cursor))
        .transpose()?;
    Ok((RecordFilter { after, ..filter }, items))
}

/// Whether a list has nothing, here and on later pages.
pub(crate) fn is_empty(page: &RecordPage) -> bool {
    page.records.is_empty() && page.cursor.is_none()
}

impl<P: Ports> Manage<P> {
    /// The records of an event, as far as there is time.
    pub(crate) async fn log_event(&self, look_up: RecordLookup) -> Result<LookUpResult, ApiError> {
        let until = self.clock.monotonic() + LOOK_UP_TIME_MAX;
        Ok(self
            .log
            .look_up_event(look_up, || self.clock.monotonic() < until)
            .await?)
    }

    /// The time from which on every record of an event was found. Earlier ones may be outside of
    /// what was asked for, beyond the most that an answer has, or gone by now.
    pub(crate) fn complete_from(
        &self,
        records: &[LogRecord],
        is_cut: bool,
        [searched_from, asked_from]: [Option<Timestamp>; 2],
    ) -> Option<Timestamp> {
        let oldest = records.iter().map(|record| record.time).min();
        let after_cut = oldest.filter(|_| is_cut);
        let retained = self.settings.log.retention.map(|kept| {
            let kept = u64::try_from(kept.as_millis()).unwrap_or(u64::MAX);
            Timestamp::from_millis(self.clock.now().as_millis().saturating_sub(kept))
        });
        let bounds = [asked_from, searched_from, after_cut, retained];
        bounds.into_iter().flatten().max()
    }

    /// The time as of which a period tells what became of an event. It says nothing of later
    /// records.
    pub(crate) fn end_of(&self, (_, to): TimeBounds) -> Timestamp {
        let now = self.clock.now();
        to.map_or(now, |to| to.min(now))
    }

    /// One page of records, the subscriptions under the names that were written.
    pub(crate) async fn log_page(
        &self,
        record: Option<&TopicRecord>,
        filter: RecordFilter,
        items: usize,
    ) -> Result<RecordPage, ApiError> {
        let complete_until = self.log_complete_until();
        let until = self.clock.monotonic() + LIST_TIME_MAX;
        let listed = self
            .log
            .list_records(&filter, items, || self.clock.monotonic() < until)
            .await?;
        let damaged = log_damaged_files(&listed.damaged);
        // What a later page has is told there.
        let last = listed.records.last().map(|record| record.time);
        let from = last.filter(|_| listed.next.is_some()).max(filter.from);
        let gaps = self.log_gaps(from, filter.end_time());
        let note = LogNote {
            is_off: self.is_log_off(record),
            damaged: &damaged,
            gaps: &gaps,
            ..LogNote::default()
        };
        let rows = listed.records.into_iter().map(RecordView::from);
        let rows = rows.map(|row| RecordView {
            subscription: written_name(record, &row.subscription),
            ..row
        });
        let records = rows.collect();
        let cursor = listed.next.map(|next| encode_cursor(&next.to_string()));
        Ok(RecordPage {
            records,
            complete_until,
            gaps: gaps.iter().map(LogGapView::from).collect(),
            note: note.text(),
            cursor,
        })
    }

    /// The time up to which every record has come into the log.
    pub(crate) fn log_complete_until(&self) -> IsoTimestamp {
        let delay = u64::try_from(self.settings.log.delay.as_millis()).unwrap_or(u64::MAX);
        IsoTimestamp(Timestamp::from_millis(
            self.clock.now().as_millis().saturating_sub(delay),
        ))
    }

    /// The times in a period of which the log may lack records, at most the newest
    /// [`GAPS_SHOWN_MAX`]. Of a time before the retention it has no records anyway.
    pub(crate) fn log_gaps(&self, from: Option<Timestamp>, to: Option<Timestamp>) -> Vec<LogGap> {
        let log = &self.settings.log;
        let now = self.clock.now().as_millis();
        let oldest = log.retention.map_or(Timestamp::EPOCH, |kept| {
            let kept = u64::try_from(kept.as_millis()).unwrap_or(u64::MAX);
            Timestamp::from_millis(now.saturating_sub(kept))
        });
        let asked = |gap: &&LogGap| gap.to >= oldest && gap.is_within(from, to);
        let newest = log.gaps.iter().rev().filter(asked).take(GAPS_SHOWN_MAX);
        let mut shown: Vec<_> = newest.cloned().collect();
        shown.reverse();
        shown
    }

    /// Whether nothing is recorded of a topic.
    pub(crate) fn is_log_off(&self, record: Option<&TopicRecord>) -> bool {
        let mode = record.map(|record| {
            record
                .settings
                .delivery_log
                .unwrap_or(self.settings.log.mode)
        });
        mode.is_some_and(|mode| !mode.keeps_attempts())
    }
}

/// The time in which an event may have had attempts, as far as the log knows it: from its acceptance
/// to the end of its last delivery.
pub(crate) fn event_lifetime<'a>(
    histories: impl Iterator<Item = &'a DeliveryHistory> + Clone,
    asked: TimeBounds,
) -> TimeBounds {
    let accepted = histories.clone().map(|history| history.first().accepted_at);
    let has_ended = |history: &DeliveryHistory| {
        matches!(
            history.state,
            DeliveryState::Delivered | DeliveryState::DeadLettered | DeliveryState::Dropped
        )
    };
    let last = histories
        .clone()
        .flat_map(DeliveryHistory::records)
        .map(|record| record.time)
        .max();
    let mut histories = histories;
    let end = last.filter(|_| histories.all(has_ended));
    let (from, to) = asked;
    (from.max(accepted.min()), end.or(to))
}

/// The name of a subscription as it was written. The log has it in lower case.
pub(crate) fn written_name(record: Option<&TopicRecord>, folded: &str) -> String {
    let name = SubscriptionName::parse(folded).ok();
    let found = record
        .zip(name)
        .and_then(|(record, name)| record.settings.find_subscription(&name));
    found
        .map_or(folded, |(written, _)| written.as_str())
        .to_owned()
}

/// The names of damaged files. Each is logged.
pub(crate) fn log_damaged_files(damaged: &[LogError]) -> Vec<&str> {
    for error in damaged {
        tracing::error!(
            error = error as &dyn Error,
            "a file of the delivery log is damaged"
        );
    }
    damaged.iter().filter_map(LogError::damaged_file).collect()
}
