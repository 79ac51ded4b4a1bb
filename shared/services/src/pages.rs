//! The listing of a prefix as a stream of pages or of objects.

use futures_util::stream::{self, Stream, TryStreamExt};
use posthaste_ports::validate::LIST_PAGE_MAX;
use posthaste_ports::{ListPage, ObjectMeta, ObjectStore, PortError};

/// The pages of the objects under `prefix`, after the key `after`, in the order of the keys. Each
/// costs one request, for as many objects as a page may hold. A page may be empty and yet not the
/// last; its `next_after` is the position that was reached. An error ends the stream. A caller that
/// wants a limited number of pages uses `take`.
pub fn list_pages<'a, S: ObjectStore>(
    store: &'a S,
    prefix: &'a str,
    after: Option<String>,
) -> impl Stream<Item = Result<ListPage, PortError>> + Send + 'a {
    // `None` after the last page.
    stream::try_unfold(Some(after), move |next| async move {
        let Some(after) = next else { return Ok(None) };
        let page = store.list(prefix, after.as_deref(), LIST_PAGE_MAX).await?;
        let next = page.next_after.clone().map(Some);
        Ok(Some((page, next)))
    })
}

/// The objects of [`list_pages`], one by one.
pub fn list_objects<'a, S: ObjectStore>(
    store: &'a S,
    prefix: &'a str,
    after: Option<String>,
) -> impl Stream<Item = Result<ObjectMeta, PortError>> + Send + 'a {
    list_pages(store, prefix, after)
        .map_ok(|page| stream::iter(page.objects.into_iter().map(Ok)))
        .try_flatten()
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use bytes::Bytes;
    use futures_util::StreamExt;
    use posthaste_ports::{ErrorKind, PutCondition};
    use posthaste_testkit::memory::MemoryStore;
    use posthaste_testkit::{CallFault, FaultPlan, Faulty, PortOperation, Recorded, RecordedCalls};

    use super::*;

    async fn filled(count: usize) -> MemoryStore {
        let store = MemoryStore::default();
        for number in 0..count {
            store
                .put(
                    &format!("a/{number:04}"),
                    Bytes::new(),
                    PutCondition::Always,
                )
                .await
                .unwrap();
        }
        store
            .put("b/1", Bytes::new(), PutCondition::Always)
            .await
            .unwrap();
        store
    }

    async fn check(
        count: usize,
        after: Option<&str>,
        expected_objects: usize,
        expected_lists: usize,
    ) {
        let calls = RecordedCalls::default();
        let store = Recorded::new(filled(count).await, "state", &calls);
        let found: Vec<_> = list_objects(&store, "a/", after.map(str::to_owned))
            .try_collect()
            .await
            .unwrap();
        assert_eq!(
            (found.len(), calls.count(PortOperation::List)),
            (expected_objects, expected_lists),
            "{count}"
        );
        assert!(found.is_sorted_by(|one, next| one.key < next.key));
    }

    #[tokio::test]
    async fn each_page_costs_one_list() {
        check(0, None, 0, 1).await;
        check(3, None, 3, 1).await;
        check(3, Some("a/0001"), 1, 1).await;
        check(1000, None, 1000, 1).await;
        check(2001, None, 2001, 3).await;
    }

    #[tokio::test]
    async fn a_reader_that_stops_knows_how_far_it_came_and_lists_no_more() {
        let calls = RecordedCalls::default();
        let store = Recorded::new(filled(2500).await, "state", &calls);
        let two: Vec<_> = list_pages(&store, "a/", None)
            .take(2)
            .try_collect()
            .await
            .unwrap();
        let next_after = two
            .into_iter()
            .map(|page| page.next_after)
            .collect::<Vec<_>>();
        assert_eq!(
            next_after,
            [Some("a/0999".to_owned()), Some("a/1999".to_owned())]
        );
        assert_eq!(calls.count(PortOperation::List), 2);
    }

    #[tokio::test]
    async fn an_error_ends_the_stream() {
        let plan = FaultPlan::nth(1, CallFault::Before(ErrorKind::TimedOut));
        let store = Faulty::new(filled(2500).await, "state", &plan);
        let mut pages = pin!(list_pages(&store, "a/", None));
        assert!(pages.next().await.unwrap().is_ok());
        assert_eq!(
            pages.next().await.unwrap().unwrap_err().kind,
            ErrorKind::TimedOut
        );
        assert!(pages.next().await.is_none());
    }
}
