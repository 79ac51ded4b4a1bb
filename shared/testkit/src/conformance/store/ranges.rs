//! Cases of reading a part of an object.

use std::ops::Range;

use posthaste_ports::{ErrorKind, ObjectStore};

use super::{StoreHarness, large_object, put};

/// The kind of error that a read of a range ends with.
async fn refusal(store: &impl ObjectStore, key: &str, range: Range<u64>) -> Option<ErrorKind> {
    store
        .get_range(key, range)
        .await
        .err()
        .map(|error| error.kind)
}

pub(super) async fn a_range_has_exactly_its_bytes(harness: &impl StoreHarness) {
    let store = harness.fresh().await;
    let all_bytes: Vec<u8> = (0..=255).collect();
    put(&store, "a/b c/ü.json", all_bytes.clone()).await;
    for (range, expected) in [
        (0..256, &all_bytes[..]),
        (0..1, &[0]),
        (255..256, &[255]),
        (10..13, &[10, 11, 12]),
        (0..255, &all_bytes[..255]),
        (1..256, &all_bytes[1..]),
    ] {
        assert_eq!(
            store
                .get_range("a/b c/ü.json", range.clone())
                .await
                .unwrap(),
            expected,
            "{range:?}"
        );
    }
    put(&store, "a/b c/ü.json", "another").await;
    assert_eq!(
        store.get_range("a/b c/ü.json", 2..7).await.unwrap(),
        "other"
    );
}

pub(super) async fn a_range_of_a_large_object_has_exactly_its_bytes(harness: &impl StoreHarness) {
    let store = harness.fresh().await;
    let large = large_object();
    put(&store, "large", large.clone()).await;
    let length = large.len();
    for (start, end) in [
        (0, length),
        (65_535, 65_537),
        (1_000_003, 5_000_011),
        (length - 8, length),
    ] {
        let part = store
            .get_range("large", start as u64..end as u64)
            .await
            .unwrap();
        assert!(
            part == large.slice(start..end),
            "bytes {start} to {end} differ"
        );
    }
}

pub(super) async fn a_range_beyond_the_end_is_damage(harness: &impl StoreHarness) {
    let store = harness.fresh().await;
    put(&store, "k", "12345").await;
    for range in [0..6, 4..6, 5..6, 5..1000, 100..200] {
        assert_eq!(
            refusal(&store, "k", range.clone()).await,
            Some(ErrorKind::Damaged),
            "{range:?}"
        );
    }
    put(&store, "empty", "").await;
    assert_eq!(
        refusal(&store, "empty", 0..1).await,
        Some(ErrorKind::Damaged)
    );
    // The object was cut short since its size was seen.
    put(&store, "k", "123").await;
    assert_eq!(refusal(&store, "k", 1..5).await, Some(ErrorKind::Damaged));
    assert_eq!(store.get_range("k", 1..3).await.unwrap(), "23");
}

pub(super) async fn a_range_of_what_is_gone_is_not_found(harness: &impl StoreHarness) {
    let store = harness.fresh().await;
    put(&store, "a/b", "x").await;
    for key in ["a", "a/b/c", "a/c", "b"] {
        assert_eq!(
            refusal(&store, key, 0..1).await,
            Some(ErrorKind::NotFound),
            "{key}"
        );
    }
    store.delete("a/b").await.unwrap();
    assert_eq!(
        refusal(&store, "a/b", 0..1).await,
        Some(ErrorKind::NotFound)
    );
}

pub(super) async fn a_range_of_no_bytes_is_refused(harness: &impl StoreHarness) {
    let store = harness.fresh().await;
    put(&store, "k", "12345").await;
    for range in [
        0..0,
        3..3,
        5..5,
        9..9,
        Range { start: 3, end: 2 },
        Range { start: 9, end: 0 },
    ] {
        assert_eq!(
            refusal(&store, "k", range.clone()).await,
            Some(ErrorKind::Invalid),
            "{range:?}"
        );
        assert_eq!(
            refusal(&store, "absent", range.clone()).await,
            Some(ErrorKind::Invalid),
            "{range:?}"
        );
    }
}
