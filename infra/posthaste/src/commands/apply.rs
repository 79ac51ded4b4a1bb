//! `apply`: topics and subscriptions declared in YAML, put to a running server. Every file is
//! checked whole before anything is sent, by the same rules as the server's, so that a typo leaves
//! nothing half done.

mod changes;
mod file;
mod notices;
mod plan;
mod report;
mod server;

use std::path::PathBuf;

use posthaste_core::api::TopicSettings;
use posthaste_core::model::TopicName;
use posthaste_ports::Clock;
use posthaste_system::SystemClock;
use ureq::http::Method;

use super::session::Session;
use super::source;
use crate::client::ClientError;
use crate::error::{CommandError, Failure};
use crate::output::Reply;
use crate::terminal::tell;
use crate::yaml::Mistakes;

pub use changes::Applied;
pub use file::Checked;
pub(crate) use file::check;
use server::{current, replace};

/// Most tries to put a topic that others change at the same time.
const TRIES_MAX: u32 = 5;

/// Error after some topics were applied: the server refused the next one, or it did not reach the
/// server.
#[derive(Debug, thiserror::Error)]
#[error("not everything was applied")]
struct PartlyApplied {
    source: ClientError,
}

impl Failure for PartlyApplied {}

/// Reads and checks files, each by itself and all together. The error has the mistakes of all of
/// them.
pub fn check_files(paths: &[PathBuf]) -> Result<Vec<Checked>, CommandError> {
    let (mut files, mut mistakes) = (Vec::with_capacity(paths.len()), Vec::new());
    for path in paths {
        let text = source::read(path)?;
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
        Err(Mistakes(mistakes).into())
    }
}

/// Applies checked files, or says what that would change.
pub(crate) fn run(
    session: &Session,
    files: &[Checked],
    dry_run: bool,
) -> Result<Reply, CommandError> {
    warn_of_missing_topics(session, files);
    if dry_run {
        plan(session, files)
    } else {
        apply(session, files)
    }
}

fn apply(session: &Session, files: &[Checked]) -> Result<Reply, CommandError> {
    let mut applied = Applied::default();
    for file in files {
        if let Err(source) = put(session, file, &mut applied) {
            if applied.entities.is_empty() {
                return Err(source.into());
            }
            // New secrets are shown only once, so they must not be lost with the error.
            return Err(CommandError::from(PartlyApplied { source }).after(report::done(&applied)));
        }
    }
    Ok(report::done(&applied))
}

/// Warns of notices topics that do not exist. If the server cannot be asked, the requests after
/// this one say why.
fn warn_of_missing_topics(session: &Session, files: &[Checked]) {
    let is_on_server = |topic: &TopicName| current(session, topic).map(|found| found.is_some());
    for warning in notices::warnings(files, is_on_server) {
        tell(&format!("warning: {warning}"));
    }
}

fn plan(session: &Session, files: &[Checked]) -> Result<Reply, CommandError> {
    let mut planned = Applied::default();
    for (name, settings) in files.iter().flat_map(|file| &file.contents.topics) {
        let added = plan::add(session, name, settings, SystemClock.now(), &mut planned);
        added.map_err(|error| error.after(report::planned(&planned)))?;
    }
    Ok(report::planned(&planned))
}

/// Puts a checked file's topics, one after the other, and adds the results to `applied`, up to the
/// first failure.
pub fn put(session: &Session, file: &Checked, applied: &mut Applied) -> Result<(), ClientError> {
    file.contents
        .topics
        .iter()
        .try_for_each(|(name, settings)| put_topic(session, name, settings, applied))
}

/// Puts a topic in the place of the one that was read, so that the difference is what this write
/// changed. If another one came between, both are made again.
fn put_topic(
    session: &Session,
    name: &TopicName,
    settings: &TopicSettings,
    applied: &mut Applied,
) -> Result<(), ClientError> {
    let mut tries = 1;
    let (before, after) = loop {
        let before = current(session, name)?;
        match replace(session, name, settings, before.as_ref()) {
            Err(ClientError::Refused(refusal)) if refusal.status == 412 && tries < TRIES_MAX => {
                tries += 1;
            }
            after => break (before, after?),
        }
    };
    applied.add(
        name,
        settings,
        before.as_ref().map(|before| &before.topic),
        &after.topic,
    );
    if let Some(is_same_version) = before
        .as_ref()
        .and_then(|before| before.is_same_version(&after))
    {
        applied.settle(name, is_same_version);
    }
    if before.is_none() {
        applied.add_keys(
            name,
            &session.ask(Method::GET, &["topics", name.as_str(), "keys"])?,
        );
    }
    Ok(())
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
