//! The key of sessions in the state store. It is made by the first visit, and again when the admin
//! key has changed: sessions of the former admin key end.

use std::convert::Infallible;
use std::time::Duration;

use parking_lot::Mutex;
use posthaste_core::model::{KeyDigest, Secret};
use posthaste_core::stored::{CONSOLE_KEY, ConsoleKey};
use posthaste_ports::{
    Clock, Entropy, ErrorKind, ObjectStore, PortError, PutCondition, StoredObject,
};
use posthaste_services::{ObjectEdit, UpdateError, update_object};

use crate::session::SessionKey;

/// The least time between two reads because of a cookie that the known key did not sign. Cookies
/// without a valid signature must not cost a read each.
const READ_AGAIN_AFTER: Duration = Duration::from_secs(5);

/// Error of a key that can neither be read nor be made.
pub(crate) type SessionKeyError = UpdateError<Infallible>;

/// The key of sessions, as one process knows it.
#[derive(Debug, Default)]
pub(crate) struct CachedSessionKey(Mutex<Option<CachedKey>>);

#[derive(Debug, Clone)]
struct CachedKey {
    key: SessionKey,
    read_at: Duration,
}

/// The ports that the key needs.
pub(crate) struct KeyPorts<'a, S, C, E> {
    pub(crate) state: &'a S,
    pub(crate) clock: &'a C,
    pub(crate) entropy: &'a E,
    pub(crate) admin_key: &'a KeyDigest,
}

impl CachedSessionKey {
    /// The key, as this process knows it.
    pub(crate) async fn get_or_read<S: ObjectStore, C: Clock, E: Entropy>(
        &self,
        ports: &KeyPorts<'_, S, C, E>,
    ) -> Result<SessionKey, SessionKeyError> {
        match self.cached_key() {
            Some(key) => Ok(key),
            None => self.read_or_make(ports).await,
        }
    }

    /// The key, if this process has read it.
    pub(crate) fn cached_key(&self) -> Option<SessionKey> {
        self.0.lock().as_ref().map(|known| known.key.clone())
    }

    /// The key that another process may have made meanwhile. `None` where there is no other, and
    /// where it was read a moment ago.
    pub(crate) async fn newer_key<S: ObjectStore, C: Clock, E: Entropy>(
        &self,
        ports: &KeyPorts<'_, S, C, E>,
    ) -> Result<Option<SessionKey>, SessionKeyError> {
        let known = self.0.lock().clone();
        let Some(known) = known else { return Ok(None) };
        if ports.clock.monotonic().saturating_sub(known.read_at) < READ_AGAIN_AFTER {
            return Ok(None);
        }
        let key = self.read_or_make(ports).await?;
        Ok((key != known.key).then_some(key))
    }

    /// Reads the key, but makes none.
    pub(crate) async fn read_if_there<S: ObjectStore, C: Clock, E: Entropy>(
        &self,
        ports: &KeyPorts<'_, S, C, E>,
    ) -> Result<(), PortError> {
        let read_at = ports.clock.monotonic();
        let found = Box::pin(ports.state.get(CONSOLE_KEY)).await?;
        if let Some(key) = found.and_then(|object| usable_key(&object, ports.admin_key)) {
            *self.0.lock() = Some(CachedKey { key, read_at });
        }
        Ok(())
    }

    async fn read_or_make<S: ObjectStore, C: Clock, E: Entropy>(
        &self,
        ports: &KeyPorts<'_, S, C, E>,
    ) -> Result<SessionKey, SessionKeyError> {
        let read_at = ports.clock.monotonic();
        let update = update_object(ports.state, CONSOLE_KEY, |found| {
            Ok(keep_or_make(found, ports))
        });
        let (key, is_new) = match Box::pin(update).await {
            Ok(updated) => (updated.answer, updated.etag.is_some()),
            Err(UpdateError::Read(error)) if error.kind == ErrorKind::Damaged => {
                (replace_damaged_key(ports).await?, true)
            }
            Err(error) => return Err(error),
        };
        if is_new {
            tracing::info!("a new key of console sessions was made; operators sign in again");
        }
        *self.0.lock() = Some(CachedKey {
            key: key.clone(),
            read_at,
        });
        Ok(key)
    }
}

/// The edit of the key's object: one that can be used stays, and otherwise a new one is written.
fn keep_or_make<S, C, E: Entropy>(
    found: Option<StoredObject>,
    ports: &KeyPorts<'_, S, C, E>,
) -> ObjectEdit<SessionKey> {
    if let Some(key) = found.and_then(|object| usable_key(&object, ports.admin_key)) {
        return ObjectEdit::Keep(key);
    }
    let key = SessionKey::random(ports.entropy);
    ObjectEdit::Write(to_stored(&key, ports.admin_key).render(), key)
}

/// Replaces a key whose object is damaged, and is lost with it.
async fn replace_damaged_key<S: ObjectStore, C, E: Entropy>(
    ports: &KeyPorts<'_, S, C, E>,
) -> Result<SessionKey, SessionKeyError> {
    let key = SessionKey::random(ports.entropy);
    let bytes = to_stored(&key, ports.admin_key).render();
    Box::pin(ports.state.put(CONSOLE_KEY, bytes, PutCondition::Always))
        .await
        .map_err(UpdateError::Write)?;
    Ok(key)
}

/// The stored key, if it can be read and was made for this admin key.
fn usable_key(object: &StoredObject, admin_key: &KeyDigest) -> Option<SessionKey> {
    let stored = ConsoleKey::parse(&object.bytes).ok()?;
    let key = SessionKey::parse(stored.key.expose())?;
    (key.admin_key_tag(admin_key) == stored.admin_key).then_some(key)
}

fn to_stored(key: &SessionKey, admin_key: &KeyDigest) -> ConsoleKey {
    ConsoleKey {
        key: Secret::new(key.to_text()),
        admin_key: key.admin_key_tag(admin_key),
    }
}

#[cfg(test)]
mod tests {
    use posthaste_core::model::Timestamp;
    use posthaste_testkit::memory::MemoryStore;
    use posthaste_testkit::{ManualClock, SeededEntropy};

    use super::*;

    struct World {
        store: MemoryStore,
        clock: ManualClock,
        entropy: SeededEntropy,
    }

    impl World {
        fn new() -> Self {
            let clock = ManualClock::new(Timestamp::from_millis(1_700_000_000_000));
            Self {
                store: MemoryStore::default(),
                clock,
                entropy: SeededEntropy::new(1),
            }
        }

        fn ports<'a>(
            &'a self,
            admin_key: &'a KeyDigest,
        ) -> KeyPorts<'a, MemoryStore, ManualClock, SeededEntropy> {
            KeyPorts {
                state: &self.store,
                clock: &self.clock,
                entropy: &self.entropy,
                admin_key,
            }
        }
    }

    #[tokio::test]
    async fn every_process_has_the_same_key_until_the_admin_key_changes() {
        let world = World::new();
        let first = KeyDigest::for_key("the first");
        let second = KeyDigest::for_key("another");
        let key = CachedSessionKey::default()
            .get_or_read(&world.ports(&first))
            .await
            .ok()
            .unwrap();
        assert!(
            key == CachedSessionKey::default()
                .get_or_read(&world.ports(&first))
                .await
                .ok()
                .unwrap()
        );
        let other = CachedSessionKey::default()
            .get_or_read(&world.ports(&second))
            .await
            .ok()
            .unwrap();
        assert!(key != other);
        assert!(
            other
                == CachedSessionKey::default()
                    .get_or_read(&world.ports(&second))
                    .await
                    .ok()
                    .unwrap()
        );
    }

    /// A key that another process made is found with one read every five seconds at most.
    #[tokio::test]
    async fn newer_key_of_another_process_is_found_after_five_seconds() {
        let world = World::new();
        let first = KeyDigest::for_key("the first");
        let second = KeyDigest::for_key("another");
        let known = CachedSessionKey::default();
        assert!(
            known
                .newer_key(&world.ports(&first))
                .await
                .unwrap()
                .is_none(),
            "nothing is known yet"
        );
        known.get_or_read(&world.ports(&first)).await.ok().unwrap();
        world.store.delete(CONSOLE_KEY).await.unwrap();
        let other = CachedSessionKey::default()
            .get_or_read(&world.ports(&first))
            .await
            .ok()
            .unwrap();
        assert!(
            known
                .newer_key(&world.ports(&first))
                .await
                .unwrap()
                .is_none(),
            "read a moment ago"
        );
        world.clock.advance(READ_AGAIN_AFTER);
        assert!(known.newer_key(&world.ports(&first)).await.unwrap() == Some(other));
        assert!(
            known
                .newer_key(&world.ports(&second))
                .await
                .unwrap()
                .is_none()
        );
    }

    #[tokio::test]
    async fn a_stored_key_that_cannot_be_used_is_replaced() {
        let world = World::new();
        let admin_key = KeyDigest::for_key("the first");
        for bad in ["", "{}", r#"{"v":1,"key":"short","adminKey":"x"}"#] {
            world.store.write(CONSOLE_KEY, bad);
            let key = CachedSessionKey::default()
                .get_or_read(&world.ports(&admin_key))
                .await
                .ok()
                .unwrap();
            assert!(
                key == CachedSessionKey::default()
                    .get_or_read(&world.ports(&admin_key))
                    .await
                    .ok()
                    .unwrap(),
                "{bad}"
            );
        }
    }
}
