//! Work that resolves or deletes dead letters: lists of it, and one with what is left to do.

use std::pin::pin;
use std::sync::Arc;

use axum::extract::{FromRef, State};
use futures_util::TryStreamExt;
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::api::{
    IsoTimestamp, LetterWorkAction, LetterWorkPage, LetterWorkState, LetterWorkView, ResolveRequest,
};
use posthaste_core::model::Timestamp;
use posthaste_core::stored::{LetterEnd, LetterEnding, layout};
use posthaste_ports::{Clock, ObjectStore, Ports};
use posthaste_services::replay::letter_objects;
use posthaste_services::{LEFT_AFTER, pages};
use serde::Deserialize;

use super::ender::ResolveTask;
use crate::answer::{ApiError, ApiResult, JsonResponse, skip_damaged, unavailable_problem};
use crate::document::{BadRequests, NoLetterWork, Problems};
use crate::extract::{Path, Query};
use crate::manage::Manage;
use crate::paging::{LIST_TIME_MAX, PageRequest, after_in, encode_cursor};
use crate::shared_port::SharedPort;

/// Most marks that one request reads, so that it ends even if the clock stands still.
const READS_MAX: usize = 2_000;

/// Most pages of a thousand keys that are listed for what is left to do.
const LEFT_PAGES_MAX: usize = 5;

/// The query of a list of work.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct LetterWorkQuery {
    /// Whether what has ended is left out. False when left out.
    #[serde(default)]
    active: bool,
    /// Most items on the page. 100 when left out.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Where the page begins, as the page before gave it.
    cursor: Option<String>,
}

/// The path of some work.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct LetterWorkPath {
    /// The id of the work, as the answer to the request for it said.
    pub(super) id: String,
}

/// List the work that resolves or deletes dead letters
///
/// What is under way or waits for its turn, and for a day what took more than one request and is
/// done, or was cancelled. The newest of a page first. Marks are read for a few seconds; `cursor`
/// says where to go on.
#[utoipa::path(get, path = "/dead-letters/work", tag = "dead letters", params(LetterWorkQuery),
    responses((status = 200, description = "One page of the work", body = LetterWorkPage),
        BadRequests, Problems))]
pub(crate) async fn list_letter_work<P: Ports>(
    State(list): State<LetterWorkList<P>>,
    Query(query): Query<LetterWorkQuery>,
) -> ApiResult<LetterWorkPage> {
    Ok(JsonResponse::new(list.list_work(&query).await?))
}

/// Show work that resolves or deletes dead letters
///
/// With what is left to do, as far as that is counted in a few seconds. What was done within one
/// request is not kept: its answer said all. Nor is what has failed for a day.
#[utoipa::path(get, path = "/dead-letters/work/{id}", tag = "dead letters", params(LetterWorkPath),
    responses((status = 200, description = "The work", body = LetterWorkView),
        NoLetterWork, BadRequests, Problems))]
pub(crate) async fn show_letter_work<P: Ports>(
    State(list): State<LetterWorkList<P>>,
    Path(path): Path<LetterWorkPath>,
) -> ApiResult<LetterWorkView> {
    let found = list.find_work(&path.id).await?;
    Ok(JsonResponse::new(list.view_with_rest(&found.ending).await))
}

/// Work with its key.
pub(super) struct FoundEnding {
    pub(super) key: String,
    pub(super) ending: LetterEnding,
}

/// The mark under the key of a selection. What is kept of it lies behind.
#[derive(Default)]
struct SelectionMark {
    key: String,
    /// The id of the work, if some lies there.
    work_id: Option<String>,
}

impl SelectionMark {
    fn new(key: &str, ending: Option<&LetterEnding>) -> Self {
        Self {
            key: key.to_owned(),
            work_id: ending.map(|ending| ending.id.clone()),
        }
    }
}

/// The work that resolves or deletes dead letters.
pub(crate) struct LetterWorkList<P: Ports> {
    state: SharedPort<P, P::Store>,
    dead_letters: SharedPort<P, P::DeadLetters>,
    clock: P::Clock,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for LetterWorkList<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            state: SharedPort::new(manage, |it| &it.state),
            dead_letters: SharedPort::new(manage, |it| &it.dead_letters),
            clock: manage.clock.clone(),
        }
    }
}

impl<P: Ports> LetterWorkList<P> {
    /// One page of the work.
    async fn list_work(&self, query: &LetterWorkQuery) -> Result<LetterWorkPage, ApiError> {
        let PageRequest { items, after } =
            PageRequest::parse(query.limit, query.cursor.as_deref())?;
        let after = after_in(layout::ENDING, after)?;
        let end = self.clock.monotonic() + LIST_TIME_MAX;
        let mut marks = pin!(pages::list_objects(&*self.state, layout::ENDING, after));
        let mut page = LetterWorkPage::default();
        let mut reads = 0;
        let mut last = None;
        let mut selection = SelectionMark::default();
        while let Some(mark) = marks.try_next().await? {
            let is_late = reads > 0 && self.clock.monotonic() >= end;
            if page.work.len() == items || reads == READS_MAX || is_late {
                page.cursor = last;
                break;
            }
            reads += 1;
            last = Some(encode_cursor(&mark.key));
            let ending = self.read_ending(&mark.key).await?;
            // Between two writes, ended work lies under two keys: that of its selection comes first.
            let key = LetterEnding::selection_of_kept(&mark.key);
            if selection.key != key.unwrap_or(&mark.key) {
                selection = match key {
                    Some(key) => self.read_selection(key).await?,
                    None => SelectionMark::new(&mark.key, ending.as_ref()),
                };
            }
            let is_kept = key.is_some();
            if let Some(ending) = ending
                && (ending.is_open() || !query.active)
                && !(is_kept && selection.work_id.as_ref() == Some(&ending.id))
            {
                page.work.push(view_of_ending(&ending, self.clock.now()));
            }
        }
        page.work
            .sort_by(|one, other| (other.began_at, &one.id).cmp(&(one.began_at, &other.id)));
        Ok(page)
    }

    /// The work of this id. The keys of marks do not tell ids: each is read until it is found.
    pub(super) async fn find_work(&self, id: &str) -> Result<FoundEnding, ApiError> {
        let end = self.clock.monotonic() + LIST_TIME_MAX;
        let mut marks = pin!(pages::list_objects(&*self.state, layout::ENDING, None));
        let mut reads = 0;
        while let Some(mark) = marks.try_next().await? {
            if reads == READS_MAX || (reads > 0 && self.clock.monotonic() >= end) {
                return Err(unavailable_problem().into());
            }
            reads += 1;
            if let Some(ending) = self.read_ending(&mark.key).await?
                && ending.id == id
            {
                let key = mark.key;
                return Ok(FoundEnding { key, ending });
            }
        }
        Err(unknown_work_problem().into())
    }

    /// The mark under the key of a selection, for a page that begins behind it.
    async fn read_selection(&self, key: &str) -> Result<SelectionMark, ApiError> {
        let ending = self.read_ending(key).await?;
        Ok(SelectionMark::new(key, ending.as_ref()))
    }

    /// The work under a key. One that is about to be deleted, or is gone, is none; one that cannot be
    /// read is logged too.
    async fn read_ending(&self, key: &str) -> Result<Option<LetterEnding>, ApiError> {
        let object = skip_damaged(self.state.get(key).await)?;
        let ending = object.and_then(|object| LetterEnding::parse(&object.bytes).ok());
        Ok(ending.filter(|ending| !ending.has_ended))
    }

    /// The work with the number of objects that are yet to be looked at. It is shown without where
    /// they cannot be listed.
    async fn view_with_rest(&self, ending: &LetterEnding) -> LetterWorkView {
        let view = view_of_ending(ending, self.clock.now());
        if !ending.is_open() {
            return view;
        }
        let Ok(task) = ResolveTask::for_ending(ending) else {
            return view;
        };
        let end = self.clock.monotonic() + LIST_TIME_MAX;
        let mut after = ending.after.clone();
        let mut objects = 0;
        for _ in 0..LEFT_PAGES_MAX {
            let listed = letter_objects(&*self.dead_letters, &task.selection, after.as_deref());
            let Ok(page) = listed.await else { return view };
            objects += page.objects.len();
            after = page.next_after;
            if after.is_none() || self.clock.monotonic() >= end {
                break;
            }
        }
        LetterWorkView {
            objects_left: u64::try_from(objects).ok(),
            has_more_left: after.is_some(),
            ..view
        }
    }
}

/// Work as users see it.
pub(super) fn view_of_ending(ending: &LetterEnding, now: Timestamp) -> LetterWorkView {
    let counts = ending.done.unwrap_or_default();
    let state = if ending.cancelled_at.is_some() {
        LetterWorkState::Cancelled
    } else if ending.ended_at.is_some() {
        LetterWorkState::Done
    } else if now.since(ending.worked_at) >= LEFT_AFTER {
        LetterWorkState::Waiting
    } else {
        LetterWorkState::Running
    };
    LetterWorkView {
        id: ending.id.clone(),
        topic: ending.topic.clone(),
        subscription: ending.subscription.clone(),
        action: match ending.end {
            LetterEnd::Resolve => LetterWorkAction::Resolve,
            LetterEnd::Delete => LetterWorkAction::Delete,
        },
        state,
        letters_named: ending.request.letters.len(),
        request: ResolveRequest {
            letters: Vec::new(),
            ..ending.request.clone()
        },
        began_at: IsoTimestamp(ending.began_at),
        worked_at: IsoTimestamp(ending.worked_at),
        ended_at: ending.closed_at().map(IsoTimestamp),
        events: counts.events,
        objects: counts.objects,
        deleted_objects: counts.deleted_objects,
        failed: counts.failed,
        objects_read: counts.read,
        objects_left: None,
        has_more_left: false,
    }
}

/// The problem of an id that no work has.
pub(super) fn unknown_work_problem() -> ApiProblem {
    let detail = "there is no such work: it was done within its request, ended more than a day ago, \
        or never was";
    ApiProblem::new(ProblemKind::NotFound).detail(detail)
}
