//! The open sessions, as one process knows them. A list in the state store says who is signed in; a
//! process reads it again after five seconds, and at once for a session that it does not know.

mod known;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use posthaste_core::model::{FormatError, Timestamp};
use posthaste_core::stored::{CONSOLE_SESSIONS, ConsoleSessions, OpenSession, SessionDigest};
use posthaste_ports::{
    Clock, ETag, ErrorKind, ObjectStore, PortError, PutCondition, RevalidatedObject,
};
use posthaste_services::{ObjectEdit, UpdateError, get_newer, timeout, update_object};

use self::known::{COUNTS_UNREAD_MAX, KnownSessions, ReadList, ReadTime};

/// Longest time for one read of the list. A second one still ends before the visitor is refused
/// for want of an answer.
pub(crate) const READ_TIME_MAX: Duration = Duration::from_secs(3);

/// Error of a list that can neither be read nor be changed. One of a newer version is an error too:
/// it is not empty, and must stay as it is.
pub(crate) type SessionListError = UpdateError<FormatError>;

/// The open sessions, as one process knows them.
#[derive(Debug, Default)]
pub(crate) struct SessionBook(Mutex<KnownSessions>);

/// The sessions of an object.
struct StoredList {
    open: ConsoleSessions,
    /// Whether the object could be used. One that cannot counts as empty: then everybody signs in
    /// again.
    is_usable: bool,
}

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
        match self.read_list(state, clock).await {
            Ok(list) if list.open.find_session(id).is_some() => Ok(!self.0.lock().has_ended(id)),
            Ok(list) => {
                if list.is_usable {
                    self.0.lock().remember_ended(id);
                }
                Ok(false)
            }
            Err(_) if self.counts_unread(clock, id) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Whether a session is open, as far as this process knows. No store is asked.
    pub(crate) fn is_known_open(&self, id: SessionDigest) -> bool {
        self.0.lock().has_open(id)
    }

    /// Lets a session count as ended in this process, though the list may still have it.
    pub(crate) fn refuse_session(&self, id: SessionDigest) {
        self.0.lock().remember_ended(id);
    }

    /// Reads the list, if it has changed, and returns it.
    pub(crate) async fn read_again<S: ObjectStore, C: Clock>(
        &self,
        state: &S,
        clock: &C,
    ) -> Result<Arc<ConsoleSessions>, SessionListError> {
        let list = self.read_list(state, clock).await?;
        Ok(list.open)
    }

    async fn read_list<S: ObjectStore, C: Clock>(
        &self,
        state: &S,
        clock: &C,
    ) -> Result<ReadList, SessionListError> {
        let (read_at, former) = {
            let mut known = self.0.lock();
            (known.begin_read(clock), known.list().cloned())
        };
        let former_etag = former.as_ref().and_then(|list| list.etag.as_ref());
        let mut found = read_newer(state, clock, former_etag).await;
        if found.as_ref().is_err_and(is_worth_a_retry) {
            found = read_newer(state, clock, former_etag).await;
        }
        let list = match (found, former) {
            (Ok(RevalidatedObject::Changed(object)), _) => {
                let list = StoredList::parse(&object.bytes).map_err(UpdateError::Edit)?;
                list.read_at(read_at, Some(object.etag))
            }
            (Ok(RevalidatedObject::Unchanged), Some(former)) => ReadList { read_at, ..former },
            (Ok(RevalidatedObject::Missing | RevalidatedObject::Unchanged), _) => {
                StoredList::missing().read_at(read_at, None)
            }
            (Err(error), _) if error.kind == ErrorKind::Damaged => {
                StoredList::unusable(&error).read_at(read_at, None)
            }
            (Err(error), _) => return Err(UpdateError::Read(error)),
        };
        self.0.lock().keep_list(list.clone());
        Ok(list)
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
        mut edit: impl FnMut(&mut ConsoleSessions) -> Vec<OpenSession> + Send,
    ) -> Result<Vec<OpenSession>, SessionListError> {
        let read_at = self.0.lock().begin_read(clock);
        let mut written = write_list(state, read_at.wall, &mut edit).await;
        if let Err(UpdateError::Read(error)) = &written
            && is_worth_a_retry(error)
        {
            written = write_list(state, read_at.wall, &mut edit).await;
        }
        let mut known = self.0.lock();
        let (changed, etag) = written.inspect_err(|_| known.doubt_list())?;
        for session in &changed.ended {
            known.remember_ended(session.id);
        }
        known.keep_list(ReadList {
            open: Arc::new(changed.open),
            etag,
            is_usable: true,
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

impl StoredList {
    /// Reads the bytes of an object. Fails at those of a newer version.
    fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        match ConsoleSessions::parse(bytes) {
            Ok(open) => Ok(Self {
                open,
                is_usable: true,
            }),
            Err(error @ FormatError::Newer(_)) => Err(error),
            Err(error) => Ok(Self::unusable(&error)),
        }
    }

    /// The list of an installation that has none.
    fn missing() -> Self {
        Self {
            open: ConsoleSessions::default(),
            is_usable: true,
        }
    }

    fn unusable(error: &(impl Error + 'static)) -> Self {
        tracing::error!(
            error = error as &dyn Error,
            "the list of console sessions cannot be used; operators sign in again"
        );
        Self {
            is_usable: false,
            ..Self::missing()
        }
    }

    fn read_at(self, read_at: ReadTime, etag: Option<ETag>) -> ReadList {
        ReadList {
            open: Arc::new(self.open),
            etag,
            is_usable: self.is_usable,
            read_at,
        }
    }
}

/// Reads the list, unless it still is of the version that is known. A store that does not answer is
/// not waited for.
async fn read_newer<S: ObjectStore, C: Clock>(
    state: &S,
    clock: &C,
    known: Option<&ETag>,
) -> Result<RevalidatedObject, PortError> {
    let read = get_newer(state, CONSOLE_SESSIONS, known);
    timeout(clock, READ_TIME_MAX, read)
        .await
        .unwrap_or_else(|| {
            let doing = "read the list of console sessions";
            Err(PortError::new(doing, ErrorKind::TimedOut))
        })
}

/// Writes the list as `edit` changes it, without the sessions whose time is over. A damaged one is
/// replaced.
async fn write_list<S: ObjectStore>(
    state: &S,
    now: Timestamp,
    edit: &mut (impl FnMut(&mut ConsoleSessions) -> Vec<OpenSession> + Send),
) -> Result<(ChangedList, Option<ETag>), SessionListError> {
    let update = update_object(state, CONSOLE_SESSIONS, |found| {
        let list = found.map(|object| StoredList::parse(&object.bytes));
        let list = list.unwrap_or_else(|| Ok(StoredList::missing()))?;
        let changed = ChangedList::edit(list.open.without_ended(now), edit);
        Ok(ObjectEdit::Write(changed.open.render(), changed))
    });
    let updated = Box::pin(update).await;
    match updated {
        Err(UpdateError::Read(error)) if error.kind == ErrorKind::Damaged => {
            let list = StoredList::unusable(&error);
            let changed = ChangedList::edit(list.open, edit);
            let bytes = changed.open.render();
            let put = state.put(CONSOLE_SESSIONS, bytes, PutCondition::Always);
            let etag = Box::pin(put).await.map_err(UpdateError::Write)?;
            Ok((changed, Some(etag)))
        }
        updated => updated.map(|updated| (updated.answer, updated.etag)),
    }
}

/// Whether a second read may succeed where one failed with this error.
fn is_worth_a_retry(error: &PortError) -> bool {
    error.kind != ErrorKind::Damaged
}
