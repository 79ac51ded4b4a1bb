//! `apply`: topics and subscriptions declared in YAML, put to a running server. Every file is checked whole
//! before anything is sent, by the same rules as the server's, so that a typo leaves nothing half done.

mod changes;
mod file;
mod notices;

use std::io::{self, Write as _};
use std::path::PathBuf;

use posthaste_core::model::TopicName;
use serde_json::{Value, json};
use ureq::http::Method;

use super::session::Session;
use super::{source, subscriptions};
use crate::client::ClientError;
use crate::error::{CommandError, Failure};
use crate::output::{Reply, word};
use crate::yaml::Mistakes;

pub use changes::Applied;
use changes::AppliedEntity;
pub use file::Checked;
pub(crate) use file::check;

/// Error after some topics were applied: the server refused the next one, or it did not reach the server.
#[derive(Debug, thiserror::Error)]
#[error("not everything was applied")]
struct PartlyApplied {
    source: ClientError,
}

impl Failure for PartlyApplied {}

/// Reads and checks files, each by itself and all together. The error has the mistakes of all of them.
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
    if mistakes.is_empty() { Ok(files) } else { Err(Mistakes(mistakes).into()) }
}

pub(crate) fn run(session: &Session, files: &[Checked]) -> Result<Reply, CommandError> {
    warn_of_missing_topics(session, files);
    let mut applied = Applied::default();
    for file in files {
        if let Err(source) = put(session, file, &mut applied) {
            if applied.entities.is_empty() {
                return Err(source.into());
            }
            // New secrets are shown only once, so they must not be lost with the error.
            return Err(CommandError::from(PartlyApplied { source }).after(reply(&applied)));
        }
    }
    Ok(reply(&applied))
}

/// Warns of notices topics that do not exist. If the server does not say so, the requests after this one do.
fn warn_of_missing_topics(session: &Session, files: &[Checked]) {
    let is_on_server = |topic: &TopicName| !matches!(current(session, topic), Ok(None));
    for warning in notices::warnings(files, is_on_server) {
        // With standard error closed, no one reads the warning.
        let _ = writeln!(io::stderr(), "warning: {warning}");
    }
}

/// Puts a checked file's topics, one request each, and adds the results to `applied`, up to the first
/// failure.
pub fn put(session: &Session, file: &Checked, applied: &mut Applied) -> Result<(), ClientError> {
    let client = &session.client;
    for (name, settings) in &file.contents.topics {
        let before = current(session, name)?;
        let body = serde_json::to_vec(settings)
            .map_err(|source| ClientError::Answer { url: client.base().clone(), source })?;
        let path = ["topics", name.as_str()];
        let after: Value = client.json(session.call(Method::PUT, &path).body("application/json", body))?;
        applied.add(name, settings, before.as_ref(), &after);
        if before.is_none() {
            applied.add_keys(name, &session.ask(Method::GET, &["topics", name.as_str(), "keys"])?);
        }
    }
    Ok(())
}

/// The topic as the server shows it now; `None` if it does not exist.
fn current(session: &Session, name: &TopicName) -> Result<Option<Value>, ClientError> {
    match session.ask(Method::GET, &["topics", name.as_str()]) {
        Ok(topic) => Ok(Some(topic)),
        Err(ClientError::Refused(refusal)) if refusal.status == 404 => Ok(None),
        Err(error) => Err(error),
    }
}

fn reply(applied: &Applied) -> Reply {
    let row = |entity: &AppliedEntity| {
        let subscription = entity.subscription.clone().unwrap_or_default();
        let state = entity.status.as_ref().map(subscriptions::state).unwrap_or_default();
        [entity.topic.clone(), subscription, word(&entity.change), state]
    };
    let json = json!({ "applied": applied.entities, "new": applied.secrets });
    let mut reply = Reply::new(json)
        .table(["topic", "subscription", "result", "state"], applied.entities.iter().map(row).collect());
    if !applied.secrets.is_empty() {
        reply = reply.line("\nNew keys and secrets. Signing secrets are shown this once; keep them:");
        let rows = applied.secrets.iter().map(|new| [new.of.clone(), new.kind.to_owned(), new.value.clone()]);
        reply = reply.table(["of", "kind", "value"], rows.collect());
    }
    reply
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
            write("c.yaml", "topics: { parcels: {}, Orders: { inputSchema: Eventgrid } }"),
            write("d.yaml", "topics: { PARCELS: {} }"),
            write("e.yaml", "topics: ["),
        ];
        let report =
            check_files(&paths).unwrap_err().report().replace(&folder.path().display().to_string(), "");
        let lines: Vec<_> = report.lines().collect();
        assert_eq!(lines.len(), 5, "{report}");
        let is_at = |line: usize, start: &str| assert!(lines[line].starts_with(start), "{report}");
        is_at(0, "error: 4 mistakes");
        is_at(1, "  /a.yaml:1:21: topics.orders.filters: unknown member `filters`, expected one of");
        is_at(2, "  /c.yaml:1:47: topics.Orders.inputSchema: unknown word, did you mean `EventGrid`?");
        is_at(3, "  /d.yaml:1:11: topics.PARCELS: the topic is declared in /b.yaml too");
        is_at(4, "  /e.yaml:1:");
        assert!(check_files(&paths[1..2]).is_ok());
    }
}
