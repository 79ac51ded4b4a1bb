//! The suite that every object store adapter passes.

mod ranges;

use std::future::Future;

use bytes::Bytes;
use futures_util::future::join_all;

use super::{cases, run_all};
use posthaste_ports::{ETag, ErrorKind, ObjectStore, PutCondition, RevalidatedObject};

/// The number of writers that race for one put.
const RACERS: usize = 32;

/// Makes stores.
pub trait StoreHarness: Sync {
    /// The adapter.
    type Store: ObjectStore;

    /// A fresh and empty store.
    fn fresh(&self) -> impl Future<Output = Self::Store>;

    /// Whether a conditional put is one step. An emulator that looks first and puts then may let
    /// several racers win.
    fn is_exact(&self) -> bool {
        true
    }
}

/// Runs the suite. Panics with the names of the cases that failed.
pub async fn run<H: StoreHarness>(harness: &H) {
    run_all(cases![harness:
        what_is_put_is_read_byte_for_byte,
        an_empty_object_is_an_object,
        an_object_of_eight_mebibytes_is_kept,
        what_was_never_put_is_absent,
        an_overwrite_is_visible_with_another_version,
        a_read_with_a_known_version_has_three_answers,
        ranges::a_range_has_exactly_its_bytes,
        ranges::a_range_of_a_large_object_has_exactly_its_bytes,
        ranges::a_range_beyond_the_end_is_damage,
        ranges::a_range_of_what_is_gone_is_not_found,
        ranges::a_range_of_no_bytes_is_refused,
        if_absent_puts_only_the_first,
        if_match_puts_only_over_its_version,
        one_of_many_racers_wins_if_absent,
        one_of_many_racers_wins_if_match,
        racing_writers_leave_one_whole_object,
        delete_takes_effect_and_a_second_one_is_no_error,
        a_deleted_key_counts_as_absent,
        keys_are_told_apart_by_case_and_spelling,
        bad_keys_are_refused,
        a_listing_is_in_byte_order_with_sizes,
        a_listing_keeps_to_its_prefix,
        a_listing_goes_on_after_a_key,
        pages_join_to_the_whole,
        a_page_of_none_or_of_too_many_is_refused,
    ])
    .await;
}

async fn put(store: &impl ObjectStore, key: &str, bytes: impl Into<Bytes>) -> ETag {
    store
        .put(key, bytes.into(), PutCondition::Always)
        .await
        .unwrap()
}

async fn bytes(store: &impl ObjectStore, key: &str) -> Option<Bytes> {
    store.get(key).await.unwrap().map(|object| object.bytes)
}

/// The kind of error a conditional put ends with.
async fn refusal(
    store: &impl ObjectStore,
    key: &str,
    condition: PutCondition,
) -> Option<ErrorKind> {
    store
        .put(key, Bytes::from("refused?"), condition)
        .await
        .err()
        .map(|error| error.kind)
}

async fn keys(
    store: &impl ObjectStore,
    prefix: &str,
    after: Option<&str>,
    max: usize,
) -> Vec<String> {
    let page = store.list(prefix, after, max).await.unwrap();
    page.objects.into_iter().map(|object| object.key).collect()
}

async fn what_is_put_is_read_byte_for_byte(harness: &impl StoreHarness) {
    let store = harness.fresh().await;
    let all_bytes: Vec<u8> = (0..=255).collect();
    let etag = put(&store, "a/b c/ü.json", all_bytes.clone()).await;
    let object = store.get("a/b c/ü.json").await.unwrap().unwrap();
    assert_eq!((object.bytes, object.etag), (Bytes::from(all_bytes), etag));
}

async fn an_empty_object_is_an_object(harness: &impl StoreHarness) {
    let store = harness.fresh().await;
    put(&store, "empty", "").await;
    assert_eq!(bytes(&store, "empty").await, Some(Bytes::new()));
    assert_eq!(store.list("", None, 10).await.unwrap().objects[0].size, 0);
}

async fn an_object_of_eight_mebibytes_is_kept(harness: &impl StoreHarness) {
    let store = harness.fresh().await;
    let large = large_object();
    put(&store, "eight", large.clone()).await;
    assert!(
        bytes(&store, "eight").await.unwrap() == large,
        "the object differs"
    );
}

/// Eight mebibytes. Their period divides no power of two, so that a swapped block shows.
fn large_object() -> Bytes {
    (0_u8..251)
        .cycle()
        .take(8 * 1024 * 1024)
        .collect::<Vec<_>>()
        .into()
}

async fn what_was_never_put_is_absent(harness: &impl StoreHarness) {
    let store = harness.fresh().await;
    put(&store, "a/b", "x").await;
    for key in ["a", "a/b/c", "a/c", "b"] {
        assert_eq!(bytes(&store, key).await, None, "{key}");
    }
}

async fn an_overwrite_is_visible_with_another_version(harness: &impl StoreHarness) {
    let store = harness.fresh().await;
    let first = put(&store, "k", "one, and longer").await;
    let second = put(&store, "k", "two").await;
    assert_ne!(first, second);
    assert_eq!(
        store.get("k").await.unwrap().map(|o| (o.bytes, o.etag)),
        Some((Bytes::from("two"), second))
    );
    assert_eq!(keys(&store, "", None, 10).await, ["k"]);
}

async fn a_read_with_a_known_version_has_three_answers(harness: &impl StoreHarness) {
    let store = harness.fresh().await;
    let first = put(&store, "k", "one").await;
    assert!(matches!(
        store.get_if_changed("k", &first).await.unwrap(),
        RevalidatedObject::Unchanged
    ));
    let second = put(&store, "k", "two").await;
    match store.get_if_changed("k", &first).await.unwrap() {
        RevalidatedObject::Changed(object) => {
            assert_eq!(
                (object.bytes, object.etag),
                (Bytes::from("two"), second.clone())
            );
        }
        other => panic!("expected the changed object, got {other:?}"),
    }
    store.delete("k").await.unwrap();
    assert!(matches!(
        store.get_if_changed("k", &second).await.unwrap(),
        RevalidatedObject::Missing
    ));
}

async fn if_absent_puts_only_the_first(harness: &impl StoreHarness) {
    let store = harness.fresh().await;
    store
        .put("k", Bytes::from("one"), PutCondition::IfAbsent)
        .await
        .unwrap();
    let lost = refusal(&store, "k", PutCondition::IfAbsent).await;
    assert_eq!(lost, Some(ErrorKind::PreconditionFailed));
    assert_eq!(bytes(&store, "k").await, Some(Bytes::from("one")));
}

async fn if_match_puts_only_over_its_version(harness: &impl StoreHarness) {
    let store = harness.fresh().await;
    let failed = Some(ErrorKind::PreconditionFailed);
    let first = put(&store, "k", "one").await;
    let over_first = PutCondition::IfMatch(first.clone());
    let second = store
        .put("k", Bytes::from("two"), over_first.clone())
        .await
        .unwrap();
    assert_eq!(refusal(&store, "k", over_first.clone()).await, failed);
    assert_eq!(bytes(&store, "k").await, Some(Bytes::from("two")));
    store.delete("k").await.unwrap();
    // S3 returns 404 if the object is gone; this port has one error for every condition that does
    // not hold.
    assert_eq!(
        refusal(&store, "k", PutCondition::IfMatch(second)).await,
        failed
    );
    assert_eq!(refusal(&store, "never", over_first).await, failed);
    assert_eq!(bytes(&store, "k").await, None);
}

async fn one_of_many_racers_wins_if_absent(harness: &impl StoreHarness) {
    one_of_many_racers_wins(harness, &harness.fresh().await, &PutCondition::IfAbsent).await;
}

async fn one_of_many_racers_wins_if_match(harness: &impl StoreHarness) {
    let store = harness.fresh().await;
    let etag = put(&store, "k", "before").await;
    one_of_many_racers_wins(harness, &store, &PutCondition::IfMatch(etag)).await;
}

async fn one_of_many_racers_wins<H: StoreHarness>(
    harness: &H,
    store: &H::Store,
    condition: &PutCondition,
) {
    let racers =
        (0..RACERS).map(|n| store.put("k", Bytes::from(format!("racer {n}")), condition.clone()));
    let results = join_all(racers).await;
    let winners: Vec<_> = (0..RACERS).filter(|n| results[*n].is_ok()).collect();
    let is_one = if harness.is_exact() {
        winners.len() == 1
    } else {
        !winners.is_empty()
    };
    assert!(is_one, "{} winners of {RACERS}", winners.len());
    let lost = results.iter().filter_map(|result| result.as_ref().err());
    assert!(
        lost.map(|error| error.kind)
            .all(|kind| kind == ErrorKind::PreconditionFailed)
    );
    let kept = bytes(store, "k").await;
    assert!(
        winners
            .iter()
            .any(|winner| kept == Some(Bytes::from(format!("racer {winner}")))),
        "{kept:?}"
    );
}

async fn racing_writers_leave_one_whole_object(harness: &impl StoreHarness) {
    let store = harness.fresh().await;
    let of = |n: u8| Bytes::from(vec![n; 100_000 + usize::from(n)]);
    join_all((0..8).map(|n| put(&store, "k", of(n)))).await;
    let left = bytes(&store, "k").await.unwrap();
    assert!((0..8).any(|n| left == of(n)), "a mixture was left");
}

async fn delete_takes_effect_and_a_second_one_is_no_error(harness: &impl StoreHarness) {
    let store = harness.fresh().await;
    put(&store, "a/b", "x").await;
    put(&store, "a/c", "y").await;
    store.delete("a/b").await.unwrap();
    store.delete("a/b").await.unwrap();
    store.delete("never/there").await.unwrap();
    assert_eq!(bytes(&store, "a/b").await, None);
    assert_eq!(keys(&store, "", None, 10).await, ["a/c"]);
}

async fn a_deleted_key_counts_as_absent(harness: &impl StoreHarness) {
    let store = harness.fresh().await;
    put(&store, "a/b", "one").await;
    store.delete("a/b").await.unwrap();
    store
        .put("a/b", Bytes::from("two"), PutCondition::IfAbsent)
        .await
        .unwrap();
    assert_eq!(bytes(&store, "a/b").await, Some(Bytes::from("two")));
}

async fn keys_are_told_apart_by_case_and_spelling(harness: &impl StoreHarness) {
    let store = harness.fresh().await;
    // The last two look the same: one character, and two that combine.
    let spellings = [
        "key",
        "KEY",
        "Key",
        "key ",
        "key.",
        "k\u{e9}y",
        "ke\u{301}y",
    ];
    for key in spellings {
        put(&store, key, key.to_owned()).await;
    }
    for key in spellings {
        assert_eq!(bytes(&store, key).await, Some(Bytes::from(key)), "{key:?}");
    }
}

/// Keys that no object can have, where that is possible under this prefix.
pub fn bad_keys(prefix: &str) -> Vec<String> {
    let of = |rest: &str| format!("{prefix}{rest}");
    let mut keys: Vec<_> = [
        "",
        "/",
        "/a",
        "a/",
        "a//b",
        ".",
        "..",
        "a/../b",
        "../a",
        "a/.",
        "a\0b",
        "a/\u{1}",
        "a\nb",
        "a\u{7f}",
        "\u{85}",
        "a\u{fffe}",
    ]
    .map(of)
    .into();
    keys.push(of(&("k/".repeat(512) + "k")));
    keys
}

async fn bad_keys_are_refused(harness: &impl StoreHarness) {
    let store = harness.fresh().await;
    for key in bad_keys("") {
        let key = key.as_str();
        let invalid = Some(ErrorKind::Invalid);
        assert_eq!(
            refusal(&store, key, PutCondition::Always).await,
            invalid,
            "{key:?}"
        );
        assert_eq!(
            store.get(key).await.err().map(|e| e.kind),
            invalid,
            "{key:?}"
        );
        assert_eq!(
            store.get_range(key, 0..1).await.err().map(|e| e.kind),
            invalid,
            "{key:?}"
        );
        assert_eq!(
            store.delete(key).await.err().map(|e| e.kind),
            invalid,
            "{key:?}"
        );
        let known = ETag("x".to_owned());
        assert_eq!(
            store
                .get_if_changed(key, &known)
                .await
                .err()
                .map(|e| e.kind),
            invalid,
            "{key:?}"
        );
    }
    assert_eq!(keys(&store, "", None, 10).await, [""; 0]);
    // The longest key, in segments that a file system takes.
    let longest = "k/".repeat(511) + "kk";
    put(&store, &longest, "x").await;
    assert_eq!(keys(&store, "", None, 10).await, [longest]);
}

/// Keys whose byte order differs from that of folders, of case-blind sorting, and of UTF-16.
const SORTED: [&str; 12] = [
    "A/1", "a-b/1", "a-b/2", "a.json", "a/1", "a/b-c", "a/b/c", "a/b0", "a0", "b", "\u{fb01}", "😀",
];

async fn filled(harness: &impl StoreHarness) -> impl ObjectStore {
    let store = harness.fresh().await;
    for (n, key) in SORTED.iter().enumerate().rev() {
        put(&store, key, "x".repeat(n)).await;
    }
    store
}

async fn a_listing_is_in_byte_order_with_sizes(harness: &impl StoreHarness) {
    let page = filled(harness).await.list("", None, 1000).await.unwrap();
    let listed: Vec<_> = page
        .objects
        .iter()
        .map(|object| (object.key.as_str(), object.size))
        .collect();
    let expected: Vec<_> = SORTED.into_iter().zip(0..).collect();
    assert_eq!(listed, expected);
    assert_eq!(page.next_after, None);
}

async fn a_listing_keeps_to_its_prefix(harness: &impl StoreHarness) {
    let store = filled(harness).await;
    for prefix in [
        "a", "a/", "a/b", "a/b/", "a-", "A", "b", "b/", "c", "\u{fb01}", "zz/",
    ] {
        let expected: Vec<_> = SORTED
            .into_iter()
            .filter(|key| key.starts_with(prefix))
            .collect();
        assert_eq!(keys(&store, prefix, None, 1000).await, expected, "{prefix}");
    }
}

async fn a_listing_goes_on_after_a_key(harness: &impl StoreHarness) {
    let store = filled(harness).await;
    for after in [
        "",
        "A",
        "a",
        "a-b/1",
        "a-b0",
        "a/",
        "a/b",
        "a/b/",
        "a/b/c",
        "a/zzz",
        "a0",
        "b",
        "😀",
        "\u{10ffff}",
    ] {
        for prefix in ["", "a", "a/", "a/b"] {
            let is_listed = |key: &&str| key.starts_with(prefix) && *key > after;
            let expected: Vec<_> = SORTED.into_iter().filter(is_listed).collect();
            let listed = keys(&store, prefix, Some(after), 1000).await;
            assert_eq!(listed, expected, "{prefix:?} after {after:?}");
        }
    }
}

async fn pages_join_to_the_whole(harness: &impl StoreHarness) {
    let store = filled(harness).await;
    for max in 1..=SORTED.len() {
        let mut listed = Vec::new();
        let mut after = None;
        for _ in 0..=SORTED.len() {
            let page = store.list("", after.as_deref(), max).await.unwrap();
            assert!(page.objects.len() <= max);
            listed.extend(page.objects.into_iter().map(|object| object.key));
            after = page.next_after;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(
            (listed, after),
            (SORTED.map(str::to_owned).to_vec(), None),
            "pages of {max}"
        );
    }
}

async fn a_page_of_none_or_of_too_many_is_refused(harness: &impl StoreHarness) {
    let store = harness.fresh().await;
    for max in [0, 1001] {
        let refused = store
            .list("", None, max)
            .await
            .map(|page| page.objects.len());
        assert_eq!(
            refused.map_err(|e| e.kind),
            Err(ErrorKind::Invalid),
            "{max}"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryStore;
    use crate::{CallFault, FaultPlan, Faulty, PortOperation, Recorded, RecordedCalls};

    struct Memory(FaultPlan);

    impl StoreHarness for Memory {
        type Store = Recorded<Faulty<MemoryStore>>;

        async fn fresh(&self) -> Self::Store {
            let faulty = Faulty::new(MemoryStore::default(), "store", &self.0);
            Recorded::new(faulty, "store", &RecordedCalls::default())
        }
    }

    #[tokio::test]
    async fn the_plainest_store_passes() {
        run(&Memory(FaultPlan::none())).await;
    }

    struct Lent;

    impl StoreHarness for Lent {
        type Store = &'static MemoryStore;

        async fn fresh(&self) -> Self::Store {
            Box::leak(Box::default())
        }
    }

    #[tokio::test]
    async fn a_store_that_is_lent_passes() {
        run(&Lent).await;
    }

    #[tokio::test]
    #[should_panic(expected = "1 of 25 cases failed: an_object_of_eight_mebibytes_is_kept")]
    async fn a_store_that_refuses_one_put_fails_by_name() {
        run(&Memory(FaultPlan::by(|effect| {
            let is_hit = effect.operation == PortOperation::Put && effect.key == "eight";
            is_hit.then_some(CallFault::Before(ErrorKind::Full))
        })))
        .await;
    }
}
