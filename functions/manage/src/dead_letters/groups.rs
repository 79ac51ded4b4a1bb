//! Dead letters by subscription and reason: counts of the newest ones, for a limited time.

use std::sync::Arc;

use axum::extract::{FromRef, State};
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::api::{LetterGroupPage, RecoveryView};
use posthaste_core::model::{SubscriptionName, TopicName, WrittenTime};
use posthaste_core::stored::{WrittenIn, layout};
use posthaste_ports::{Clock, ObjectStore, Ports};
use serde::Deserialize;

use super::group_counter::{GroupCounter, GroupSearch};
use super::owners::DeadLetterScope;
use super::search::SearchPosition;
use crate::answer::{ApiError, ApiResult, JsonResponse};
use crate::document::{BadRequests, Problems, UnknownSubscription};
use crate::extract::{Query, SubscriptionPath};
use crate::manage::Manage;
use crate::paging::{PageRequest, bad_cursor};
use crate::recoveries::RecoveryReader;
use crate::shared_port::SharedPort;
use crate::temporary::UseNotes;
use crate::topic_records::TopicRecords;

/// The query of groups of dead letters.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct LetterGroupQuery {
    /// Only those of this topic, in any case.
    #[param(value_type = Option<String>)]
    topic: Option<TopicName>,
    /// Only those of this subscription of the topic, in any case.
    #[param(value_type = Option<String>)]
    subscription: Option<SubscriptionName>,
    /// Only those written at this time or later.
    #[param(value_type = Option<String>, format = DateTime)]
    from: Option<WrittenTime>,
    /// Only those written before this time.
    #[param(value_type = Option<String>, format = DateTime)]
    to: Option<WrittenTime>,
    /// Whether to count resolved dead letters too. False when left out.
    #[serde(default)]
    include_resolved: bool,
    /// The place to count on: the `cursor` of the answer before.
    cursor: Option<String>,
}

/// Count dead letters by subscription and reason
///
/// The newest are counted first, for about two seconds. What lies further back is counted by the
/// next request, with `cursor`; until then there are at least as many as a group says. Topics and
/// subscriptions may have been deleted. Where there is neither the one that is named nor any dead
/// letter of it, the answer is 404.
#[utoipa::path(get, path = "/dead-letters/groups", tag = "dead letters", params(LetterGroupQuery),
    responses((status = 200, description = "The groups", body = LetterGroupPage),
        BadRequests, UnknownSubscription, Problems))]
pub(crate) async fn list_letter_groups<P: Ports>(
    State(groups): State<LetterGroups<P>>,
    Query(query): Query<LetterGroupQuery>,
) -> ApiResult<LetterGroupPage> {
    let page = groups.list_groups(query).await?;
    Ok(JsonResponse::new(page))
}

/// The groups of dead letters, with the recoveries of what they count.
pub(crate) struct LetterGroups<P: Ports> {
    dead_letters: SharedPort<P, P::DeadLetters>,
    clock: P::Clock,
    counter: GroupCounter<P>,
    recoveries: RecoveryReader<P>,
    records: TopicRecords<P>,
    uses: UseNotes<P>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for LetterGroups<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            dead_letters: SharedPort::new(manage, |it| &it.dead_letters),
            clock: manage.clock.clone(),
            counter: GroupCounter::from_ref(manage),
            recoveries: RecoveryReader::from_ref(manage),
            records: TopicRecords::from_ref(manage),
            uses: UseNotes::from_ref(manage),
        }
    }
}

/// The owner that a query names.
enum NamedOwner {
    Any,
    Topic(TopicName),
    Subscription(SubscriptionPath),
}

impl NamedOwner {
    fn new(
        topic: Option<TopicName>,
        subscription: Option<SubscriptionName>,
    ) -> Result<Self, ApiProblem> {
        match (topic, subscription) {
            (None, None) => Ok(Self::Any),
            (Some(topic), None) => Ok(Self::Topic(topic)),
            (Some(topic), Some(name)) => Ok(Self::Subscription(SubscriptionPath { topic, name })),
            (None, Some(_)) => Err(ApiProblem::new(ProblemKind::BadRequest)
                .member("topic")
                .detail("a subscription needs its topic")),
        }
    }

    fn to_scope(&self) -> DeadLetterScope {
        match self {
            Self::Any => DeadLetterScope::All,
            Self::Topic(topic) => DeadLetterScope::Topic(layout::dead_letters_of_topic(topic)),
            Self::Subscription(SubscriptionPath { topic, name }) => {
                DeadLetterScope::Subscription(layout::dead_letters_of(topic, name))
            }
        }
    }
}

impl<P: Ports> LetterGroups<P> {
    async fn list_groups(&self, query: LetterGroupQuery) -> Result<LetterGroupPage, ApiError> {
        let after = PageRequest::parse(None, query.cursor.as_deref())?.after;
        let after = after
            .map(|after| SearchPosition::parse(&after).ok_or_else(bad_cursor))
            .transpose()?;
        let is_first = after.is_none();
        let owner = NamedOwner::new(query.topic, query.subscription)?;
        let (from, to) = WrittenTime::resolve_period(query.from, query.to, self.clock.now());
        let search = GroupSearch {
            scope: owner.to_scope(),
            written: WrittenIn { from, to },
            include_resolved: query.include_resolved,
            after,
        };
        if let NamedOwner::Subscription(path) = &owner {
            self.uses
                .note_dead_letter_read(&path.topic, &path.name)
                .await;
        }
        let mut page = self.counter.count_groups(search).await?;
        if page.groups.is_empty() && page.failures.is_empty() && page.cursor.is_none() {
            self.check_owner(&owner).await?;
        }
        if is_first {
            page.recoveries = self.list_recoveries(&owner).await;
        }
        Ok(page)
    }

    /// Checks that a name without groups is not written wrong.
    async fn check_owner(&self, owner: &NamedOwner) -> Result<(), ApiError> {
        let (prefix, topic) = match owner {
            NamedOwner::Any => return Ok(()),
            NamedOwner::Topic(topic) => (layout::dead_letters_of_topic(topic), topic),
            NamedOwner::Subscription(path) => (
                layout::dead_letters_of(&path.topic, &path.name),
                &path.topic,
            ),
        };
        let listed = self.dead_letters.list(&prefix, None, 1).await?;
        if !listed.objects.is_empty() {
            return Ok(());
        }
        let record = self.records.existing_record(topic).await?;
        if let NamedOwner::Subscription(path) = owner {
            path.find_in(&record)?;
        }
        Ok(())
    }

    async fn list_recoveries(&self, owner: &NamedOwner) -> Vec<RecoveryView> {
        match owner {
            NamedOwner::Any => self.recoveries.list_recoveries(layout::RECOVERY).await,
            NamedOwner::Topic(topic) => {
                let marks = layout::recovery_marks_of(topic);
                self.recoveries.list_recoveries(&marks).await
            }
            NamedOwner::Subscription(path) => {
                let mark = layout::recovery_mark_key(&path.topic, &path.name);
                let mut recoveries = self.recoveries.list_recoveries(&mark).await;
                // Other names may begin with this one.
                recoveries.retain(|it| it.subscription.folded() == path.name.folded());
                recoveries
            }
        }
    }
}
