//! The open sessions, as one process knows them. A list in the state store says who is signed in; a
//! process reads it again after five seconds, and at once for a session that it does not know.

mod known;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;

use parking_lot::Mutex;
use posthaste_core::stored::{CONSOLE_SESSIONS, ConsoleSessions, OpenSession, SessionDigest};
use posthaste_ports::{
    Clock, ETag, ErrorKind, ObjectStore, PortError, PutCondition, RevalidatedObject, StoredObject,
};
use posthaste_services::{ObjectEdit, UpdateError, get_newer, update_object};

use self::known::{COUNTS_UNREAD_MAX, KnownSessions, ReadList, ReadTime};

/// Error of a list that can neither be read nor be changed.
pub(crate) type SessionListError = UpdateError<Infallible>;

/// The open sessions, as one process knows them.
#[derive(Debug, Default)]
pub(crate) struct SessionBook(Mutex<KnownSessions>);

/// The list after a change, with the sessions that the change ended.
struct ChangedList {
    open: ConsoleSessions,
    ended: Vec<OpenSession>,
}

impl SessionBook {
    /// Whether a session with a valid cookie is open.
    pub(crate) async fn is_open<S: ObjectStore, C: Clock>(
        &self,
        state: &S,
        clock: &C,
        id: SessionDigest,
    ) -> Result<bool, SessionListError> {
        if let Some(is_open) = self.recent_answer(clock, id) {
            return Ok(is_open);
        }
        match self.read_again(state, clock).await {
            Ok(list) if list.find_session(id).is_some() => Ok(!self.0.lock().has_ended(id)),
            Ok(_) => {
                self.0.lock().remember_ended(id);
                Ok(false)
            }
            Err(_) if self.counts_unread(clock, id) => Ok(true),
            Err(error) => Err(UpdateError::Read(error)),
        }
    }

    /// Whether a session is open, as far as this process knows. No store is asked.
    pub(crate) fn is_known_open(&self, id: SessionDigest) -> bool {
        self.0.lock().has_open(id)
    }

    /// Reads the list, if it has changed, and returns it.
    pub(crate) async fn read_again<S: ObjectStore, C: Clock>(
        &self,
        state: &S,
        clock: &C,
    ) -> Result<Arc<ConsoleSessions>, PortError> {
        let read_at = ReadTime::now(clock);
        let former = self.0.lock().list().cloned();
        let former_etag = former.as_ref().and_then(|list| list.etag.as_ref());
        let found = match get_newer(state, CONSOLE_SESSIONS, former_etag).await {
            Err(error) if error.kind == ErrorKind::Damaged => {
                report_unusable(&error);
                RevalidatedObject::Missing
            }
            found => found?,
        };
        let (open, etag) = match (found, former) {
            (RevalidatedObject::Changed(object), _) => {
                (Arc::new(usable_list(&object)), Some(object.etag))
            }
            (RevalidatedObject::Unchanged, Some(former)) => (former.open, former.etag),
            (RevalidatedObject::Missing | RevalidatedObject::Unchanged, _) => Default::default(),
        };
        self.0.lock().keep_list(ReadList {
            open: Arc::clone(&open),
            etag,
            read_at,
        });
        Ok(open)
    }

    /// Adds a session that begins. Returns the oldest ones, which ended for want of room.
    pub(crate) async fn add_session<S: ObjectStore, C: Clock>(
        &self,
        state: &S,
        clock: &C,
        session: OpenSession,
    ) -> Result<Vec<OpenSession>, SessionListError> {
        self.change_list(state, clock, |list| list.add_session(session.clone()))
            .await
    }

    /// Ends sessions. Returns those that were open until now.
    pub(crate) async fn end_sessions<S: ObjectStore, C: Clock>(
        &self,
        state: &S,
        clock: &C,
        is_meant: impl Fn(&OpenSession) -> bool + Send + Sync,
    ) -> Result<Vec<OpenSession>, SessionListError> {
        self.change_list(state, clock, |list| list.end_sessions(&is_meant))
            .await
    }

    /// Changes the list in the store. What became of a change that fails is not known, so the
    /// next request reads the list.
    async fn change_list<S: ObjectStore, C: Clock>(
        &self,
        state: &S,
        clock: &C,
        edit: impl FnMut(&mut ConsoleSessions) -> Vec<OpenSession> + Send,
    ) -> Result<Vec<OpenSession>, SessionListError> {
        let read_at = ReadTime::now(clock);
        let written = write_list(state, read_at, edit).await;
        let mut known = self.0.lock();
        let (changed, etag) = written.inspect_err(|_| known.doubt_list())?;
        for session in &changed.ended {
            known.remember_ended(session.id);
        }
        known.keep_list(ReadList {
            open: Arc::new(changed.open),
            etag,
            read_at,
        });
        Ok(changed.ended)
    }

    /// The answer of what was read a moment ago. `None` if the list is to be read.
    fn recent_answer(&self, clock: &impl Clock, id: SessionDigest) -> Option<bool> {
        let known = self.0.lock();
        if known.has_ended(id) {
            return Some(false);
        }
        (known.is_recent(clock) && known.has_open(id)).then_some(true)
    }

    /// Whether a session counts as open though the list cannot be read.
    fn counts_unread(&self, clock: &impl Clock, id: SessionDigest) -> bool {
        let known = self.0.lock();
        known.is_younger_than(COUNTS_UNREAD_MAX, clock) && known.has_open(id)
    }
}

impl ChangedList {
    fn edit(
        mut open: ConsoleSessions,
        edit: &mut impl FnMut(&mut ConsoleSessions) -> Vec<OpenSession>,
    ) -> Self {
        let ended = edit(&mut open);
        Self { open, ended }
    }
}

/// Writes the list as `edit` changes it, without the sessions whose time is over. A damaged one is
/// replaced.
async fn write_list<S: ObjectStore>(
    state: &S,
    read_at: ReadTime,
    mut edit: impl FnMut(&mut ConsoleSessions) -> Vec<OpenSession> + Send,
) -> Result<(ChangedList, Option<ETag>), SessionListError> {
    let update = update_object(state, CONSOLE_SESSIONS, |found| {
        let open = found.as_ref().map(usable_list).unwrap_or_default();
        let changed = ChangedList::edit(open.without_ended(read_at.wall), &mut edit);
        Ok(ObjectEdit::Write(changed.open.render(), changed))
    });
    let updated = Box::pin(update).await;
    match updated {
        Err(UpdateError::Read(error)) if error.kind == ErrorKind::Damaged => {
            report_unusable(&error);
            let changed = ChangedList::edit(ConsoleSessions::default(), &mut edit);
            let bytes = changed.open.render();
            let put = state.put(CONSOLE_SESSIONS, bytes, PutCondition::Always);
            let etag = Box::pin(put).await.map_err(UpdateError::Write)?;
            Ok((changed, Some(etag)))
        }
        updated => updated.map(|updated| (updated.answer, updated.etag)),
    }
}

/// The sessions of an object. One that cannot be used has none: then everybody signs in again.
fn usable_list(object: &StoredObject) -> ConsoleSessions {
    ConsoleSessions::parse(&object.bytes)
        .inspect_err(report_unusable)
        .unwrap_or_default()
}

fn report_unusable(error: &(impl Error + 'static)) {
    tracing::error!(
        error = error as &dyn Error,
        "the list of console sessions cannot be used; operators sign in again"
    );
}
