//! `apply`: topics and subscriptions declared in YAML, put to a running server. Every file is
//! checked whole before anything is sent, by the same rules as the server's, so that a typo leaves
//! nothing half done.

mod changes;
mod file;
mod keys;
mod notices;
mod parallel;
mod plan;
mod prune;
mod report;
mod server;

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::slice;

use posthaste_core::api::{MemberChange, TopicKeysView, TopicSettings};
use posthaste_core::model::TopicName;
use posthaste_ports::Clock;
use posthaste_system::SystemClock;

use super::patch::PatchError;
use super::session::AdminSession;
use super::source;
use crate::client::ClientError;
use crate::error::{CommandError, CommandFailure};
use crate::output::CommandReply;
use crate::terminal::tell_user;
use crate::yaml::FileMistakes;

pub use changes::ApplyResult;
pub use file::CheckedFile;
pub(crate) use file::check_file;
use file::{DeclaredTopic, check_part, declared_topics};
use prune::UndeclaredEntities;
use server::{ServerTopics, VersionedTopic, read_current_topic, replace_topic, show_made_secrets};

/// Most tries to put a topic that others change at the same time.
const TRIES_MAX: u32 = 5;

/// Error after some topics were applied: the server refused the next one, or it did not reach the
/// server.
#[derive(Debug, thiserror::Error)]
#[error("not everything was applied")]
struct PartlyApplied {
    source: ApplyError,
}

/// Error of a topic that was not applied.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The server refused it, or was not reached.
    #[error("{0}")]
    Client(#[from] ClientError),
    /// The members that are named of it cannot be laid over what the server has.
    #[error("{0}")]
    Patch(#[from] PatchError),
}

impl CommandFailure for ApplyError {
    fn exit_code(&self) -> Option<u8> {
        match self {
            Self::Client(error) => error.exit_code(),
            Self::Patch(error) => error.exit_code(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Client(error) => error.hint(),
            Self::Patch(error) => error.hint(),
        }
    }
}

impl CommandFailure for PartlyApplied {}

/// Reads and checks files, each by itself and all together. The error has the mistakes of all of
/// them.
pub fn check_files(paths: &[PathBuf]) -> Result<Vec<CheckedFile>, CommandError> {
    check_files_by(paths, check_file)
}

/// The same of files of which the members that are named are written.
pub fn check_parts_of_files(paths: &[PathBuf]) -> Result<Vec<CheckedFile>, CommandError> {
    check_files_by(paths, check_part)
}

fn check_files_by(
    paths: &[PathBuf],
    check: impl Fn(&Path, &[u8]) -> Result<CheckedFile, FileMistakes>,
) -> Result<Vec<CheckedFile>, CommandError> {
    let mut files = Vec::with_capacity(paths.len());
    let mut mistakes = Vec::new();
    for path in paths {
        let text = source::read_input(path)?;
        match check(path, &text) {
            Ok(checked) => {
                mistakes.extend(file::declared_twice(&files, &checked, &text));
                files.push(checked);
            }
            Err(found) => mistakes.extend(found.0),
        }
    }
    if mistakes.is_empty() {
        Ok(files)
    } else {
        Err(FileMistakes(mistakes).into())
    }
}

/// Work beside writing what the files declare.
#[derive(Debug, Clone, Copy, Default)]
pub struct ApplyOptions {
    /// Only say what would change.
    pub dry_run: bool,
    /// Delete topics, and subscriptions of theirs, that no file declares.
    pub prune: bool,
    /// Whether a person has confirmed what that gives up.
    pub is_confirmed: bool,
}

/// Applies checked files, or says what that would change.
pub fn run(
    session: &AdminSession,
    files: &[CheckedFile],
    way: ApplyOptions,
) -> Result<CommandReply, CommandError> {
    // A list leaves out what only a newer server knows, and a part is laid over all that is there.
    let is_part = files.iter().any(CheckedFile::is_part);
    let declared = files.iter().map(|file| file.contents.topics.len()).sum();
    let declared = if is_part { 0 } else { declared };
    let present = ServerTopics::read(session, declared, way.prune)?;
    file::check_parts(session, &present, files)?;
    warn_of_missing_topics(session, &present, files);
    let surplus = if way.prune {
        UndeclaredEntities::find(session, &present, files)?
    } else {
        UndeclaredEntities::default()
    };
    if way.dry_run {
        return preview_changes(session, &present, files, &surplus);
    }
    surplus.confirm_deletion(session, way.is_confirmed)?;
    write_changes(session, &present, files, &surplus)
}

/// Writes what differs, and deletes what no file declares once all of that is written.
fn write_changes(
    session: &AdminSession,
    present: &ServerTopics,
    files: &[CheckedFile],
    surplus: &UndeclaredEntities,
) -> Result<CommandReply, CommandError> {
    let mut applied = ApplyResult::default();
    let done = put_all(session, present, files, &mut applied)
        .and_then(|()| Ok(surplus.delete_all(session, &mut applied)?));
    match done {
        Ok(()) => Ok(report::applied_reply(&applied)),
        Err(source) if applied.entities.is_empty() => Err(source.into()),
        // New secrets are shown only once, so they must not be lost with the error.
        Err(source) => {
            Err(CommandError::from(PartlyApplied { source })
                .with_done(report::applied_reply(&applied)))
        }
    }
}

/// Warns of notices topics that do not exist. If the server cannot be asked, the requests after
/// this one say why.
fn warn_of_missing_topics(session: &AdminSession, present: &ServerTopics, files: &[CheckedFile]) {
    let warnings = notices::missing_topic_warnings(files, |topic| {
        let found = present.read_topic(session, topic);
        found.map(|found| found.is_some())
    });
    for warning in warnings {
        tell_user(&format!("warning: {warning}"));
    }
}

fn preview_changes(
    session: &AdminSession,
    present: &ServerTopics,
    files: &[CheckedFile],
    surplus: &UndeclaredEntities,
) -> Result<CommandReply, CommandError> {
    let mut planned = ApplyResult::default();
    for wanted in declared_topics(files) {
        let added = plan::add_planned_topic(session, present, wanted, &mut planned);
        added.map_err(|error| error.with_done(report::planned_reply(&planned)))?;
    }
    surplus.add_to_plan(&mut planned);
    Ok(report::planned_reply(&planned))
}

/// A topic that was put, or is as it is wanted.
struct TopicWrite<'a> {
    /// The settings that were to be written.
    settings: Cow<'a, TopicSettings>,
    before: Option<VersionedTopic>,
    /// `None` where nothing was to be written.
    after: Option<VersionedTopic>,
    /// The publish keys that the write changed.
    key_changes: Vec<MemberChange>,
    /// Of a topic that is new. The secrets that its creation made are shown also where these cannot
    /// be read.
    keys: Option<Result<TopicKeysView, ClientError>>,
}

/// Puts a checked file's topics, as `apply` of the file does, and adds the results to `applied`,
/// also where one fails.
pub fn apply_file(
    session: &AdminSession,
    file: &CheckedFile,
    applied: &mut ApplyResult,
) -> Result<(), ApplyError> {
    let present = ServerTopics::read(session, file.contents.topics.len(), false)?;
    put_all(session, &present, slice::from_ref(file), applied)
}

/// Puts the topics of checked files, several at once, and adds the results to `applied` in the order
/// of the files. After the first failure no other one begins.
fn put_all(
    session: &AdminSession,
    present: &ServerTopics,
    files: &[CheckedFile],
    applied: &mut ApplyResult,
) -> Result<(), ApplyError> {
    let topics: Vec<_> = declared_topics(files).collect();
    let all = parallel::run_each(&topics, |wanted| put_topic(session, present, *wanted));
    let mut failure = all.failure;
    for (wanted, put) in topics.iter().zip(all.done) {
        if let Some(put) = put {
            add_put(applied, wanted.name, &put);
            let of_keys = put.keys.and_then(Result::err);
            failure = failure.or(of_keys.map(ApplyError::Client));
        }
    }
    failure.map_or(Ok(()), Err)
}

/// Puts a topic in the place of the one that was read, so that the difference is what this write
/// changed. If another one came between, both are made again.
fn put_topic<'a>(
    session: &AdminSession,
    present: &ServerTopics,
    wanted: DeclaredTopic<'a>,
) -> Result<TopicWrite<'a>, ApplyError> {
    let name = wanted.name;
    let mut present = present.read_topic(session, name)?;
    let mut settings = wanted.resolve_settings(present.as_ref())?;
    // What was there before a write whose answer was lost.
    let mut before_doubt = None;
    let mut key_changes = Vec::new();
    let mut tries = 1;
    let mut after = loop {
        if let Some(present) = &present {
            let changes = keys::pending_changes(session, name, &settings)?;
            let is_there = changes.is_empty()
                && plan::is_as_written(name, &settings, &present.topic, SystemClock.now());
            if before_doubt.is_none() {
                key_changes = changes;
            }
            if is_there {
                break None;
            }
        }
        match replace_topic(session, name, &settings, present.as_ref()) {
            Err(ClientError::Refused(refusal)) if refusal.status == 412 && tries < TRIES_MAX => {
                tries += 1;
                let newer = read_current_topic(session, name)?;
                let is_own = refusal.follows_doubt
                    && newer.as_ref().is_some_and(|newer| {
                        let now = SystemClock.now();
                        plan::is_unchanged_by_write(name, &settings, &newer.topic, now)
                    });
                let former = std::mem::replace(&mut present, newer);
                if refusal.follows_doubt && before_doubt.is_none() {
                    before_doubt = Some(former);
                }
                if !is_own {
                    settings = wanted.resolve_settings(present.as_ref())?;
                }
            }
            after => break Some(after?),
        }
    };
    let before = match before_doubt {
        Some(before) => {
            let mut shown = after.or(present);
            if let Some(shown) = &mut shown {
                show_made_secrets(session, name, before.as_ref(), shown);
            }
            after = shown;
            before
        }
        None => present,
    };
    let keys = match before {
        None => Some(keys::of_topic(session, name)),
        Some(_) => None,
    };
    Ok(TopicWrite {
        settings,
        before,
        after,
        key_changes,
        keys,
    })
}

/// Adds a topic that was put.
fn add_put(applied: &mut ApplyResult, name: &TopicName, put: &TopicWrite<'_>) {
    let settings = put.settings.as_ref();
    let before = put.before.as_ref();
    let Some(after) = put.after.as_ref().or(before) else {
        return;
    };
    applied.add_topic(name, settings, before.map(|it| &it.topic), &after.topic);
    if before.is_some() {
        applied.add_key_changes(name, &put.key_changes);
    }
    if let Some(is_same_version) = before.and_then(|before| before.is_same_version(after)) {
        applied.note_version_change(name, is_same_version);
    }
    if let Some(Ok(keys)) = &put.keys {
        applied.add_keys(name, settings, keys);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_mistakes_of_all_files_are_named_before_anything_is_sent() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let paths = [
            write("a.yaml", "topics: { orders: { filters: {} } }"),
            write("b.yaml", "topics: { parcels: {} }"),
            write(
                "c.yaml",
                "topics: { parcels: {}, Orders: { inputSchema: Eventgrid } }",
            ),
            write("d.yaml", "topics: { PARCELS: {} }"),
            write("e.yaml", "topics: ["),
        ];
        let report = check_files(&paths)
            .unwrap_err()
            .report()
            .replace(&folder.path().display().to_string(), "");
        let lines: Vec<_> = report.lines().collect();
        assert_eq!(lines.len(), 5, "{report}");
        let is_at = |line: usize, start: &str| assert!(lines[line].starts_with(start), "{report}");
        is_at(0, "error: 4 mistakes");
        is_at(
            1,
            "  /a.yaml:1:21: topics.orders.filters: unknown member `filters`, expected one of",
        );
        is_at(
            2,
            "  /c.yaml:1:47: topics.Orders.inputSchema: unknown word, did you mean `EventGrid`?",
        );
        is_at(
            3,
            "  /d.yaml:1:11: topics.PARCELS: the topic is declared in /b.yaml too",
        );
        is_at(4, "  /e.yaml:1:");
        assert!(check_files(&paths[1..2]).is_ok());
    }
}
