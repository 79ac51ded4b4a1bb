//! Lists of dead letters: of all, of a topic and of a subscription.

use std::sync::Arc;

use axum::extract::FromRef;
use posthaste_core::api::DeadLetterPage;
use posthaste_core::model::{DeadLetterReason, Timestamp, WrittenTime};
use posthaste_core::stored::{WrittenIn, layout};
use posthaste_ports::{Clock, Ports};
use serde::Deserialize;

use super::owners::DeadLetterScope;
use super::search::{DeadLetterSearch, LetterSearch, SearchPosition};
use crate::answer::{ApiError, unknown_topic};
use crate::extract::{SubscriptionPath, TopicPath};
use crate::manage::Manage;
use crate::paging::{PageRequest, bad_cursor};
use crate::recoveries::RecoveryReader;
use crate::temporary::UseNotes;
use crate::topic_records::TopicRecords;

/// The query of dead letters.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeadLetterQuery {
    /// Only those written at this time or later. Of an object that was copied, the hour in its key
    /// counts.
    #[param(value_type = Option<String>, format = DateTime)]
    from: Option<WrittenTime>,
    /// Only those written before this time.
    #[param(value_type = Option<String>, format = DateTime)]
    to: Option<WrittenTime>,
    /// Only events that were given up for this reason.
    #[param(inline)]
    reason: Option<DeadLetterReason>,
    /// Only events of this type, compared exactly.
    #[serde(rename = "type")]
    event_type: Option<String>,
    /// Whether to show resolved dead letters too. False when left out.
    #[serde(default, rename = "includeResolved")]
    include_resolved: bool,
    /// Most dead letters on the page. 100 when left out.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// The beginning of the page: the `cursor` of the page before.
    cursor: Option<String>,
}

impl DeadLetterQuery {
    fn into_search(self, scope: DeadLetterScope, now: Timestamp) -> Result<LetterSearch, ApiError> {
        let Self {
            from,
            to,
            reason,
            event_type,
            include_resolved,
            limit,
            cursor,
        } = self;
        let PageRequest { items, after } = PageRequest::parse(limit, cursor.as_deref())?;
        let after = after
            .map(|after| SearchPosition::parse(&after).ok_or_else(bad_cursor))
            .transpose()?;
        let (from, to) = WrittenTime::resolve_period(from, to, now);
        let written = WrittenIn { from, to };
        Ok(LetterSearch {
            scope,
            written,
            reason,
            event_type,
            include_resolved,
            items,
            after,
        })
    }
}

/// The lists of dead letters, each with the recoveries of what it lists.
pub(crate) struct DeadLetterLists<P: Ports> {
    clock: P::Clock,
    search: DeadLetterSearch<P>,
    recoveries: RecoveryReader<P>,
    records: TopicRecords<P>,
    uses: UseNotes<P>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for DeadLetterLists<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            clock: manage.clock.clone(),
            search: DeadLetterSearch::from_ref(manage),
            recoveries: RecoveryReader::from_ref(manage),
            records: TopicRecords::from_ref(manage),
            uses: UseNotes::from_ref(manage),
        }
    }
}

impl<P: Ports> DeadLetterLists<P> {
    /// A page of all dead letters.
    pub(super) async fn list_all(
        &self,
        query: DeadLetterQuery,
    ) -> Result<DeadLetterPage, ApiError> {
        let is_first = query.cursor.is_none();
        let search = query.into_search(DeadLetterScope::All, self.clock.now())?;
        let mut page = self.search.search_letters(search).await?;
        if is_first {
            page.recoveries = self.recoveries.list_recoveries(layout::RECOVERY).await;
        }
        Ok(page)
    }

    /// A page of a topic's dead letters.
    pub(super) async fn list_of_topic(
        &self,
        path: &TopicPath,
        query: DeadLetterQuery,
    ) -> Result<DeadLetterPage, ApiError> {
        let prefix = layout::dead_letters_of_topic(&path.topic);
        let is_first = query.cursor.is_none();
        let scope = DeadLetterScope::Topic(prefix.clone());
        let search = query.into_search(scope, self.clock.now())?;
        let mut page = self.search.search_letters(search).await?;
        if is_empty(&page)
            && self.search.has_no_letters(&prefix).await?
            && self.records.load_record(&path.topic).await?.is_none()
        {
            return Err(unknown_topic(&path.topic).into());
        }
        if is_first {
            let marks = layout::recovery_marks_of(&path.topic);
            page.recoveries = self.recoveries.list_recoveries(&marks).await;
        }
        Ok(page)
    }

    /// A page of a subscription's dead letters.
    pub(super) async fn list_of_subscription(
        &self,
        path: &SubscriptionPath,
        query: DeadLetterQuery,
    ) -> Result<DeadLetterPage, ApiError> {
        let prefix = layout::dead_letters_of(&path.topic, &path.name);
        let is_first = query.cursor.is_none();
        let scope = DeadLetterScope::Subscription(prefix.clone());
        let search = query.into_search(scope, self.clock.now())?;
        self.uses
            .note_dead_letter_read(&path.topic, &path.name)
            .await;
        let mut page = self.search.search_letters(search).await?;
        if is_empty(&page) && self.search.has_no_letters(&prefix).await? {
            path.find_in(&self.records.existing_record(&path.topic).await?)?;
        }
        if is_first {
            let mark = layout::recovery_mark_key(&path.topic, &path.name);
            let mut recoveries = self.recoveries.list_recoveries(&mark).await;
            // Other names may begin with this one.
            recoveries.retain(|it| it.subscription.folded() == path.name.folded());
            page.recoveries = recoveries;
        }
        Ok(page)
    }
}

fn is_empty(page: &DeadLetterPage) -> bool {
    page.dead_letters.is_empty() && page.failures.is_empty() && page.cursor.is_none()
}
