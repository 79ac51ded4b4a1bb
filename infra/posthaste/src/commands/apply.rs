//! `apply`: topics and subscriptions declared in YAML, put to a running server. Every file is checked whole
//! before anything is sent, by the same rules as the server's, so that a typo leaves nothing half done.

mod changes;
mod file;

use std::path::PathBuf;

use posthaste_core::api::TopicKeysView;
use posthaste_core::model::{Secret, TopicName};
use serde_json::{Value, json};
use ureq::http::Method;

use super::session::Session;
use super::{source, subscriptions};
use crate::client::{Call, Client, ClientError};
use crate::error::{CommandError, Failure};
use crate::output::Reply;

pub use changes::Applied;
use changes::AppliedEntity;
pub(crate) use file::check;
pub use file::{ApplyError, Checked};

/// Topics were applied up to one that the server refused, or that did not reach it.
#[derive(Debug, thiserror::Error)]
#[error("not everything was applied")]
struct PartlyApplied {
    done: Reply,
    source: ClientError,
}

impl Failure for PartlyApplied {
    fn client(&self) -> Option<&ClientError> {
        Some(&self.source)
    }

    fn done(&self) -> Option<&Reply> {
        Some(&self.done)
    }
}

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
        if let Err(source) = put(&session.client, &session.key, file, &mut applied) {
            if applied.entities.is_empty() {
                return Err(source.into());
            }
            // New secrets are shown only once, so they must not be lost with the error.
            return Err(PartlyApplied { done: reply(&applied), source }.into());
        }
    }
    Ok(reply(&applied))
}

/// Puts a checked file's topics, one request each, and adds the results to `applied`, up to the first
/// failure.
pub fn put(client: &Client, key: &Secret, file: &Checked, applied: &mut Applied) -> Result<(), ClientError> {
    for (name, settings) in &file.contents.topics {
        let before = current(client, key, name)?;
        let body = serde_json::to_vec(settings)
            .map_err(|source| ClientError::Answer { url: client.base().clone(), source })?;
        let path = ["topics", name.as_str()];
        let after: Value =
            client.json(Call::new(Method::PUT, &path).key(key).body("application/json", body))?;
        applied.add(name, settings, before.as_ref(), &after);
        if before.is_none() {
            let path = ["topics", name.as_str(), "keys"];
            let keys: TopicKeysView = client.json(Call::new(Method::GET, &path).key(key))?;
            applied.add_keys(name, &keys);
        }
    }
    Ok(())
}

/// The topic as the server shows it now; `None` if it does not exist.
fn current(client: &Client, key: &Secret, name: &TopicName) -> Result<Option<Value>, ClientError> {
    match client.json(Call::new(Method::GET, &["topics", name.as_str()]).key(key)) {
        Ok(topic) => Ok(Some(topic)),
        Err(ClientError::Refused(refusal)) if refusal.status == 404 => Ok(None),
        Err(error) => Err(error),
    }
}

fn reply(applied: &Applied) -> Reply {
    let row = |entity: &AppliedEntity| {
        let subscription = entity.subscription.clone().unwrap_or_default();
        let state = entity.status.as_ref().map(subscriptions::state).unwrap_or_default();
        [entity.topic.clone(), subscription, entity.change.to_string(), state]
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
