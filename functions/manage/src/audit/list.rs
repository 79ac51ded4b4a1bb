//! The audit trail in lists.

use std::sync::Arc;

use axum::extract::{FromRef, State};
use futures_util::StreamExt;
use futures_util::stream;
use posthaste_core::api::{AuditEntry, AuditPage};
use posthaste_core::model::{TopicName, WrittenTime};
use posthaste_core::stored::layout;
use posthaste_ports::validate::LIST_PAGE_MAX;
use posthaste_ports::{Clock, ObjectStore, PortError, Ports};
use serde::Deserialize;

use crate::answer::{ApiError, ApiResult, JsonResponse, skip_damaged};
use crate::document::{BadRequests, Problems};
use crate::extract::Query;
use crate::manage::Manage;
use crate::paging::{LIST_TIME_MAX, PageRequest, after_in, encode_cursor};
use crate::request_clock::RequestClock;
use crate::shared_port::SharedPort;

/// Entries that are read side by side.
const READS_AT_ONCE: usize = 16;

/// Most pages of keys that one request lists, so that it ends even if the clock stands still. Keys
/// name the topic, so the entries of other topics are not read.
const LISTS_MAX: usize = 20;

/// The query of the audit trail.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct AuditQuery {
    /// Only changes of this topic and its subscriptions, in any case.
    #[param(value_type = Option<String>)]
    topic: Option<TopicName>,
    /// Only changes of this time or later.
    #[param(value_type = Option<String>, format = DateTime)]
    from: Option<WrittenTime>,
    /// Only changes before this time.
    #[param(value_type = Option<String>, format = DateTime)]
    to: Option<WrittenTime>,
    /// Most items on the page. 100 when left out.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Where the page begins, as the page before gave it.
    cursor: Option<String>,
}

/// The part of the trail that a request asks for, by its keys.
struct AuditKeyRange {
    topic: Option<TopicName>,
    /// The keys before this one are of later entries.
    after: Option<String>,
    /// The keys from this one on are of earlier entries.
    end: Option<String>,
    items: usize,
}

/// List who changed what
///
/// The audit trail, the newest change first: who made it, from where, and what differs since,
/// without secrets. An entry is written before its change is made, and its `outcome` before the
/// request is answered. Entries are kept for 180 days; `serve` keeps at most 100,000 of them, and
/// 256 MiB. Entries are read for a few seconds; `cursor` says where to go on.
#[utoipa::path(get, path = "/audit", tag = "status", params(AuditQuery),
    responses((status = 200, description = "One page of the audit trail", body = AuditPage),
        BadRequests, Problems))]
pub(crate) async fn list_audit<P: Ports>(
    State(trail): State<AuditReader<P>>,
    State(clock): State<RequestClock<P>>,
    Query(query): Query<AuditQuery>,
) -> ApiResult<AuditPage> {
    let PageRequest { items, after } = PageRequest::parse(query.limit, query.cursor.as_deref())?;
    let after = after_in(layout::AUDIT, after)?;
    let (from, to) = WrittenTime::resolve_period(query.from, query.to, clock.now());
    // A page begins behind both: the place where the last one ended, and the end of the period.
    let part = AuditKeyRange {
        topic: query.topic,
        after: after.max(to.map(layout::audit_key_after)),
        end: from.map(layout::audit_key_after),
        items,
    };
    Ok(JsonResponse::new(trail.audit_page(&part).await?))
}

impl AuditKeyRange {
    fn is_behind(&self, key: &str) -> bool {
        self.end.as_ref().is_some_and(|end| key >= end.as_str())
    }

    fn includes_key(&self, key: &str) -> bool {
        let topic = self.topic.as_ref();
        topic.is_none_or(|topic| layout::is_audit_of(key, topic))
    }
}

/// The audit trail, for its readers.
pub(crate) struct AuditReader<P: Ports> {
    state: SharedPort<P, P::Store>,
    clock: P::Clock,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for AuditReader<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            state: SharedPort::new(manage, |it| &it.state),
            clock: manage.clock.clone(),
        }
    }
}

impl<P: Ports> AuditReader<P> {
    async fn audit_page(&self, part: &AuditKeyRange) -> Result<AuditPage, ApiError> {
        let end = self.clock.monotonic() + LIST_TIME_MAX;
        let mut entries = Vec::new();
        let mut after = part.after.clone();
        for _ in 0..LISTS_MAX {
            let listed = self
                .state
                .list(layout::AUDIT, after.as_deref(), LIST_PAGE_MAX);
            let page = listed.await?;
            let is_last = page.next_after.is_none()
                || page
                    .objects
                    .iter()
                    .any(|object| part.is_behind(&object.key));
            let keys = page.objects.into_iter().map(|object| object.key);
            let keys: Vec<_> = keys
                .take_while(|key| !part.is_behind(key))
                .filter(|key| part.includes_key(key))
                .collect();
            let mut read = stream::iter(keys)
                .map(|key| async move { (self.audit_entry(&key).await, key) })
                .buffered(READS_AT_ONCE);
            while let Some((entry, key)) = read.next().await {
                entries.extend(entry?);
                let is_late = self.clock.monotonic() >= end;
                if entries.len() == part.items || is_late {
                    let cursor = Some(encode_cursor(&key));
                    return Ok(AuditPage { entries, cursor });
                }
            }
            if is_last {
                let cursor = None;
                return Ok(AuditPage { entries, cursor });
            }
            after = page.next_after;
        }
        let cursor = after.as_deref().map(encode_cursor);
        Ok(AuditPage { entries, cursor })
    }

    /// An entry. One that is gone is left out; one that cannot be read is logged too.
    async fn audit_entry(&self, key: &str) -> Result<Option<AuditEntry>, PortError> {
        let Some(object) = skip_damaged(self.state.get(key).await)? else {
            return Ok(None);
        };
        Ok(AuditEntry::parse(&object.bytes)
            .inspect_err(|error| {
                let error = error as &dyn std::error::Error;
                tracing::error!(key, error, "an entry of the audit trail cannot be used");
            })
            .ok())
    }
}
