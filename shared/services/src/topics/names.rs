//! The names of topics, without their records.

use std::collections::BTreeSet;

use futures_util::{TryStreamExt, future};
use posthaste_core::stored::layout;
use posthaste_ports::{ObjectStore, PortError};

use crate::pages::objects;

/// The folded names of all topics: of records that cannot be read too.
pub async fn topic_names<S: ObjectStore>(store: &S) -> Result<BTreeSet<String>, PortError> {
    let name = |key: &str| Some(key.strip_prefix(layout::TOPICS)?.strip_suffix(".json")?.to_owned());
    let names = objects(store, layout::TOPICS, None).try_filter_map(|object| future::ok(name(&object.key)));
    names.try_collect().await
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use posthaste_ports::PutCondition;
    use posthaste_testkit::memory::MemoryStore;

    use super::*;

    #[tokio::test]
    async fn the_names_are_those_of_the_keys() {
        let store = MemoryStore::default();
        for key in ["topics/orders.json", "topics/billing.json", "topics/notes.txt", "links/0.json"] {
            store.put(key, Bytes::from("?"), PutCondition::Always).await.unwrap();
        }
        let expected = ["billing", "orders"].map(str::to_owned).into();
        assert_eq!(topic_names(&store).await.unwrap(), expected);
    }
}
