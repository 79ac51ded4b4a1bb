//! Topics. Their publish keys are in [`crate::keys`].

use axum::extract::State;
use axum::http::StatusCode;
use posthaste_core::api::problem::Problem;
use posthaste_core::api::{IsoTimestamp, SubscriptionSettings, TopicPage, TopicSettings, TopicSummary};
use posthaste_core::model::name::TopicName;
use posthaste_core::stored::layout;
use posthaste_core::stored::topic::TopicRecord;
use posthaste_ports::{Clock, Entropy};
use url::Url;

use crate::answer::{Failure, Shown, listed, store_problem};
use crate::conditions::{Conditions, topic_etag};
use crate::document::{BadRequests, BadWrites, FailedPrecondition, Problems, Unchanged, UnknownTopic};
use crate::edit::{Editor, Placed};
use crate::force::{Holds, links};
use crate::input::{Asked, At, PageQuery, TopicPath, Written, page_items};
use crate::{Manage, Managed, Store, Webhooks, cursor};

/// List topics
///
/// In a stable order, without their subscriptions.
#[utoipa::path(get, path = "/topics", tag = "topics", params(PageQuery),
    responses((status = 200, description = "One page of topics", body = TopicPage), BadRequests, Problems))]
pub(crate) async fn list_topics<S: Store, D: Store, W: Webhooks, C: Clock, E: Entropy>(
    State(manage): Managed<S, D, W, C, E>,
    Asked(query): Asked<PageQuery>,
) -> Result<Shown<TopicPage>, Failure> {
    let items = page_items(query.limit)?;
    let after = cursor::parse(query.cursor.as_deref())?;
    let page = manage.state.list(layout::TOPICS, after.as_deref(), items).await;
    let page = page.map_err(|error| store_problem(&error))?;
    let mut topics = Vec::with_capacity(page.objects.len());
    for listed in page.objects {
        topics.extend(manage.summary(&listed.key).await?);
    }
    Ok(Shown::new(TopicPage { topics, cursor: page.next_after.as_deref().map(cursor::render) }))
}

/// Show a topic
///
/// With its subscriptions. Secrets are masked; what is shown is accepted when it is put back.
#[utoipa::path(get, path = "/topics/{topic}", tag = "topics", params(TopicPath),
    responses((status = 200, description = "The topic", body = TopicSettings,
        headers(("ETag" = String, description = "Its version, for If-Match"))), BadRequests, UnknownTopic, Problems))]
pub(crate) async fn get_topic<S: Store, D: Store, W: Webhooks, C: Clock, E: Entropy>(
    State(manage): Managed<S, D, W, C, E>,
    At(path): At<TopicPath>,
) -> Result<Shown<TopicSettings>, Failure> {
    let record = manage.existing(&path.topic).await?;
    Ok(Shown::versioned(manage.shown(&record), topic_etag(&record)))
}

/// Create or replace a topic
///
/// Two publish keys are made with a new topic and stay when it is replaced. Subscriptions in the body are created or
/// replaced; the others stay. A signing secret that is made is shown in this answer and never again.
#[utoipa::path(put, path = "/topics/{topic}", tag = "topics", params(TopicPath,
        ("If-Match" = Option<String>, Header, description = "Write only if this is its version"),
        ("If-None-Match" = Option<String>, Header, description = "`*`: write only if it is not there")),
    request_body = TopicSettings,
    responses((status = 200, description = "Replaced", body = TopicSettings),
        (status = 201, description = "Created", body = TopicSettings), BadRequests, BadWrites, Unchanged, Problems))]
pub(crate) async fn put_topic<S: Store, D: Store, W: Webhooks, C: Clock, E: Entropy>(
    State(manage): Managed<S, D, W, C, E>,
    At(path): At<TopicPath>,
    conditions: Conditions,
    Written(written): Written<TopicSettings>,
) -> Result<Shown<TopicSettings>, Failure> {
    let (editor, until) = (manage.editor(), manage.work_ends());
    let edit = |present: Option<TopicRecord>| {
        conditions.check(present.as_ref().map(topic_etag).as_deref())?;
        let is_new = present.is_none();
        let (record, placed) = editor.put_topic(&path.topic, present, &written)?;
        Ok((record, (placed, is_new)))
    };
    let named = |(placed, _): &(Vec<Placed>, bool)| placed.iter().map(|placed| placed.name.clone()).collect();
    let (record, (placed, is_new)) = manage.change_naming(&path.topic, named, edit).await?;
    tracing::info!(topic = %record.name, is_new, "topic written");
    manage.settle_placed(&record, &placed, until).await;
    let begun = placed.iter().filter_map(|placed| placed.begun.clone()).collect();
    let record = manage.shake_hands_after_write(record, begun, until).await;
    let mut shown = manage.shown(&record);
    for placed in &placed {
        if let Some(shown) = shown.subscriptions.get_mut(&placed.name) {
            reveal_made_secret(&record, placed, shown);
        }
    }
    Ok(Shown::put(shown, topic_etag(&record), is_new))
}

/// Delete a topic
///
/// With its subscriptions. What still waits for them is dead-lettered; dead letters stay.
#[utoipa::path(delete, path = "/topics/{topic}", tag = "topics", params(TopicPath,
        ("If-Match" = Option<String>, Header, description = "Delete only if this is its version")),
    responses((status = 204, description = "Deleted"), BadRequests, UnknownTopic,
        FailedPrecondition, Problems))]
pub(crate) async fn delete_topic<S: Store, D: Store, W: Webhooks, C: Clock, E: Entropy>(
    State(manage): Managed<S, D, W, C, E>,
    At(path): At<TopicPath>,
    conditions: Conditions,
) -> Result<StatusCode, Failure> {
    let until = manage.work_ends();
    let check = |record: Option<&TopicRecord>| conditions.check(record.map(topic_etag).as_deref());
    let Some(record) = manage.delete(&path.topic, check).await? else { return Ok(StatusCode::NO_CONTENT) };
    tracing::info!(topic = %record.name, "topic deleted");
    let mut holds = Holds::default();
    for (name, settings) in &record.settings.subscriptions {
        holds.forget(&record.name, name, links(&settings.endpoint));
    }
    manage.settle_after_write(&record.name, &holds, until).await;
    Ok(StatusCode::NO_CONTENT)
}

/// Shows the secret of a subscription that was made just now, this once.
pub(crate) fn reveal_made_secret(record: &TopicRecord, placed: &Placed, shown: &mut SubscriptionSettings) {
    if let (true, Some(stored)) = (placed.has_made_secret, record.settings.subscriptions.get(&placed.name)) {
        shown.signing = stored.signing.clone();
    }
}

/// The URL to post a topic's events to. `base` may have a path, with or without a final slash.
fn publish_endpoint(base: &Url, topic: &TopicName) -> String {
    let mut url = base.clone();
    // An http(s) URL can always be a base, so there is always a path to extend.
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.pop_if_empty().extend(["topics", topic.as_str(), "events"]);
    }
    url.into()
}

impl<S: Store, D: Store, W: Webhooks, C: Clock, E: Entropy> Manage<S, D, W, C, E> {
    /// What an edit at this moment needs.
    pub(crate) fn editor(&self) -> Editor<'_, E> {
        Editor {
            entropy: &self.entropy,
            now: self.clock.now(),
            policy: &self.address_policy,
            own_publish_urls: &self.own_publish_urls,
        }
    }

    /// A topic as it is shown, with where to publish if that is elsewhere.
    fn shown(&self, record: &TopicRecord) -> TopicSettings {
        let endpoint = self.publish_url.as_ref().map(|base| publish_endpoint(base, &record.name));
        TopicSettings { endpoint, ..record.settings.shown(&record.name, self.clock.now()) }
    }

    /// A topic of a list. One that was deleted meanwhile is passed over, and one whose record cannot be read too:
    /// that is logged, and must not hide the others.
    async fn summary(&self, key: &str) -> Result<Option<TopicSummary>, Problem> {
        let object = listed(self.state.get(key).await)?;
        let read = object.and_then(|object| self.read(key, object).ok().flatten());
        let Some((record, _)) = read else { return Ok(None) };
        Ok(Some(TopicSummary {
            name: record.name,
            input_schema: record.settings.input_schema,
            default_time_to_live: record.settings.default_time_to_live,
            subscription_count: record.settings.subscriptions.len(),
            created_at: IsoTimestamp(record.created_at),
            updated_at: IsoTimestamp(record.updated_at),
        }))
    }
}
