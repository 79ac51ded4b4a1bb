//! The search for subscriptions in the records of all topics, within its time.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRef;
use futures_util::{StreamExt, stream};
use posthaste_core::api::problem::ApiProblem;
use posthaste_core::api::{FoundSubscriptions, UnreadableTopic};
use posthaste_core::stored::layout;
use posthaste_ports::{
    Clock, ETag, ErrorKind, ListPage, ObjectMeta, ObjectStore, PortError, Ports, RevalidatedObject,
    StoredObject,
};
use posthaste_services::timeout_at;

use super::search::{SEARCH_TIME_MAX, SearchEnd, SearchFindings, SearchPlace, SubscriptionSearch};
use crate::answer::{ApiError, record_problem};
use crate::manage::Manage;
use crate::shared_port::SharedPort;
use crate::subscription_index::{IndexedTopic, SubscriptionIndex, TopicSubscriptions};
use crate::topic_records::TopicRecords;

/// Topics on one page of the list.
const PAGE_TOPICS: usize = 1_000;

/// Topics that are read side by side. On S3 a read takes some 20 ms, and the first search of a
/// process reads every topic.
const TOPICS_AT_ONCE: usize = 32;

/// The search for subscriptions.
pub(crate) struct SubscriptionFinder<P: Ports> {
    state: SharedPort<P, P::Store>,
    clock: P::Clock,
    records: TopicRecords<P>,
    index: SharedPort<P, SubscriptionIndex>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for SubscriptionFinder<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            state: SharedPort::new(manage, |it| &it.state),
            clock: manage.clock.clone(),
            records: TopicRecords::from_ref(manage),
            index: SharedPort::new(manage, |it| &it.caches.subscription_index),
        }
    }
}

impl<P: Ports> SubscriptionFinder<P> {
    /// One page of the subscriptions that are looked for.
    pub(super) async fn find_subscriptions(
        &self,
        search: &SubscriptionSearch,
    ) -> Result<FoundSubscriptions, ApiError> {
        let until = self.clock.monotonic() + SEARCH_TIME_MAX;
        let mut found = SearchFindings::default();
        let mut after = search.after.as_ref().map(SearchPlace::list_start);
        loop {
            let list = self.list_topics(after.as_deref());
            // The first page is waited for: without it, there is no place to go on.
            let page = if found.place.is_none() {
                list.await?
            } else if let Some(page) = timeout_at(&self.clock, until, list).await {
                let Ok(page) = page else {
                    found.end = SearchEnd::StoreFailed;
                    break;
                };
                page
            } else {
                found.end = SearchEnd::TimeIsUp;
                break;
            };
            found.end = self
                .search_page(search, &mut found, page.objects, until)
                .await?;
            after = page.next_after;
            if found.end != SearchEnd::Whole || after.is_none() {
                break;
            }
        }
        Ok(found.into_view())
    }

    /// A page of topics. Those that are gone are forgotten.
    async fn list_topics(&self, after: Option<&str>) -> Result<ListPage, ApiError> {
        let page = self.state.list(layout::TOPICS, after, PAGE_TOPICS).await?;
        let is_last = page.next_after.is_none();
        self.index.forget_missing(after, &page.objects, is_last);
        Ok(page)
    }

    /// Searches the topics of a page until the time is up or the answer is full, or one of them cannot
    /// be loaded now.
    async fn search_page(
        &self,
        search: &SubscriptionSearch,
        found: &mut SearchFindings,
        topics: Vec<ObjectMeta>,
        until: Duration,
    ) -> Result<SearchEnd, ApiError> {
        let now = self.clock.now();
        let reads = topics.into_iter().map(|listed| async move {
            let read = self.read_topic(&listed).await;
            (listed.key, read)
        });
        let mut reads = pin!(stream::iter(reads).buffered(TOPICS_AT_ONCE));
        loop {
            // One topic at least is searched, so that each request comes further.
            let read = if found.place.is_none() {
                reads.next().await
            } else if self.clock.monotonic() >= until {
                return Ok(SearchEnd::TimeIsUp);
            } else if let Some(read) = timeout_at(&self.clock, until, reads.next()).await {
                read
            } else {
                return Ok(SearchEnd::TimeIsUp);
            };
            let Some((key, read)) = read else {
                return Ok(SearchEnd::Whole);
            };
            let read = match read {
                // The next request begins with this topic.
                Err(_) if found.place.is_some() => return Ok(SearchEnd::StoreFailed),
                read => read?,
            };
            match read {
                Ok(subscriptions) => {
                    let is_full = found.add_topic(search, &key, &subscriptions, now);
                    if is_full {
                        return Ok(SearchEnd::PageIsFull);
                    }
                }
                Err(topic) => found.add_unreadable(&key, topic),
            }
        }
    }

    /// The subscriptions of a topic: those of the index, unless the record has changed. A record
    /// that cannot be read is named, because it must not hide the others.
    async fn read_topic(
        &self,
        listed: &ObjectMeta,
    ) -> Result<Result<Arc<TopicSubscriptions>, UnreadableTopic>, ApiError> {
        let known = self.index.get(&listed.key);
        if let Some(known) = known.as_ref().filter(|it| it.is_current(listed)) {
            return Ok(Ok(Arc::clone(&known.subscriptions)));
        }
        let read_at = self.clock.now();
        let etag = known.as_ref().and_then(|it| it.etag.as_ref());
        let object = match self.read_object(&listed.key, etag).await {
            Err(error) if error.kind == ErrorKind::Damaged => {
                self.index.forget(&listed.key);
                return Ok(Err(unreadable_topic(&listed.key, record_problem(&error))));
            }
            read => read?,
        };
        let (etag, subscriptions) = match (object, known) {
            (RevalidatedObject::Unchanged, Some(known)) => (known.etag, known.subscriptions),
            (RevalidatedObject::Changed(object), _) => {
                let etag = object.etag.clone();
                match self.parse_topic(&listed.key, object) {
                    Ok(subscriptions) => (Some(etag), Arc::new(subscriptions)),
                    Err(problem) => {
                        self.index.forget(&listed.key);
                        return Ok(Err(unreadable_topic(&listed.key, problem)));
                    }
                }
            }
            (RevalidatedObject::Missing | RevalidatedObject::Unchanged, _) => {
                (None, Arc::new(TopicSubscriptions::of_gone_topic()))
            }
        };
        let topic = IndexedTopic::new(listed, read_at, etag, Arc::clone(&subscriptions));
        self.index.put(&listed.key, topic);
        Ok(Ok(subscriptions))
    }

    async fn read_object(
        &self,
        key: &str,
        known: Option<&ETag>,
    ) -> Result<RevalidatedObject, PortError> {
        match known {
            Some(etag) => self.state.get_if_changed(key, etag).await,
            None => Ok(match self.state.get(key).await? {
                Some(object) => RevalidatedObject::Changed(object),
                None => RevalidatedObject::Missing,
            }),
        }
    }

    fn parse_topic(
        &self,
        key: &str,
        object: StoredObject,
    ) -> Result<TopicSubscriptions, ApiProblem> {
        let topic = self.records.stored_topic(key, Some(object))?.into_record();
        let subscriptions = topic.map(|(record, _)| TopicSubscriptions::from_record(&record));
        Ok(subscriptions.unwrap_or_else(TopicSubscriptions::of_gone_topic))
    }
}

fn unreadable_topic(key: &str, problem: ApiProblem) -> UnreadableTopic {
    UnreadableTopic {
        name: layout::topic_name(key).to_owned(),
        detail: problem.detail.unwrap_or_default(),
    }
}
