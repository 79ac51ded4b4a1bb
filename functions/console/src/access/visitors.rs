//! The check of visitors: who is signed in, and who may be.

use std::error::Error;
use std::time::Duration;

use axum::http::HeaderMap;
use posthaste_core::api::{AuditCaller, AuditDoor, PeerAddress};
use posthaste_core::model::{ADMIN_KEY_CHARS_MIN, KeyDigest, Timestamp};
use posthaste_ports::{Clock, Entropy, ObjectStore};
use posthaste_services::audit::note_refused_keys;
use posthaste_services::{WrongKeys, timeout};
use tokio::sync::Semaphore;

use super::session_editor::SessionEditor;
use crate::cookie;
use crate::session::{ConsoleSession, SessionKey};
use crate::session_book::{READ_TIME_MAX, SessionBook, SessionListError};
use crate::session_key::{CachedSessionKey, KeyPorts, SessionKeyError};

/// Most forms of sessions that have ended which are read at once. Anybody can send one.
const LOST_FORMS_MAX: usize = 16;

/// Longest time for finding out who is signed in. What a form has can still be given back then.
const FIND_TIME_MAX: Duration = Duration::from_secs(10);

// A store that does not answer is asked twice for the list, and then a known session counts.
const _: () = assert!(READ_TIME_MAX.as_secs() * 2 < FIND_TIME_MAX.as_secs());

/// Sessions of signed-in visitors, and the key that signed them.
pub(super) struct SignedSessions {
    pub(super) key: SessionKey,
    pub(super) sessions: Vec<ConsoleSession>,
}

/// Reasons for which it is not known who is signed in.
#[derive(Debug, thiserror::Error)]
pub(super) enum VisitorError {
    /// The key of sessions could neither be read nor be made.
    #[error("failed to find the key of console sessions")]
    Key(#[from] SessionKeyError),
    /// The list of sessions could not be read.
    #[error("failed to read the list of console sessions")]
    List(#[from] SessionListError),
    /// The store did not answer in time.
    #[error("no answer of the state store within {} s", FIND_TIME_MAX.as_secs())]
    TooSlow,
}

/// Checks visitors: those with the admin key get in.
#[derive(Debug)]
pub struct VisitorAccess<S, C, E> {
    /// The state bucket, which has the key of sessions and the list of those that are open.
    pub(super) state: S,
    pub(super) clock: C,
    pub(super) entropy: E,
    pub(super) admin_key: KeyDigest,
    pub(super) session_key: CachedSessionKey,
    pub(super) sessions: SessionBook,
    pub(super) wrong_keys: WrongKeys,
    /// The forms of sessions that have ended which may be read at once.
    pub(super) lost_forms: Semaphore,
}

impl<S: ObjectStore, C: Clock, E: Entropy> VisitorAccess<S, C, E> {
    /// Access with the admin key of this digest.
    pub fn new(state: S, clock: C, entropy: E, admin_key: KeyDigest) -> Self {
        let lost_forms = Semaphore::new(LOST_FORMS_MAX);
        let session_key = CachedSessionKey::default();
        Self {
            state,
            clock,
            entropy,
            admin_key,
            session_key,
            sessions: SessionBook::default(),
            wrong_keys: WrongKeys::default(),
            lost_forms,
        }
    }

    /// The same, where the response to a wrong key waits for a second. On Lambda that second would
    /// cost money.
    #[must_use]
    pub fn slowing_wrong_keys(self) -> Self {
        Self {
            wrong_keys: WrongKeys::with_pause(),
            ..self
        }
    }

    /// Reads the key of sessions, if there is one, and which of them are open, so that
    /// [`Self::is_signed_in`] knows visitors from before this process.
    pub async fn read_sessions(&self) {
        if let Err(error) = self.session_key.read_if_there(&self.key_ports()).await {
            tracing::warn!(
                error = &error as &dyn Error,
                "the key of console sessions was not read"
            );
        }
        if let Err(error) = self.sessions.read_again(&self.state, &self.clock).await {
            tracing::warn!(
                error = &error as &dyn Error,
                "the list of console sessions was not read"
            );
        }
    }

    /// Whether a request comes from a visitor who is signed in, as far as this process knows. No
    /// store is asked.
    pub fn is_signed_in(&self, headers: &HeaderMap) -> bool {
        let now = self.clock.now();
        self.session_key.cached_key().is_some_and(|key| {
            cookie::signed_in_values(headers)
                .filter_map(|it| ConsoleSession::parse(&it, &key, now))
                .any(|it| it.is_signed_in && self.sessions.is_known_open(it.digest()))
        })
    }

    fn key_ports(&self) -> KeyPorts<'_, S, C, E> {
        let Self {
            state,
            clock,
            entropy,
            admin_key,
            ..
        } = self;
        KeyPorts {
            state,
            clock,
            entropy,
            admin_key,
        }
    }

    /// The key of sessions, and the session of a request if it has one that is open.
    pub(super) async fn find_session(
        &self,
        headers: &HeaderMap,
        now: Timestamp,
    ) -> Result<(SessionKey, Option<ConsoleSession>), VisitorError> {
        let finding = self.look_for_session(headers, now);
        timeout(&self.clock, FIND_TIME_MAX, finding)
            .await
            .unwrap_or(Err(VisitorError::TooSlow))
    }

    async fn look_for_session(
        &self,
        headers: &HeaderMap,
        now: Timestamp,
    ) -> Result<(SessionKey, Option<ConsoleSession>), VisitorError> {
        let key = self.session_key.get_or_read(&self.key_ports()).await?;
        let session = self.open_session(headers, &key, now).await?;
        if session.is_some() || cookie::session_values(headers).next().is_none() {
            return Ok((key, session));
        }
        match self.session_key.newer_key(&self.key_ports()).await? {
            Some(newer) => {
                let session = self.open_session(headers, &newer, now).await?;
                Ok((newer, session))
            }
            None => Ok((key, None)),
        }
    }

    /// The first session of a request that this key signed and that is open. Those of the sign-in
    /// page are in no list.
    async fn open_session(
        &self,
        headers: &HeaderMap,
        key: &SessionKey,
        now: Timestamp,
    ) -> Result<Option<ConsoleSession>, VisitorError> {
        let values: Vec<_> = cookie::session_values(headers).collect();
        for value in values {
            let Some(session) = ConsoleSession::parse(&value, key, now) else {
                continue;
            };
            let id = session.digest();
            if !session.is_signed_in || self.sessions.is_open(&self.state, &self.clock, id).await? {
                return Ok(Some(session));
            }
        }
        Ok(None)
    }

    /// The sessions of signed-in visitors that a request has, whether or not they are open. `None`
    /// if the key of sessions would have to be read from the store.
    pub(super) fn signed_sessions(&self, headers: &HeaderMap) -> Option<SignedSessions> {
        let now = self.clock.now();
        let key = self.session_key.cached_key()?;
        let sessions = cookie::signed_in_values(headers)
            .filter_map(|value| ConsoleSession::parse(&value, &key, now))
            .filter(|session| session.is_signed_in)
            .collect();
        Some(SignedSessions { key, sessions })
    }

    /// Lets sessions count as ended in this process.
    pub(super) fn refuse_sessions(&self, sessions: &[ConsoleSession]) {
        for session in sessions {
            self.sessions.refuse_session(session.digest());
        }
    }

    /// A visitor who is signed in by this session, as the audit trail has it.
    pub(super) fn audit_caller(
        &self,
        peer: Option<PeerAddress>,
        session: &ConsoleSession,
    ) -> AuditCaller {
        AuditCaller::with_admin_key(&self.admin_key, AuditDoor::Console, peer)
            .in_session(session.digest().tag())
    }

    /// Begins and ends sessions.
    pub(super) fn session_editor(&self) -> SessionEditor<'_, S, C, E> {
        SessionEditor {
            state: &self.state,
            clock: &self.clock,
            entropy: &self.entropy,
            book: &self.sessions,
        }
    }

    /// Adds sign-ins with wrong keys to the audit trail.
    pub(super) async fn audit_refused_keys(&self, peer: Option<PeerAddress>, keys: u64) {
        let now = self.clock.now();
        note_refused_keys(&self.state, now, AuditDoor::Console, peer, keys).await;
    }

    /// Whether `offered` is the admin key. On AWS only its digest is known when a stack is made, so
    /// a key that is too short is refused here.
    pub(super) fn is_admin_key(&self, offered: &str) -> bool {
        offered.len() >= ADMIN_KEY_CHARS_MIN && self.admin_key.matches_key(offered)
    }
}
