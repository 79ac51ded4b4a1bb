//! The letters of a dead-letter object that need nothing more: look-ups and changes of their list.

use std::collections::BTreeSet;
use std::error::Error;

use bytes::Bytes;
use posthaste_core::model::{FormatError, LetterPlace, is_object_key};
use posthaste_core::stored::{ResolvedLetters, layout};
use posthaste_ports::{ErrorKind, ObjectStore, PortError, StoredObject};

use crate::update::{ObjectEdit, UpdateError, update_object};

const READING: &str = "read the list of resolved dead letters";

/// The letters of the object under `key` that are resolved. A damaged list is none: a letter too
/// many is better than one too few.
pub async fn resolved_letters(
    bucket: &impl ObjectStore,
    key: &str,
) -> Result<ResolvedLetters, PortError> {
    let found = match bucket.get(&layout::resolved_letters_key(key)).await {
        // Where no list can be, there is none.
        Err(error) if error.kind == ErrorKind::Invalid => None,
        read => read?,
    };
    let Some(StoredObject { bytes, .. }) = found else {
        return Ok(ResolvedLetters::default());
    };
    parse(key, &bytes).map_err(|newer| PortError::with_cause(READING, ErrorKind::Other, newer))
}

/// Whether an object can have a list of its letters that are resolved. The key of a foreign object
/// may be too long for the list's own key.
pub fn can_be_resolved(key: &str) -> bool {
    is_object_key(&layout::resolved_letters_key(key))
}

/// Resolves letters of the object under `key`, and returns the number of those that were not
/// resolved yet. Zero for an object that is gone, and for one that cannot have a list, which is
/// logged.
pub async fn resolve_letters(
    bucket: &impl ObjectStore,
    key: &str,
    letters: &BTreeSet<usize>,
) -> Result<usize, UpdateError<FormatError>> {
    let resolved = change_list(bucket, key, |resolved| {
        let before = resolved.places.len();
        resolved.places.extend(letters);
        resolved.places.len() - before
    });
    Ok(resolved.await?.unwrap_or_default())
}

/// Resolves letters of the object under `key`: their events were delivered or, with newer letters,
/// given up again. Returns, in order, the letters that have stood for them until now, which are to
/// be resolved for the same reason. There are none of an object that is gone or cannot have a list.
pub async fn resolve_each(
    bucket: &impl ObjectStore,
    key: &str,
    letters: &[(usize, Option<LetterPlace>)],
) -> Result<Vec<Option<LetterPlace>>, UpdateError<FormatError>> {
    let resolved = change_list(bucket, key, |resolved| {
        let letters = letters.iter();
        let stood = letters.map(|(index, newer)| resolved.resolve_letter(*index, newer.as_ref()));
        stood.collect()
    });
    Ok(resolved.await?.unwrap_or_else(|| vec![None; letters.len()]))
}

/// Changes the list of the object under `key`. `None` if the object cannot have a list, which is
/// logged, or is gone.
async fn change_list<T>(
    bucket: &impl ObjectStore,
    key: &str,
    mut edit: impl FnMut(&mut ResolvedLetters) -> T,
) -> Result<Option<T>, UpdateError<FormatError>> {
    if !can_be_resolved(key) {
        tracing::warn!(key, "the key is too long to mark dead letters as resolved");
        return Ok(None);
    }
    let found = bucket.list(key, None, 1).await.map_err(UpdateError::Read)?;
    if found.objects.iter().all(|object| object.key != key) {
        return Ok(None);
    }
    let list = layout::resolved_letters_key(key);
    let changed = update_object(bucket, &list, |found| {
        let before = found.map_or_else(
            || Ok(ResolvedLetters::default()),
            |it| parse(key, &it.bytes),
        )?;
        let mut resolved = before.clone();
        let answer = edit(&mut resolved);
        Ok(if resolved == before {
            ObjectEdit::Keep(answer)
        } else {
            ObjectEdit::Write(resolved.render(), answer)
        })
    });
    Ok(Some(changed.await?.answer))
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
            .places
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

    fn place(object: &str) -> LetterPlace {
        let object = object.to_owned();
        LetterPlace { object, index: 0 }
    }

    #[tokio::test]
    async fn newer_letters_stand_for_those_that_they_were_made_of() {
        let store = with_letters();
        let [first, second] = [place("b"), place("c")];
        let newer = [(2, Some(first.clone())), (2, Some(second)), (5, None)];
        for _ in 0..2 {
            let stood = resolve_each(&store, KEY, &newer).await.unwrap();
            assert_eq!(stood, [None, Some(first.clone()), None]);
        }
        assert_eq!(resolved(&store).await, [2, 5]);
        let delivered = resolve_each(&store, KEY, &[(2, None)]).await.unwrap();
        assert_eq!(delivered, [Some(first)]);
    }

    #[tokio::test]
    async fn newer_letter_of_one_that_is_gone_stays() {
        let store = MemoryStore::default();
        let newer = [(0, Some(place("b"))), (1, None)];
        let stood = resolve_each(&store, KEY, &newer).await.unwrap();
        assert_eq!(stood, [None, None]);
        assert!(store.keys(layout::RESOLVED).is_empty());
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
        assert!(resolved.places.is_empty());
    }

    /// A damaged list counts as empty and is written anew, and one of a newer version stays.
    #[tokio::test]
    async fn damaged_list_is_replaced_and_a_newer_version_stays() {
        let store = with_letters();
        store.write(&layout::resolved_letters_key(KEY), "{");
        assert!(resolved(&store).await.is_empty());
        assert_eq!(
            resolve_letters(&store, KEY, &BTreeSet::from([1]))
                .await
                .unwrap(),
            1
        );
        assert_eq!(resolved(&store).await, [1]);
        store.write(&layout::resolved_letters_key(KEY), r#"{"v":2}"#);
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
