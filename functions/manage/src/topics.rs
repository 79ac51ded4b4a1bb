//! Topics. Their publish keys are in [`crate::keys`].

use std::pin::pin;

use axum::extract::State;
use axum::http::StatusCode;
use futures_util::{StreamExt, stream};
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::api::{
    AuditAction, AuditEntry, IsoTimestamp, SettingsError, TopicPage, TopicSettings, TopicSummary,
    UnreadableTopic,
};
use posthaste_core::stored::{TopicRecord, layout};
use posthaste_ports::{Clock, ErrorKind, ObjectStore, Ports};
use serde::Deserialize;

use crate::answer::{ApiError, ApiResult, JsonResponse, record_problem};
use crate::audit::RequestCaller;
use crate::conditions::{WriteConditions, topic_etag};
use crate::document::{
    BadRequests, BadWrites, FailedPrecondition, Problems, Unchanged, UnknownTopic,
};
use crate::extract::{JsonBody, Path, Query, TopicPath};
use crate::health_changes::HealthChanges;
use crate::manage::{Manage, ManageState, url_below};
use crate::paging::{PageRequest, after_in, encode_cursor, folded_prefix};

/// Topics of a list that are read side by side.
const TOPICS_AT_ONCE: usize = 16;

/// Most bytes of settings on a page: Lambda answers with 6 MB at most, in which quotes take two. A
/// topic that is larger by itself is listed without them.
const PAGE_BYTES: usize = 3 * 1024 * 1024;

/// The query of topics.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct TopicQuery {
    /// Only topics whose names begin like this, in any case.
    #[serde(default)]
    prefix: String,
    /// Most items on the page. 100 when left out.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Where the page begins, as the page before gave it.
    cursor: Option<String>,
    /// Whether each topic is shown whole, as `GET` of it shows it. A page of large topics is then
    /// shorter than asked for.
    #[serde(default)]
    settings: bool,
    /// Whether each topic is also shown with its secrets and publish keys, in clear. It needs
    /// `settings`.
    #[serde(default)]
    secrets: bool,
}

/// The query of one topic.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct SecretsQuery {
    /// Whether secrets are shown in clear, and the publish keys too. Without, secrets are masked.
    #[serde(default)]
    secrets: bool,
}

/// How much of a topic is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TopicDetail {
    /// A line of a list.
    Summary,
    /// Its settings, with masked secrets.
    Settings,
    /// Its settings with its secrets and publish keys.
    Secrets,
}

impl TopicQuery {
    fn requested_detail(&self) -> Result<TopicDetail, ApiProblem> {
        match (self.settings, self.secrets) {
            (false, false) => Ok(TopicDetail::Summary),
            (true, false) => Ok(TopicDetail::Settings),
            (true, true) => Ok(TopicDetail::Secrets),
            (false, true) => Err(ApiProblem::new(ProblemKind::BadRequest)
                .member("secrets")
                .detail("shown with the settings alone: ask with settings=true as well")),
        }
    }
}

/// List topics
///
/// In a stable order, without their subscriptions unless `settings` asks for them. A topic whose record cannot be read is in
/// `unreadable_topic`. A page with `secrets` has an entry in the audit trail.
#[utoipa::path(get, path = "/topics", tag = "topics", params(TopicQuery),
    responses((status = 200, description = "One page of topics", body = TopicPage), BadRequests, Problems))]
pub(crate) async fn list_topics<P: Ports>(
    State(manage): ManageState<P>,
    RequestCaller(caller): RequestCaller,
    Query(query): Query<TopicQuery>,
) -> ApiResult<TopicPage> {
    let shown = query.requested_detail()?;
    if shown != TopicDetail::Secrets {
        return manage.topic_page(&query, shown).await;
    }
    let names = format!("names that begin with {:?}", query.prefix);
    let entry = manage.new_audit_entry(caller, AuditAction::ReadSecrets);
    let entry = entry.of_target(if query.prefix.is_empty() {
        "all topics"
    } else {
        &names
    });
    let note =
        |entry: AuditEntry, answer: &JsonResponse<TopicPage>| match answer.body().name_range() {
            Some((first, last)) => entry.with_detail(&format!("from {first} to {last}")),
            None => entry.with_detail("no topics"),
        };
    manage
        .run_audited(entry, manage.topic_page(&query, shown), note)
        .await
}

/// Show a topic
///
/// With its subscriptions. Secrets are masked, unless `secrets` asks for them; then the audit trail
/// has an entry. The answer can be put back as it is.
#[utoipa::path(get, path = "/topics/{topic}", tag = "topics", params(TopicPath, SecretsQuery),
    responses((status = 200, description = "The topic", body = TopicSettings,
        headers(("ETag" = String, description = "The version, for If-Match"))),
        BadRequests, UnknownTopic, Problems))]
pub(crate) async fn get_topic<P: Ports>(
    State(manage): ManageState<P>,
    RequestCaller(caller): RequestCaller,
    Path(path): Path<TopicPath>,
    Query(query): Query<SecretsQuery>,
) -> ApiResult<TopicSettings> {
    if !query.secrets {
        return manage.topic_response(&path, TopicDetail::Settings).await;
    }
    let entry = manage.new_audit_entry(caller, AuditAction::ReadSecrets);
    let entry = entry.of_topic(&path.topic);
    let shown = manage.topic_response(&path, TopicDetail::Secrets);
    manage.run_audited(entry, shown, |entry, _| entry).await
}
/// Create or replace a topic
///
/// Two publish keys are made with a new topic and stay when it is replaced, unless the body has
/// `keys`. Subscriptions in the body are created or replaced; the others stay. A signing secret that
/// is made is shown in this answer, and later only where secrets are asked for.
#[utoipa::path(put, path = "/topics/{topic}", tag = "topics", params(TopicPath,
        ("If-Match" = Option<String>, Header, description = "Write only if this is its version"),
        ("If-None-Match" = Option<String>, Header, description = "`*`: write only if it is not there")),
    request_body = TopicSettings,
    responses((status = 200, description = "Replaced", body = TopicSettings),
        (status = 201, description = "Created", body = TopicSettings),
        BadRequests, BadWrites, Unchanged, Problems))]
pub(crate) async fn put_topic<P: Ports>(
    State(manage): ManageState<P>,
    RequestCaller(caller): RequestCaller,
    Path(path): Path<TopicPath>,
    conditions: WriteConditions,
    JsonBody(written): JsonBody<TopicSettings>,
) -> ApiResult<TopicSettings> {
    let editor = manage.editor();
    let until = manage.work_ends();
    let edit = |present: Option<TopicRecord>| {
        conditions.check(present.as_ref().map(topic_etag).as_deref())?;
        let is_new = present.is_none();
        let new = || {
            TopicRecord::new(
                path.topic.clone(),
                [editor.new_publish_key(), editor.new_publish_key()],
                editor.now,
            )
        };
        let mut record = present.unwrap_or_else(new);
        let changes = editor.put_topic(&path.topic, &mut record.settings, &written)?;
        if let Some(keys) = &written.keys {
            record.put_keys(keys).map_err(|error| bad_keys(&error))?;
        }
        Ok((record, (changes, is_new)))
    };
    let named: Vec<_> = written.subscriptions.keys().collect();
    let entry = manage.new_audit_entry(caller, AuditAction::PutTopic);
    let (record, (changes, is_new)) = manage
        .change_record(entry, &path.topic, &named, edit)
        .await?;
    tracing::info!(topic = %record.name, is_new, "topic written");
    let record = manage.follow_up_write(record, &changes, until).await;
    let mut shown = manage.shown_topic(&record);
    for change in &changes {
        if let Some(stored) = record.settings.subscriptions.get(&change.name) {
            shown.subscriptions.insert(
                change.name.clone(),
                change.response_view(stored, manage.clock.now()),
            );
        }
    }
    Ok(JsonResponse::for_put(shown, topic_etag(&record), is_new))
}

/// Delete a topic
///
/// With its subscriptions. Events that still wait for them are dead-lettered; dead letters stay.
#[utoipa::path(delete, path = "/topics/{topic}", tag = "topics", params(TopicPath,
        ("If-Match" = Option<String>, Header, description = "Delete only if this is its version")),
    responses((status = 204, description = "Deleted"), BadRequests, UnknownTopic,
        FailedPrecondition, Problems))]
pub(crate) async fn delete_topic<P: Ports>(
    State(manage): ManageState<P>,
    RequestCaller(caller): RequestCaller,
    Path(path): Path<TopicPath>,
    conditions: WriteConditions,
) -> Result<StatusCode, ApiError> {
    let until = manage.work_ends();
    let check = |record: Option<&TopicRecord>| conditions.check(record.map(topic_etag).as_deref());
    let entry = manage.new_audit_entry(caller, AuditAction::DeleteTopic);
    let Some(record) = manage.delete_record(entry, &path.topic, check).await? else {
        return Ok(StatusCode::NO_CONTENT);
    };
    tracing::info!(topic = %record.name, "topic deleted");
    let mut health = HealthChanges::default();
    for (name, settings) in &record.settings.subscriptions {
        health.forget_subscription(&record.name, name, settings.endpoint.links());
    }
    manage.apply_after_write(&record.name, &health, until).await;
    Ok(StatusCode::NO_CONTENT)
}

impl<P: Ports> Manage<P> {
    /// A page of topics, shown so far.
    async fn topic_page(&self, query: &TopicQuery, shown: TopicDetail) -> ApiResult<TopicPage> {
        let PageRequest { items, after } =
            PageRequest::parse(query.limit, query.cursor.as_deref())?;
        let prefix = format!("{}{}", layout::TOPICS, folded_prefix(&query.prefix)?);
        let after = after_in(layout::TOPICS, after)?;
        let page = self.state.list(&prefix, after.as_deref(), items).await?;
        let keys: Vec<_> = page.objects.into_iter().map(|it| it.key).collect();
        let read = |key: &String| {
            let key = key.clone();
            async move { (self.read_summary(&key, shown).await, key) }
        };
        let mut reads = pin!(stream::iter(&keys).map(read).buffered(TOPICS_AT_ONCE));
        let mut topics = Vec::with_capacity(keys.len());
        let mut unreadable = Vec::new();
        let mut bytes = 0;
        let mut next_after = page.next_after;
        let mut before = None;
        while let Some((read, key)) = reads.next().await {
            match read? {
                Ok(Some(mut summary)) => {
                    let length = summary.settings.as_ref().map_or(0, json_length);
                    if length > PAGE_BYTES {
                        summary.settings = None;
                    } else if bytes + length > PAGE_BYTES {
                        next_after = before;
                        break;
                    } else {
                        bytes += length;
                    }
                    topics.push(summary);
                }
                Ok(None) => {}
                Err(topic) => unreadable.push(topic),
            }
            before = Some(key);
        }
        let cursor = next_after.as_deref().map(encode_cursor);
        Ok(JsonResponse::new(TopicPage {
            topics,
            unreadable,
            cursor,
        }))
    }

    /// A topic, shown so far.
    async fn topic_response(
        &self,
        path: &TopicPath,
        shown: TopicDetail,
    ) -> ApiResult<TopicSettings> {
        let record = self.existing_record(&path.topic).await?;
        let view = if shown == TopicDetail::Secrets {
            self.revealed_topic(&record)
        } else {
            self.shown_topic(&record)
        };
        Ok(JsonResponse::with_etag(view, topic_etag(&record)))
    }

    /// A topic with its secrets and publish keys, as [`Self::shown`] shows the rest.
    fn revealed_topic(&self, record: &TopicRecord) -> TopicSettings {
        let keys = record.shown_keys();
        let revealed = record
            .settings
            .to_view_with_secrets(&record.name, keys, self.clock.now());
        TopicSettings {
            endpoint: self.publish_url(record),
            ..revealed
        }
    }

    /// A topic as users see it, with its publish URL if another function has that.
    fn shown_topic(&self, record: &TopicRecord) -> TopicSettings {
        TopicSettings {
            endpoint: self.publish_url(record),
            ..record.settings.to_view(&record.name, self.clock.now())
        }
    }

    /// The URL to publish to, if another function has it.
    fn publish_url(&self, record: &TopicRecord) -> Option<String> {
        let path = ["topics", record.name.as_str(), "events"];
        let base = self.settings.publish_url.as_ref();
        base.map(|base| url_below(base, &path))
    }

    /// A topic of a list. `None` for one that was deleted in the meantime. A record that cannot be
    /// read is named, because it must not hide the others.
    async fn read_summary(
        &self,
        key: &str,
        shown: TopicDetail,
    ) -> Result<Result<Option<TopicSummary>, UnreadableTopic>, ApiError> {
        let object = match self.state.get(key).await {
            Err(error) if error.kind == ErrorKind::Damaged => {
                return Ok(Err(unreadable_topic(key, record_problem(&error))));
            }
            read => read?,
        };
        Ok(match self.stored_topic(key, object) {
            Ok(place) => Ok(place.into_record().map(|(record, _)| {
                let settings = match shown {
                    TopicDetail::Summary => None,
                    TopicDetail::Settings => Some(self.shown_topic(&record)),
                    TopicDetail::Secrets => Some(self.revealed_topic(&record)),
                };
                topic_summary(record, settings)
            })),
            Err(problem) => Err(unreadable_topic(key, problem)),
        })
    }
}

fn topic_summary(record: TopicRecord, settings: Option<TopicSettings>) -> TopicSummary {
    TopicSummary {
        etag: Some(topic_etag(&record)),
        settings,
        name: record.name,
        input_schema: record.settings.input_schema,
        default_time_to_live: record.settings.default_time_to_live,
        subscription_count: record.settings.subscriptions.len(),
        created_at: IsoTimestamp(record.created_at),
        updated_at: IsoTimestamp(record.updated_at),
    }
}

/// Bytes of a topic as it is sent.
fn json_length(settings: &TopicSettings) -> usize {
    serde_json::to_vec(settings).map_or(0, |text| text.len())
}

fn bad_keys(error: &SettingsError) -> ApiProblem {
    ApiProblem::new(ProblemKind::BadSettings)
        .member(error.member.as_str())
        .detail(error.problem.to_string())
}

fn unreadable_topic(key: &str, problem: ApiProblem) -> UnreadableTopic {
    let detail = problem.detail.unwrap_or_default();
    UnreadableTopic {
        name: layout::topic_name(key).to_owned(),
        detail,
    }
}
