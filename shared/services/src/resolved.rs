//! The letters of a dead-letter object that need nothing more: who asks, and who says so.

use std::collections::BTreeSet;
use std::error::Error;

use bytes::Bytes;
use posthaste_core::model::is_object_key;
use posthaste_core::stored::{FormatError, ResolvedLetters, layout};
use posthaste_ports::{ErrorKind, Object, ObjectStore, PortError};

use crate::update::{Edit, UpdateError, update};

const READING: &str = "read the list of resolved dead letters";

/// The letters of the object under `key` that are resolved. A damaged list is none: a letter too
/// many is better than one too few.
pub async fn resolved_letters(
    bucket: &impl ObjectStore,
    key: &str,
) -> Result<ResolvedLetters, PortError> {
    let found = match bucket.get(&layout::resolved(key)).await {
        // Where no list can be, there is none.
        Err(error) if error.kind == ErrorKind::Invalid => None,
        read => read?,
    };
    let Some(Object { bytes, .. }) = found else {
        return Ok(ResolvedLetters::default());
    };
    parse(key, &bytes).map_err(|newer| PortError::caused(READING, ErrorKind::Other, newer))
}

/// Whether an object can have a list of its letters that are resolved. The key of one that others
/// put there may be too long for the list's own key.
pub fn can_be_resolved(key: &str) -> bool {
    is_object_key(&layout::resolved(key))
}

/// Resolves letters of the object under `key`, and answers the number of those that were not
/// resolved yet. Of an object that cannot have a list none are, and that is logged; nor are they of
/// one that is gone.
pub async fn resolve_letters(
    bucket: &impl ObjectStore,
    key: &str,
    letters: &BTreeSet<usize>,
) -> Result<usize, UpdateError<FormatError>> {
    if !can_be_resolved(key) {
        tracing::warn!(key, "the key is too long to mark dead letters as resolved");
        return Ok(0);
    }
    let found = bucket.list(key, None, 1).await.map_err(UpdateError::Read)?;
    if found.objects.iter().all(|object| object.key != key) {
        return Ok(0);
    }
    let list = layout::resolved(key);
    let resolved = update(bucket, &list, |found| {
        let mut resolved = found.map_or_else(
            || Ok(ResolvedLetters::default()),
            |it| parse(key, &it.bytes),
        )?;
        let before = resolved.0.len();
        resolved.0.extend(letters);
        Ok(match resolved.0.len() - before {
            0 => Edit::Keep(0),
            more => Edit::Write(resolved.render(), more),
        })
    });
    Ok(resolved.await?.answer)
}

/// Reads a list. The error is that of a newer version.
fn parse(key: &str, bytes: &Bytes) -> Result<ResolvedLetters, FormatError> {
    match ResolvedLetters::parse(bytes) {
        Err(error @ FormatError::Malformed(..)) => {
            let error = &error as &dyn Error;
            tracing::error!(
                key,
                error,
                "the list of an object's resolved dead letters is damaged"
            );
            Ok(ResolvedLetters::default())
        }
        read => read,
    }
}

#[cfg(test)]
mod tests {
    use posthaste_testkit::memory::MemoryStore;

    use super::*;

    const KEY: &str = "ORDERS/BILLING/2026/3/7/4/x.json";

    /// A store with the object.
    fn with_letters() -> MemoryStore {
        let store = MemoryStore::default();
        store.write(KEY, "[]");
        store
    }

    #[tokio::test]
    async fn letters_of_an_object_that_is_gone_are_not_resolved() {
        let store = MemoryStore::default();
        store.write(&format!("{KEY}.copy"), "[]");
        let places = BTreeSet::from([2]);
        assert_eq!(resolve_letters(&store, KEY, &places).await.unwrap(), 0);
        assert!(store.keys(layout::RESOLVED).is_empty());
    }

    async fn resolved(store: &MemoryStore) -> Vec<usize> {
        resolved_letters(store, KEY)
            .await
            .unwrap()
            .0
            .into_iter()
            .collect()
    }

    #[tokio::test]
    async fn letters_are_resolved_once() {
        let store = with_letters();
        assert!(resolved(&store).await.is_empty());
        assert_eq!(
            resolve_letters(&store, KEY, &BTreeSet::from([2, 5]))
                .await
                .unwrap(),
            2
        );
        assert_eq!(
            resolve_letters(&store, KEY, &BTreeSet::from([5]))
                .await
                .unwrap(),
            0
        );
        assert_eq!(
            resolve_letters(&store, KEY, &BTreeSet::from([3, 5]))
                .await
                .unwrap(),
            1
        );
        assert_eq!(resolved(&store).await, [2, 3, 5]);
    }

    /// No store takes the key of its list, so nothing is asked for.
    #[tokio::test]
    async fn letters_of_an_object_with_too_long_a_key_stay() {
        let store = MemoryStore::default();
        let key = format!("ORDERS/BILLING/{}", "k".repeat(1_005));
        assert_eq!(
            resolve_letters(&store, &key, &BTreeSet::from([1]))
                .await
                .unwrap(),
            0
        );
        let resolved = resolved_letters(&store, &key).await.unwrap();
        assert!(resolved.0.is_empty());
    }

    #[tokio::test]
    async fn a_damaged_list_is_none_and_is_written_anew_and_one_of_a_newer_version_stays() {
        let store = with_letters();
        store.write(&layout::resolved(KEY), "{");
        assert!(resolved(&store).await.is_empty());
        assert_eq!(
            resolve_letters(&store, KEY, &BTreeSet::from([1]))
                .await
                .unwrap(),
            1
        );
        assert_eq!(resolved(&store).await, [1]);
        store.write(&layout::resolved(KEY), r#"{"v":2}"#);
        assert_eq!(
            resolved_letters(&store, KEY).await.unwrap_err().kind,
            ErrorKind::Other
        );
        let error = resolve_letters(&store, KEY, &BTreeSet::from([1]))
            .await
            .unwrap_err();
        assert!(
            matches!(error, UpdateError::Edit(FormatError::Newer(2))),
            "{error:?}"
        );
    }
}
