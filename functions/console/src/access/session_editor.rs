//! Sessions begin and end, each with its entry in the audit trail. The entry is written before the
//! change, and its end before the response.

use posthaste_core::api::{AuditAction, AuditCaller, AuditEntry, AuditOutcome};
use posthaste_core::stored::{OPEN_SESSIONS_MAX, OpenSession, SessionDigest};
use posthaste_ports::{Clock, Entropy, ObjectStore};
use posthaste_services::UpdateError;
use posthaste_services::audit::{begin_change, end_change, own_entry};

use crate::session_book::{SessionBook, SessionListError};

/// The target of an entry where all sessions end.
const ALL_SESSIONS: &str = "all sessions";

/// Begins and ends sessions.
pub(super) struct SessionEditor<'a, S, C, E> {
    pub(super) state: &'a S,
    pub(super) clock: &'a C,
    pub(super) entropy: &'a E,
    pub(super) book: &'a SessionBook,
}

/// The sessions that are to end.
#[derive(Debug, Clone)]
pub(super) enum EndingSessions {
    /// The one of this digest.
    One(SessionDigest),
    /// Those that have this tag.
    Tagged(String),
    All,
}

impl EndingSessions {
    fn includes(&self, session: &OpenSession) -> bool {
        match self {
            Self::One(id) => session.id == *id,
            Self::Tagged(tag) => session.id.tag() == *tag,
            Self::All => true,
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::One(id) => id.tag(),
            Self::Tagged(tag) => tag.clone(),
            Self::All => ALL_SESSIONS.to_owned(),
        }
    }
}

impl<S: ObjectStore, C: Clock, E: Entropy> SessionEditor<'_, S, C, E> {
    /// Signs a visitor in. The oldest sessions end where too many are open.
    pub(super) async fn begin_session(
        &self,
        caller: AuditCaller,
        session: OpenSession,
    ) -> Result<(), SessionListError> {
        let entry = self.new_entry(caller, AuditAction::SignIn);
        self.write_begun(&entry).await?;
        let added = self.book.add_session(self.state, self.clock, session).await;
        self.write_end(entry, &added).await;
        for oldest in added? {
            let entry = own_entry(self.clock, self.entropy, AuditAction::SignOut)
                .of_target(&oldest.id.tag())
                .with_detail(&format!("more than {OPEN_SESSIONS_MAX} sessions were open"));
            end_change(self.state, entry, AuditOutcome::Done).await;
        }
        Ok(())
    }

    /// Ends sessions. Returns the number of those that were open until now.
    pub(super) async fn end_sessions(
        &self,
        caller: AuditCaller,
        meant: &EndingSessions,
    ) -> Result<usize, SessionListError> {
        let entry = self.new_entry(caller, AuditAction::SignOut);
        let entry = entry.of_target(&meant.describe());
        self.write_begun(&entry).await?;
        let ending = self
            .book
            .end_sessions(self.state, self.clock, |session| meant.includes(session));
        let ended = ending.await;
        let entry = match &ended {
            Ok(ended) => entry.with_detail(&format!("{} ended", ended.len())),
            Err(_) => entry,
        };
        self.write_end(entry, &ended).await;
        Ok(ended?.len())
    }

    fn new_entry(&self, caller: AuditCaller, action: AuditAction) -> AuditEntry {
        let id = self.entropy.uuid().simple().to_string();
        AuditEntry::new(id, self.clock.now(), caller, action)
    }

    async fn write_begun(&self, entry: &AuditEntry) -> Result<(), SessionListError> {
        let written = begin_change(self.state, entry).await;
        written.map_err(UpdateError::Write)
    }

    async fn write_end<T>(&self, entry: AuditEntry, changed: &Result<T, SessionListError>) {
        let outcome = if changed.is_ok() {
            AuditOutcome::Done
        } else {
            AuditOutcome::Failed
        };
        end_change(self.state, entry, outcome).await;
    }
}
