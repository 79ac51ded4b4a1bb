//! Topics as users see them, one and in lists.

use std::pin::pin;
use std::sync::Arc;

use axum::extract::FromRef;
use futures_util::{StreamExt, stream};
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::api::{IsoTimestamp, TopicPage, TopicSettings, TopicSummary, UnreadableTopic};
use posthaste_core::stored::{TopicRecord, layout};
use posthaste_ports::{Clock, ErrorKind, ObjectStore, Ports};
use serde::Deserialize;

use crate::answer::{ApiError, ApiResult, JsonResponse, record_problem};
use crate::conditions::topic_etag;
use crate::extract::TopicPath;
use crate::manage::{Manage, ManageSettings, url_below};
use crate::paging::{PageRequest, after_in, encode_cursor, folded_prefix};
use crate::shared_port::SharedPort;
use crate::topic_records::TopicRecords;

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
    pub(crate) prefix: String,
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

/// The part of a topic that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TopicDetail {
    /// A line of a list.
    Summary,
    /// The settings, with masked secrets.
    Settings,
    /// The settings with the secrets and publish keys.
    Secrets,
}

impl TopicQuery {
    /// The detail that the query asks for.
    pub(crate) fn requested_detail(&self) -> Result<TopicDetail, ApiProblem> {
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

/// The views of topics.
pub(crate) struct TopicViews<P: Ports> {
    state: SharedPort<P, P::Store>,
    clock: P::Clock,
    settings: SharedPort<P, ManageSettings>,
    records: TopicRecords<P>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for TopicViews<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            state: SharedPort::new(manage, |it| &it.state),
            clock: manage.clock.clone(),
            settings: SharedPort::new(manage, |it| &it.settings),
            records: TopicRecords::from_ref(manage),
        }
    }
}

impl<P: Ports> TopicViews<P> {
    /// A page of topics, each in this detail.
    pub(crate) async fn topic_page(
        &self,
        query: &TopicQuery,
        shown: TopicDetail,
    ) -> ApiResult<TopicPage> {
        let PageRequest { items, after } =
            PageRequest::parse(query.limit, query.cursor.as_deref())?;
        let prefix = format!("{}{}", layout::TOPICS, folded_prefix(&query.prefix)?);
        let after = after_in(layout::TOPICS, after)?;
        let page = self.state.list(&prefix, after.as_deref(), items).await?;
        let mut topics = Vec::with_capacity(page.objects.len());
        let reads = page.objects.into_iter().map(|object| async move {
            let summary = self.read_summary(&object.key, shown).await;
            (summary, object.key)
        });
        let mut reads = pin!(stream::iter(reads).buffered(TOPICS_AT_ONCE));
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
    pub(crate) async fn topic_response(
        &self,
        path: &TopicPath,
        shown: TopicDetail,
    ) -> ApiResult<TopicSettings> {
        let record = self.records.existing_record(&path.topic).await?;
        let view = if shown == TopicDetail::Secrets {
            self.revealed_topic(&record)
        } else {
            self.shown_topic(&record)
        };
        Ok(JsonResponse::with_etag(view, topic_etag(&record)))
    }

    /// A topic with its secrets and publish keys, as [`Self::shown_topic`] shows the rest.
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
    pub(crate) fn shown_topic(&self, record: &TopicRecord) -> TopicSettings {
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
        Ok(match self.records.stored_topic(key, object) {
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

fn unreadable_topic(key: &str, problem: ApiProblem) -> UnreadableTopic {
    let detail = problem.detail.unwrap_or_default();
    UnreadableTopic {
        name: layout::topic_name(key).to_owned(),
        detail,
    }
}
