//! Replays in lists.

use std::pin::pin;
use std::sync::Arc;

use axum::extract::{FromRef, State};
use futures_util::{Stream, TryStreamExt, stream};
use posthaste_core::api::{ReplayPage, ReplayState, ReplayView};
use posthaste_core::model::{SubscriptionName, TopicName};
use posthaste_core::stored::layout;
use posthaste_ports::{Clock, ObjectStore, PortError, Ports};
use posthaste_services::pages;
use serde::Deserialize;

use super::outcomes::OutcomeCounter;
use super::store::parse_replay;
use crate::answer::{ApiError, ApiResult, JsonResponse, skip_damaged};
use crate::document::{BadRequests, Problems};
use crate::extract::Query;
use crate::manage::Manage;
use crate::paging::{LIST_TIME_MAX, PageRequest, after_in, encode_cursor};
use crate::shared_port::SharedPort;

/// Most records that a page reads, so that it ends even if the clock stands still.
const READS_MAX: usize = 2_000;

/// The query of replays.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct ReplayQuery {
    /// Whether the newest come first. False when left out.
    #[serde(default)]
    newest_first: bool,
    /// Whether those that have ended are left out. False when left out.
    #[serde(default)]
    active: bool,
    /// Only replays of this topic, in any case.
    #[param(value_type = Option<String>)]
    topic: Option<TopicName>,
    /// Only replays to subscriptions of this name, in any case.
    #[param(value_type = Option<String>)]
    subscription: Option<SubscriptionName>,
    /// Whether to say what became of the events of the first 20 replays, for three seconds: the
    /// others have no `outcomes`. False when left out.
    #[serde(default)]
    outcomes: bool,
    /// Most items on the page. 100 when left out.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Where the page begins, as the page before gave it.
    cursor: Option<String>,
}

impl ReplayQuery {
    fn matches(&self, replay: &ReplayView) -> bool {
        // A replay that has just ended may still have its marker.
        (!self.active || is_active(replay.state))
            && self
                .topic
                .as_ref()
                .is_none_or(|topic| topic.folded() == replay.topic.folded())
            && self
                .subscription
                .as_ref()
                .is_none_or(|name| name.folded() == replay.subscription.folded())
    }
}

/// List replays
///
/// The oldest first, or the newest. A replay is kept for 30 days. Replays are read for a few
/// seconds; `cursor` says where to go on.
#[utoipa::path(get, path = "/replays", tag = "dead letters", params(ReplayQuery),
    responses((status = 200, description = "One page of replays", body = ReplayPage), BadRequests, Problems))]
pub(crate) async fn list_replays<P: Ports>(
    State(list): State<ReplayList<P>>,
    State(counter): State<OutcomeCounter<P>>,
    Query(query): Query<ReplayQuery>,
) -> ApiResult<ReplayPage> {
    let PageRequest { items, after } = PageRequest::parse(query.limit, query.cursor.as_deref())?;
    // Each replay that has not ended has a marker, so that the records of the others need not be
    // read.
    let of = if query.active {
        layout::REPLAYING
    } else {
        layout::REPLAYS
    };
    let after = after_in(of, after)?;
    let page = list.list_replays(of, after, &query, items).await?;
    if query.outcomes {
        return Ok(JsonResponse::new(counter.add_outcomes_to_page(page).await));
    }
    Ok(JsonResponse::new(page))
}

const fn is_active(state: ReplayState) -> bool {
    matches!(state, ReplayState::Running | ReplayState::Waiting)
}

/// The replays in lists.
pub(crate) struct ReplayList<P: Ports> {
    state: SharedPort<P, P::Store>,
    clock: P::Clock,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for ReplayList<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            state: SharedPort::new(manage, |it| &it.state),
            clock: manage.clock.clone(),
        }
    }
}

impl<P: Ports> ReplayList<P> {
    /// One page of replays, by their records or markers under this prefix.
    async fn list_replays(
        &self,
        of: &str,
        after: Option<String>,
        query: &ReplayQuery,
        items: usize,
    ) -> Result<ReplayPage, ApiError> {
        if query.newest_first {
            let keys = self.keys_newest_first(of, after).await?;
            let keys = stream::iter(keys.into_iter().map(Ok));
            return self.replay_page(keys, query, items).await;
        }
        let keys = pages::list_objects(&*self.state, of, after).map_ok(|meta| meta.key);
        self.replay_page(keys, query, items).await
    }

    /// The keys before the page's beginning, the last first. Every key is listed, a thousand in a
    /// request; of the records, those of the page alone are read.
    async fn keys_newest_first(
        &self,
        of: &str,
        before: Option<String>,
    ) -> Result<Vec<String>, PortError> {
        let mut keys: Vec<_> = pages::list_objects(&*self.state, of, None)
            .map_ok(|meta| meta.key)
            .try_collect()
            .await?;
        keys.retain(|key| before.as_ref().is_none_or(|before| key < before));
        keys.reverse();
        Ok(keys)
    }

    /// The page of the replays of these records or markers.
    async fn replay_page(
        &self,
        keys: impl Stream<Item = Result<String, PortError>>,
        query: &ReplayQuery,
        items: usize,
    ) -> Result<ReplayPage, ApiError> {
        let mut keys = pin!(keys);
        let end = self.clock.monotonic() + LIST_TIME_MAX;
        let mut replays = Vec::new();
        let mut last = None;
        let mut reads = 0;
        while let Some(key) = keys.try_next().await? {
            let is_late = reads > 0 && self.clock.monotonic() >= end;
            if replays.len() == items || reads == READS_MAX || is_late {
                return Ok(ReplayPage {
                    replays,
                    cursor: last,
                });
            }
            reads += 1;
            replays.extend(
                self.shown_replay(&key)
                    .await?
                    .filter(|replay| query.matches(replay)),
            );
            last = Some(encode_cursor(&key));
        }
        Ok(ReplayPage {
            replays,
            cursor: None,
        })
    }

    /// The replay of this record or marker. One that is gone is left out; one that cannot be read
    /// is logged too.
    async fn shown_replay(&self, key: &str) -> Result<Option<ReplayView>, ApiError> {
        let marked = key.strip_prefix(layout::REPLAYING);
        let Some(id) = marked.or_else(|| layout::replay_of(key)) else {
            return Ok(None);
        };
        let object = skip_damaged(self.state.get(&layout::replay_record_key(id)).await)?;
        Ok(parse_replay(id, object).ok().map(|replay| replay.to_view()))
    }
}
