//! A search for subscriptions: what it looks for, where it begins, and what it has found.

use std::time::Duration;

use posthaste_core::api::problem::ApiProblem;
use posthaste_core::api::{FoundSubscription, FoundSubscriptions, UnreadableTopic, UrlSearch};
use posthaste_core::model::Timestamp;
use posthaste_core::stored::layout;

use crate::paging::{after_in, encode_cursor};
use crate::subscription_index::{IndexedSubscription, TopicSubscriptions};

/// The time after which a search answers what it has found: an operator waits for the page.
pub(super) const SEARCH_TIME_MAX: Duration = Duration::from_secs(2);

/// Most unreadable topics that an answer names.
const UNREADABLE_MAX: usize = 100;

/// The text of a search that has come to a topic which the store does not give now.
const STORE_FAILED: &str =
    "Not all was searched: a topic could not be read now. The next page goes on with it.";

/// The character between the key of a topic and the name of its last subscription that was
/// searched. No key of a topic has it.
const CURSOR_SEPARATOR: char = ' ';

/// The subscriptions that are looked for, and the place at which the search begins.
#[derive(Debug, Default)]
pub(super) struct SubscriptionSearch {
    /// The beginning of names, in lower case.
    pub(super) name: Option<String>,
    pub(super) url: Option<UrlSearch>,
    /// Most subscriptions on the page.
    pub(super) limit: usize,
    /// The last topic that was searched, the whole of it or up to a subscription.
    pub(super) after: Option<SearchPlace>,
}

/// A place in the order of topics and subscriptions.
#[derive(Debug, Clone)]
pub(super) struct SearchPlace {
    key: String,
    /// The last subscription of the topic that was searched, in lower case; `None` where all were.
    name: Option<String>,
}

/// The findings so far.
#[derive(Debug, Default)]
pub(super) struct SearchFindings {
    subscriptions: Vec<FoundSubscription>,
    topics_searched: usize,
    unreadable: Vec<UnreadableTopic>,
    unreadable_total: usize,
    pub(super) place: Option<SearchPlace>,
    pub(super) end: SearchEnd,
}

/// The reason for which a search has ended.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum SearchEnd {
    /// Every topic was searched.
    #[default]
    Whole,
    PageIsFull,
    TimeIsUp,
    /// The store did not give the next topic.
    StoreFailed,
}

impl SubscriptionSearch {
    /// The same behind the place of a cursor.
    pub(super) fn after(self, cursor: Option<String>) -> Result<Self, ApiProblem> {
        let Some(cursor) = cursor else {
            return Ok(self);
        };
        let (key, name) = match cursor.split_once(CURSOR_SEPARATOR) {
            Some((key, name)) => (key.to_owned(), Some(name.to_owned())),
            None => (cursor, None),
        };
        let key = after_in(layout::TOPICS, Some(key))?;
        Ok(Self {
            after: key.map(|key| SearchPlace { key, name }),
            ..self
        })
    }

    fn matches(&self, subscription: &IndexedSubscription, now: Timestamp) -> bool {
        let has_ended = subscription.ends_at.is_some_and(|at| now >= at);
        let has_name = self
            .name
            .as_ref()
            .is_none_or(|wanted| subscription.name.folded_text().starts_with(wanted.as_str()));
        !has_ended && has_name && self.matches_url(subscription)
    }

    fn matches_url(&self, subscription: &IndexedSubscription) -> bool {
        let Some(wanted) = &self.url else {
            return true;
        };
        let urls = [&subscription.url, &subscription.fallback_url];
        urls.into_iter().flatten().any(|url| wanted.matches(url))
    }

    /// Whether a subscription comes after the place where the search begins.
    fn is_ahead(&self, key: &str, subscription: &IndexedSubscription) -> bool {
        let Some(SearchPlace {
            key: begun,
            name: Some(last),
        }) = &self.after
        else {
            return true;
        };
        begun != key || *subscription.name.folded_text() > **last
    }
}

impl SearchPlace {
    /// The key after which the list of topics begins. A topic that was not searched to its end is
    /// listed again: no key of a topic lies between its own without the last character and itself.
    pub(super) fn list_start(&self) -> String {
        let mut start = self.key.clone();
        if self.name.is_some() {
            start.pop();
        }
        start
    }

    fn to_cursor(&self) -> String {
        match &self.name {
            Some(name) => encode_cursor(&format!("{}{CURSOR_SEPARATOR}{name}", self.key)),
            None => encode_cursor(&self.key),
        }
    }
}

impl SearchFindings {
    /// Adds what is looked for of a topic. Whether the page was full before the topic ended.
    pub(super) fn add_topic(
        &mut self,
        search: &SubscriptionSearch,
        key: &str,
        subscriptions: &TopicSubscriptions,
        now: Timestamp,
    ) -> bool {
        let wanted = subscriptions
            .all
            .iter()
            .filter(|it| search.is_ahead(key, it) && search.matches(it, now));
        for subscription in wanted {
            if self.subscriptions.len() == search.limit {
                return true;
            }
            self.subscriptions.push(FoundSubscription {
                topic: subscription.topic.clone(),
                name: subscription.name.clone(),
                url: subscription.url.clone(),
                fallback_url: subscription.fallback_url.clone(),
            });
            self.place = Some(SearchPlace {
                key: key.to_owned(),
                name: Some(subscription.name.folded()),
            });
        }
        self.topics_searched += usize::from(!subscriptions.is_gone);
        self.end_topic(key);
        false
    }

    pub(super) fn add_unreadable(&mut self, key: &str, topic: UnreadableTopic) {
        self.unreadable_total += 1;
        if self.unreadable.len() < UNREADABLE_MAX {
            self.unreadable.push(topic);
        }
        self.end_topic(key);
    }

    fn end_topic(&mut self, key: &str) {
        self.place = Some(SearchPlace {
            key: key.to_owned(),
            name: None,
        });
    }

    fn note(&self) -> Option<String> {
        let mut sentences = Vec::new();
        match self.end {
            SearchEnd::TimeIsUp => sentences.push(format!(
                "Not all was searched: the search ended after {} s. The next page goes on.",
                SEARCH_TIME_MAX.as_secs()
            )),
            SearchEnd::StoreFailed => sentences.push(STORE_FAILED.to_owned()),
            SearchEnd::Whole | SearchEnd::PageIsFull => {}
        }
        if self.unreadable_total > 0 {
            sentences.push(format!(
                "Topics whose records cannot be read, and which were not searched: {}.",
                self.unreadable_total
            ));
        }
        (!sentences.is_empty()).then(|| sentences.join(" "))
    }

    pub(super) fn into_view(self) -> FoundSubscriptions {
        let place = self.place.as_ref().filter(|_| self.end != SearchEnd::Whole);
        FoundSubscriptions {
            cursor: place.map(SearchPlace::to_cursor),
            note: self.note(),
            subscriptions: self.subscriptions,
            topics_searched: self.topics_searched,
            unreadable: self.unreadable,
        }
    }
}
