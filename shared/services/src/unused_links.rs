//! Links that no subscription uses any more: their state is of no use, and would be shown as if
//! something failed.

use std::collections::BTreeSet;
use std::error::Error;

use futures_util::{StreamExt, TryStreamExt, stream};
use posthaste_core::model::Link;
use posthaste_core::stored::{TopicRecord, layout};
use posthaste_ports::{ObjectStore, PortError};

use crate::topics::topic_names;

/// Topics that are read at once. S3 takes some 20 ms for a read, so that ten thousand are read in
/// seconds.
const READS_AT_ONCE: usize = 32;

/// The links among these that no subscription of any topic uses. Where a topic's record cannot be
/// read, none are: that topic may use any.
pub async fn unused_links(
    store: &impl ObjectStore,
    mut links: BTreeSet<Link>,
) -> Result<BTreeSet<Link>, PortError> {
    if links.is_empty() {
        return Ok(links);
    }
    let keys = topic_names(store).await?.into_iter();
    let keys = keys.map(|name| format!("{}{name}.json", layout::TOPICS));
    let reads = keys.map(|key| async move {
        let found = store.get(&key).await?;
        Ok::<_, PortError>(found.map(|object| (key, object)))
    });
    let mut reads = stream::iter(reads.collect::<Vec<_>>()).buffer_unordered(READS_AT_ONCE);
    while let Some(found) = reads.try_next().await? {
        let Some((key, object)) = found else {
            continue;
        };
        let record = match TopicRecord::parse(&object.bytes) {
            Ok(record) => record,
            Err(error) => {
                let error = &error as &dyn Error;
                tracing::error!(
                    key,
                    error,
                    "links are kept: the topic's record cannot be used"
                );
                return Ok(BTreeSet::new());
            }
        };
        let subscriptions = record.settings.subscriptions.values();
        for link in subscriptions.flat_map(|it| it.endpoint.links()) {
            links.remove(&link);
        }
        if links.is_empty() {
            break;
        }
    }
    Ok(links)
}

#[cfg(test)]
mod tests {
    use posthaste_core::model::{EndpointUrl, Timestamp};
    use posthaste_testkit::memory::MemoryStore;
    use posthaste_testkit::records::{topic_name, topic_record, topic_settings};
    use serde_json::json;

    use super::*;

    fn link(host: &str) -> Link {
        EndpointUrl::parse(&format!("https://{host}.example/hook"))
            .unwrap()
            .link()
    }

    fn write(store: &MemoryStore, topic: &str, hosts: &[&str]) {
        let subscription = |host: &&str| {
            let url = format!("https://{host}.example/{topic}");
            ((*host).to_owned(), json!({ "endpoint": { "url": url } }))
        };
        let subscriptions: serde_json::Map<_, _> = hosts.iter().map(subscription).collect();
        let settings = topic_settings(json!({ "subscriptions": subscriptions }));
        let record = topic_record(topic_name(topic), settings, Timestamp::EPOCH);
        store.write(&format!("topics/{topic}.json"), record.render());
    }

    #[tokio::test]
    async fn link_is_unused_where_no_topic_has_it() {
        let store = MemoryStore::default();
        write(&store, "orders", &["a", "b"]);
        write(&store, "parcels", &["c"]);
        let asked = ["a", "c", "d"].map(link);
        let unused = unused_links(&store, asked.into()).await.unwrap();
        assert_eq!(unused, [link("d")].into());
    }

    #[tokio::test]
    async fn record_that_cannot_be_read_may_use_any_link() {
        let store = MemoryStore::default();
        write(&store, "orders", &["a"]);
        store.write("topics/parcels.json", "{");
        let unused = unused_links(&store, [link("d")].into()).await.unwrap();
        assert!(unused.is_empty());
    }
}
