//! Optimistic changes of objects: read, decide, write on the condition that nothing else wrote in
//! between, and begin again with the newer object if something did.

use std::future::{Future, ready};

use bytes::Bytes;
use posthaste_ports::{
    ETag, ErrorKind, ObjectStore, PortError, PutCondition, RevalidatedObject, StoredObject,
};

/// Most tries of a change. Each failed try means that another write of the same object succeeded,
/// so that this many in a row need that many writers. So the tries follow each other without a
/// pause.
pub const UPDATE_TRIES_MAX: usize = 16;

/// The decision about an object.
#[derive(Debug)]
pub enum ObjectEdit<T> {
    /// Write these bytes, and return this value.
    Write(Bytes, T),
    /// Leave the object as it is, and return this value.
    Keep(T),
}

/// An object that was changed, or left as it was.
#[derive(Debug, PartialEq, Eq)]
pub struct UpdatedObject<T> {
    /// The value that the edit returned which counted.
    pub answer: T,
    /// The version that was written; `None` if nothing was.
    pub etag: Option<ETag>,
}

/// Reasons for which an object was not changed.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError<E> {
    /// The object could not be read.
    #[error("failed to read the object")]
    Read(#[source] PortError),
    /// The edit refused.
    #[error(transparent)]
    Edit(E),
    /// The object could not be written, or the response of the store was lost: the kind of the
    /// error tells.
    #[error("failed to write the object")]
    Write(#[source] PortError),
    /// Other writers won each time.
    #[error("lost {UPDATE_TRIES_MAX} races for the object")]
    Contended,
}

/// Reads the object under `key`, unless it still is of the version that is `known`.
pub async fn get_newer<S: ObjectStore>(
    store: &S,
    key: &str,
    known: Option<&ETag>,
) -> Result<RevalidatedObject, PortError> {
    // Boxed: the compiler finds the layout of the SDK's futures too deep otherwise.
    match known {
        Some(etag) => Box::pin(store.get_if_changed(key, etag)).await,
        None => Ok(Box::pin(store.get(key))
            .await?
            .map_or(RevalidatedObject::Missing, RevalidatedObject::Changed)),
    }
}

/// Changes the object under `key`. `edit` decides from the object, `None` if there is none. It is
/// called again with the newer object when another writer was faster.
pub async fn update_object<S: ObjectStore, T, E>(
    store: &S,
    key: &str,
    mut edit: impl FnMut(Option<StoredObject>) -> Result<ObjectEdit<T>, E>,
) -> Result<UpdatedObject<T>, UpdateError<E>> {
    update_object_with(store, key, |found| ready(edit(found))).await
}

/// Changes an object like [`update_object`] that is most likely not there yet: it is written
/// without being read first, one request instead of two. If it is there after all, the edit decides
/// again with what it holds.
pub async fn create_or_update<S: ObjectStore, T, E>(
    store: &S,
    key: &str,
    mut edit: impl FnMut(Option<StoredObject>) -> Result<ObjectEdit<T>, E>,
) -> Result<UpdatedObject<T>, UpdateError<E>> {
    if let ObjectEdit::Write(bytes, answer) = edit(None).map_err(UpdateError::Edit)? {
        match store.put(key, bytes, PutCondition::IfAbsent).await {
            Ok(etag) => {
                return Ok(UpdatedObject {
                    answer,
                    etag: Some(etag),
                });
            }
            Err(error) if error.kind == ErrorKind::PreconditionFailed => {}
            Err(error) => return Err(UpdateError::Write(error)),
        }
    }
    update_object(store, key, edit).await
}

/// Changes an object like [`update_object`], with an edit that waits for something.
pub async fn update_object_with<
    S: ObjectStore,
    T,
    E,
    F: Future<Output = Result<ObjectEdit<T>, E>>,
>(
    store: &S,
    key: &str,
    mut edit: impl FnMut(Option<StoredObject>) -> F,
) -> Result<UpdatedObject<T>, UpdateError<E>> {
    for _ in 0..UPDATE_TRIES_MAX {
        let found = store.get(key).await.map_err(UpdateError::Read)?;
        let etag = found.as_ref().map(|object| object.etag.clone());
        let condition = etag.map_or(PutCondition::IfAbsent, PutCondition::IfMatch);
        let (bytes, answer) = match edit(found).await.map_err(UpdateError::Edit)? {
            ObjectEdit::Write(bytes, answer) => (bytes, answer),
            ObjectEdit::Keep(answer) => return Ok(UpdatedObject { answer, etag: None }),
        };
        match store.put(key, bytes, condition).await {
            Ok(etag) => {
                return Ok(UpdatedObject {
                    answer,
                    etag: Some(etag),
                });
            }
            Err(error) if error.kind == ErrorKind::PreconditionFailed => {}
            Err(error) => return Err(UpdateError::Write(error)),
        }
    }
    Err(UpdateError::Contended)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use posthaste_testkit::memory::MemoryStore;
    use posthaste_testkit::{CallFault, FaultPlan, Faulty, PortOperation, Recorded, RecordedCalls};

    use super::*;

    const KEY: &str = "count";

    fn number(object: Option<&StoredObject>) -> u32 {
        object.map_or(0, |object| {
            std::str::from_utf8(&object.bytes).unwrap().parse().unwrap()
        })
    }

    /// Adds one, up to three. It has the shape that `update_object` asks for.
    #[expect(
        clippy::needless_pass_by_value,
        clippy::unnecessary_wraps,
        reason = "the shape of an edit"
    )]
    fn one_more(found: Option<StoredObject>) -> Result<ObjectEdit<u32>, Infallible> {
        let next = number(found.as_ref()) + 1;
        Ok(if next > 3 {
            ObjectEdit::Keep(3)
        } else {
            ObjectEdit::Write(Bytes::from(next.to_string()), next)
        })
    }

    #[tokio::test]
    async fn an_object_is_made_changed_and_at_last_left_as_it_is() {
        let calls = RecordedCalls::default();
        let store = MemoryStore::default();
        let recorded = Recorded::new(store.clone(), "state", &calls);
        for expected in [1, 2, 3] {
            let UpdatedObject { answer, etag } =
                update_object(&recorded, KEY, one_more).await.unwrap();
            assert_eq!(answer, expected);
            assert_eq!(
                etag,
                store.get(KEY).await.unwrap().map(|object| object.etag)
            );
        }
        assert_eq!(
            update_object(&recorded, KEY, one_more).await.unwrap(),
            UpdatedObject {
                answer: 3,
                etag: None
            }
        );
        assert_eq!(
            (
                calls.count(PortOperation::Get),
                calls.count(PortOperation::Put)
            ),
            (4, 3)
        );
    }

    /// An object is created without a read, and read only if it is there already.
    #[tokio::test]
    async fn create_or_update_reads_only_an_object_that_is_there() {
        let calls = RecordedCalls::default();
        let store = MemoryStore::default();
        let recorded = Recorded::new(store.clone(), "state", &calls);
        for (expected, gets, puts) in [(1, 0, 1), (2, 1, 3), (3, 2, 5), (3, 3, 6)] {
            let updated = create_or_update(&recorded, KEY, one_more).await.unwrap();
            assert_eq!(updated.answer, expected);
            assert_eq!(
                (
                    calls.count(PortOperation::Get),
                    calls.count(PortOperation::Put)
                ),
                (gets, puts)
            );
        }
        let kept = create_or_update(&recorded, "other", |_| {
            Ok::<_, Infallible>(ObjectEdit::Keep(0))
        })
        .await
        .unwrap();
        assert_eq!(
            kept,
            UpdatedObject {
                answer: 0,
                etag: None
            }
        );
        let plan = FaultPlan::nth(0, CallFault::Before(ErrorKind::TimedOut));
        let faulty = Faulty::new(MemoryStore::default(), "state", &plan);
        assert!(matches!(
            create_or_update(&faulty, KEY, one_more).await,
            Err(UpdateError::Write(_))
        ));
    }

    #[tokio::test]
    async fn a_lost_race_is_run_again_with_what_the_winner_wrote() {
        let store = MemoryStore::default();
        let mut seen = Vec::new();
        let updated = update_object_with(&store, KEY, |found| {
            seen.push(number(found.as_ref()));
            let store = store.clone();
            let is_first = seen.len() == 1;
            async move {
                if is_first {
                    store
                        .put(KEY, Bytes::from("2"), PutCondition::Always)
                        .await
                        .unwrap();
                }
                one_more(found)
            }
        });
        assert_eq!(updated.await.unwrap().answer, 3);
        assert_eq!(seen, [0, 2]);
    }

    #[tokio::test]
    async fn a_race_that_is_always_lost_ends() {
        let calls = RecordedCalls::default();
        let store = MemoryStore::default();
        let fault = CallFault::Before(ErrorKind::PreconditionFailed);
        let plan = FaultPlan::by(move |effect| {
            (effect.operation == PortOperation::Put).then(|| fault.clone())
        });
        let faulty = Faulty::new(Recorded::new(store, "state", &calls), "state", &plan);
        assert!(matches!(
            update_object(&faulty, KEY, one_more).await,
            Err(UpdateError::Contended)
        ));
        assert_eq!(calls.count(PortOperation::Get), UPDATE_TRIES_MAX);
    }

    #[tokio::test]
    async fn a_store_that_fails_and_an_edit_that_refuses_end_it_at_once() {
        for (number, is_read) in [(0, true), (1, false)] {
            let plan = FaultPlan::nth(number, CallFault::Before(ErrorKind::TimedOut));
            let error = update_object(
                &Faulty::new(MemoryStore::default(), "state", &plan),
                KEY,
                one_more,
            )
            .await;
            match error {
                Err(UpdateError::Read(error)) => {
                    assert!(is_read && error.kind == ErrorKind::TimedOut);
                }
                Err(UpdateError::Write(error)) => {
                    assert!(!is_read && error.kind == ErrorKind::TimedOut);
                }
                other => panic!("{other:?}"),
            }
        }
        let refused = update_object(&MemoryStore::default(), KEY, |_| {
            Err::<ObjectEdit<()>, _>("no")
        })
        .await;
        assert!(matches!(refused, Err(UpdateError::Edit("no"))));
    }
}
