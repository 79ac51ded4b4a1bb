//! The names and endpoints of subscriptions, as this process read them last. A search of every
//! topic reads only the records that have changed since.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use posthaste_core::model::{EndpointUrl, SubscriptionName, Timestamp, TopicName};
use posthaste_core::stored::TopicRecord;
use posthaste_ports::{ETag, EvictedAmount, ObjectMeta};

/// Most bytes that the index takes: some 80,000 subscriptions. Topics beyond that are read with
/// each search.
const INDEX_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Bytes of a topic and of a subscription beside their texts, roughly.
const TOPIC_BYTES: usize = 250;
const SUBSCRIPTION_BYTES: usize = 120;

/// The time after a write from which its record is known by the time and size that a list shows. S3
/// has whole seconds, and two clocks may differ by some.
const SETTLED_AFTER: Duration = Duration::from_secs(10);

/// The names and endpoints of subscriptions in this process.
#[derive(Debug)]
pub(crate) struct SubscriptionIndex {
    topics: Mutex<IndexedTopics>,
    bytes_max: usize,
}

#[derive(Debug, Default)]
struct IndexedTopics {
    by_key: BTreeMap<String, IndexedTopic>,
    bytes: usize,
}

/// A topic of the index.
#[derive(Debug, Clone)]
pub(crate) struct IndexedTopic {
    modified_at: Timestamp,
    size: u64,
    read_at: Timestamp,
    /// The version of the record; `None` where there was none, as that of a deleted topic.
    pub(crate) etag: Option<ETag>,
    pub(crate) subscriptions: Arc<TopicSubscriptions>,
}

/// The subscriptions of a topic.
#[derive(Debug, Default)]
pub(crate) struct TopicSubscriptions {
    /// In the order of their names in lower case.
    pub(crate) all: Vec<IndexedSubscription>,
    /// Whether there is no such topic any more.
    pub(crate) is_gone: bool,
}

/// A subscription of the index. URLs have no query, which may hold a token.
#[derive(Debug, Clone)]
pub(crate) struct IndexedSubscription {
    pub(crate) topic: TopicName,
    pub(crate) name: SubscriptionName,
    pub(crate) url: Option<String>,
    pub(crate) fallback_url: Option<String>,
    /// The time at which it is deleted by itself.
    pub(crate) ends_at: Option<Timestamp>,
}

impl Default for SubscriptionIndex {
    fn default() -> Self {
        Self::with_bytes_max(INDEX_BYTES_MAX)
    }
}

impl SubscriptionIndex {
    /// An index of at most so many bytes.
    pub(crate) fn with_bytes_max(bytes_max: usize) -> Self {
        Self {
            topics: Mutex::default(),
            bytes_max,
        }
    }

    /// The topic of a record, as it was read last.
    pub(crate) fn get(&self, key: &str) -> Option<IndexedTopic> {
        self.topics.lock().by_key.get(key).cloned()
    }

    /// Keeps a topic, if there is room for it.
    pub(crate) fn put(&self, key: &str, topic: IndexedTopic) {
        let mut topics = self.topics.lock();
        topics.remove(key);
        let bytes = topic.bytes(key);
        if topics.bytes + bytes <= self.bytes_max {
            topics.bytes += bytes;
            topics.by_key.insert(key.to_owned(), topic);
        }
    }

    /// Forgets a topic that cannot be read.
    pub(crate) fn forget(&self, key: &str) {
        self.topics.lock().remove(key);
    }

    /// Forgets the topics after this key that a page of the list lacks. The last page ends the
    /// list.
    pub(crate) fn forget_missing(&self, after: Option<&str>, page: &[ObjectMeta], is_last: bool) {
        let begin = after.map_or(Bound::Unbounded, Bound::Excluded);
        let end = page.last().map(|last| last.key.as_str());
        let end = match end.filter(|_| !is_last) {
            Some(last) => Bound::Included(last),
            None => Bound::Unbounded,
        };
        let mut topics = self.topics.lock();
        let missing: Vec<String> = topics
            .by_key
            .range::<str, _>((begin, end))
            .map(|(key, _)| key)
            .filter(|key| page.binary_search_by(|listed| listed.key.cmp(key)).is_err())
            .cloned()
            .collect();
        for key in missing {
            topics.remove(&key);
        }
    }

    /// Forgets all topics.
    pub(crate) fn clear(&self) -> EvictedAmount {
        let topics = std::mem::take(&mut *self.topics.lock());
        EvictedAmount {
            entries: topics.by_key.len(),
            bytes: topics.bytes,
        }
    }

    #[cfg(test)]
    pub(crate) fn keys(&self) -> Vec<String> {
        self.topics.lock().by_key.keys().cloned().collect()
    }
}

impl IndexedTopics {
    fn remove(&mut self, key: &str) {
        if let Some(former) = self.by_key.remove(key) {
            self.bytes -= former.bytes(key);
        }
    }
}

impl IndexedTopic {
    /// The topic as it was read at this time, after a list showed its object.
    pub(crate) fn new(
        listed: &ObjectMeta,
        read_at: Timestamp,
        etag: Option<ETag>,
        subscriptions: Arc<TopicSubscriptions>,
    ) -> Self {
        Self {
            modified_at: listed.modified_at,
            size: listed.size,
            read_at,
            etag,
            subscriptions,
        }
    }

    /// Whether the record is still the one that was read, as far as a list can tell.
    pub(crate) fn is_current(&self, listed: &ObjectMeta) -> bool {
        let is_settled = self.read_at > listed.modified_at + SETTLED_AFTER;
        is_settled && self.modified_at == listed.modified_at && self.size == listed.size
    }

    fn bytes(&self, key: &str) -> usize {
        let subscriptions = &self.subscriptions.all;
        let texts: usize = subscriptions
            .iter()
            .map(IndexedSubscription::text_bytes)
            .sum();
        TOPIC_BYTES + 2 * key.len() + subscriptions.len() * SUBSCRIPTION_BYTES + texts
    }
}

impl TopicSubscriptions {
    /// Those of a topic that was deleted.
    pub(crate) fn of_gone_topic() -> Self {
        Self {
            all: Vec::new(),
            is_gone: true,
        }
    }

    /// The subscriptions of a record.
    pub(crate) fn from_record(record: &TopicRecord) -> Self {
        let subscriptions = record.settings.subscriptions.iter();
        let mut subscriptions: Vec<_> = subscriptions
            .map(|(name, settings)| IndexedSubscription {
                topic: record.name.clone(),
                name: name.clone(),
                url: url_without_query(&settings.endpoint.url),
                fallback_url: settings
                    .endpoint
                    .fallback_url
                    .as_deref()
                    .and_then(url_without_query),
                ends_at: settings.expiration_time_utc.map(|at| at.0),
            })
            .collect();
        subscriptions.sort_by_cached_key(|it| it.name.folded());
        Self {
            all: subscriptions,
            is_gone: false,
        }
    }
}

impl IndexedSubscription {
    fn text_bytes(&self) -> usize {
        let urls = [&self.url, &self.fallback_url].into_iter().flatten();
        self.name.as_str().len() + urls.map(String::len).sum::<usize>()
    }
}

/// The URL as its endpoint has it, without the query. `None` for a text that is no such URL: it may
/// have credentials.
fn url_without_query(written: &str) -> Option<String> {
    let url = EndpointUrl::parse(written).ok()?;
    Some(url.without_query().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(key: &str, modified_s: u64) -> ObjectMeta {
        ObjectMeta {
            key: key.to_owned(),
            size: 1,
            modified_at: Timestamp::from_millis(modified_s * 1_000),
        }
    }

    fn read_at(listed: &ObjectMeta, read_s: u64) -> IndexedTopic {
        let at = Timestamp::from_millis(read_s * 1_000);
        IndexedTopic::new(listed, at, None, Arc::default())
    }

    #[test]
    fn record_is_known_by_its_list_once_it_has_settled() {
        let known = listed("topics/a.json", 100);
        assert!(!read_at(&known, 100).is_current(&known));
        assert!(!read_at(&known, 110).is_current(&known));
        let read = read_at(&known, 111);
        assert!(read.is_current(&known));
        assert!(!read.is_current(&listed("topics/a.json", 101)));
        let longer = ObjectMeta { size: 2, ..known };
        assert!(!read.is_current(&longer));
    }

    #[test]
    fn topics_that_a_page_lacks_are_forgotten() {
        let index = SubscriptionIndex::default();
        let objects: Vec<_> = ["a", "b", "c", "d", "e"].map(|it| listed(it, 0)).into();
        for object in &objects {
            index.put(&object.key, read_at(object, 0));
        }
        index.forget_missing(Some("a"), &objects[2..3], false);
        assert_eq!(index.keys(), ["a", "c", "d", "e"]);
        index.forget_missing(Some("c"), &objects[3..4], true);
        assert_eq!(index.keys(), ["a", "c", "d"]);
        index.forget_missing(None, &[], true);
        assert_eq!(index.keys(), [""; 0]);
        assert_eq!(index.topics.lock().bytes, 0);
    }

    #[test]
    fn full_index_keeps_what_it_has() {
        let [first, second] = ["a", "b"].map(|key| listed(key, 0));
        let index = SubscriptionIndex::with_bytes_max(read_at(&first, 0).bytes("a"));
        for object in [&first, &second, &first] {
            index.put(&object.key, read_at(object, 0));
        }
        assert_eq!(index.keys(), ["a"]);
        index.forget("a");
        index.put("b", read_at(&second, 0));
        assert_eq!(index.keys(), ["b"]);
    }
}
