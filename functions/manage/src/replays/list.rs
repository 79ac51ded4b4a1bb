//! Replays in lists.

use axum::extract::State;
use futures_util::TryStreamExt;
use posthaste_core::api::{ReplayPage, ReplayState, ReplayView};
use posthaste_core::stored::layout;
use posthaste_ports::{ObjectStore, PortError, Ports};
use posthaste_services::pages;
use serde::Deserialize;

use super::parse;
use crate::answer::{Answer, ApiError, JsonResponse, listed};
use crate::document::{BadRequests, Problems};
use crate::extract::Query;
use crate::manage::{Manage, Managed};
use crate::paging::{Page, cursor};

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
    /// Most items on the page. 100 when left out.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Where the page begins, as the page before gave it.
    cursor: Option<String>,
}

/// The keys of a page's records or markers, and the key at its end if another page follows.
type Keys = (Vec<String>, Option<String>);

/// List replays
///
/// The oldest first, or the newest. A replay is kept for 30 days.
#[utoipa::path(get, path = "/replays", tag = "dead letters", params(ReplayQuery),
    responses((status = 200, description = "One page of replays", body = ReplayPage), BadRequests, Problems))]
pub(crate) async fn list_replays<P: Ports>(
    State(manage): Managed<P>,
    Query(query): Query<ReplayQuery>,
) -> Answer<ReplayPage> {
    let page = Page::parse(query.limit, query.cursor.as_deref())?;
    // Each replay that has not ended has a marker, so that the records of the others need not be read.
    let of = if query.active { layout::REPLAYING } else { layout::REPLAYS };
    let listing =
        if query.newest_first { manage.newest(of, page).await? } else { manage.oldest(of, page).await? };
    let (keys, next) = listing;
    let mut replays = manage.shown_replays(&keys).await?;
    // A replay that has just ended may still have its marker.
    replays.retain(|replay| !query.active || is_active(replay.state));
    Ok(JsonResponse::new(ReplayPage { replays, cursor: next.as_deref().map(cursor) }))
}

const fn is_active(state: ReplayState) -> bool {
    matches!(state, ReplayState::Running | ReplayState::Waiting)
}

impl<P: Ports> Manage<P> {
    async fn oldest(&self, of: &str, Page { items, after }: Page) -> Result<Keys, PortError> {
        let listing = self.state.list(of, after.as_deref(), items).await?;
        Ok((listing.objects.into_iter().map(|meta| meta.key).collect(), listing.next_after))
    }

    /// The last keys before the page's beginning. Every key is listed, a thousand in a request; of the
    /// records, those of the page alone are read.
    async fn newest(&self, of: &str, Page { items, after: before }: Page) -> Result<Keys, PortError> {
        let mut keys: Vec<_> =
            pages::objects(&self.state, of, None).map_ok(|meta| meta.key).try_collect().await?;
        keys.retain(|key| before.as_ref().is_none_or(|before| key < before));
        let rest = keys.len().saturating_sub(items);
        let mut page = keys.split_off(rest);
        page.reverse();
        let next = page.last().filter(|_| rest > 0).cloned();
        Ok((page, next))
    }

    /// The replays of these records or markers. One that is gone is left out; one that cannot be read is
    /// logged too.
    async fn shown_replays(&self, keys: &[String]) -> Result<Vec<ReplayView>, ApiError> {
        let mut replays = Vec::new();
        for key in keys {
            let marked = key.strip_prefix(layout::REPLAYING);
            let Some(id) = marked.or_else(|| layout::replay_of(key)) else { continue };
            let object = listed(self.state.get(&layout::replay(id)).await)?;
            replays.extend(parse(id, object).ok().map(|replay| replay.shown()));
        }
        Ok(replays)
    }
}
