//! `apply`: topics and subscriptions declared in YAML, put to a running server. Every file is checked whole
//! before anything is sent, by the same rules as the server's, so that a typo leaves nothing half done.

mod changes;
mod file;

use std::path::PathBuf;

use posthaste_core::model::TopicName;
use serde_json::{Value, json};
use ureq::http::Method;

use super::session::Session;
use super::{source, subscriptions};
use crate::client::ClientError;
use crate::error::{CommandError, Failure};
use crate::output::{Reply, word};

pub use changes::Applied;
use changes::AppliedEntity;
pub(crate) use file::check;
pub use file::{ApplyError, Checked};

/// Error after some topics were applied: the server refused the next one, or it did not reach the server.
#[derive(Debug, thiserror::Error)]
#[error("not everything was applied")]
struct PartlyApplied {
    source: ClientError,
}

impl Failure for PartlyApplied {}

/// Reads and checks files, each by itself and all together.
pub fn check_files(paths: &[PathBuf]) -> Result<Vec<Checked>, CommandError> {
    let mut files: Vec<Checked> = Vec::with_capacity(paths.len());
    for path in paths {
        let checked = check(path, &source::read(path)?)?;
        if let Some(error) = file::declared_twice(&files, &checked) {
            return Err(error.into());
        }
        files.push(checked);
    }
    Ok(files)
}

pub(crate) fn run(session: &Session, files: &[Checked]) -> Result<Reply, CommandError> {
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
