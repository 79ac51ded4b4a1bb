//! `check`: what the database of a data folder holds, and what of it is damaged.

use std::panic;
use std::path::{Path, PathBuf};

use posthaste_local::{CheckReport, OpenError};
use serde_json::json;

use crate::error::{CommandError, CommandFailure};
use crate::output::CommandReply;

/// Error of a data folder that cannot be checked.
#[derive(Debug, thiserror::Error)]
#[error("failed to check the data folder")]
struct CheckError {
    source: OpenError,
}

/// Error of a data folder that is damaged.
#[derive(Debug, thiserror::Error)]
#[error("the data folder {} is damaged in {damages} places", folder.display())]
struct DamagedFolderError {
    folder: PathBuf,
    damages: u64,
}

impl CommandFailure for CheckError {}

impl CommandFailure for DamagedFolderError {
    fn hint(&self) -> Option<String> {
        let hint = "restore the folder from a backup; a server that starts on it sends nothing that is damaged";
        Some(hint.to_owned())
    }
}

pub fn run(data_dir: &Path) -> Result<CommandReply, CommandError> {
    let report = without_panic_messages(|| posthaste_local::check_folder(data_dir));
    let report = report.map_err(|source| CheckError { source })?;
    let done = check_reply(&report);
    if report.damages == 0 {
        return Ok(done);
    }
    let damaged = DamagedFolderError {
        folder: data_dir.to_owned(),
        damages: report.damages,
    };
    Err(CommandError::from(damaged).with_done(done))
}

/// Keeps the engine's panics on damaged pages off standard error. The check catches them and
/// reports them.
fn without_panic_messages<T>(work: impl FnOnce() -> T) -> T {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let done = work();
    panic::set_hook(hook);
    done
}

fn check_reply(report: &CheckReport) -> CommandReply {
    let CheckReport {
        messages,
        objects,
        without_digest,
        damages,
        named,
    } = report;
    let reply = CommandReply::new(json!({
        "messages": messages, "objects": objects, "withoutDigest": without_digest,
        "damages": damages, "named": named,
    }));
    let reply = reply.line(format!(
        "{messages} messages and {objects} objects read, {damages} of them damaged"
    ));
    let reply = match without_digest {
        0 => reply,
        some => reply.line(format!(
            "{some} messages of an older version carry no digest"
        )),
    };
    named.iter().fold(reply, |reply, damage| {
        reply.line(format!("damaged: {damage}"))
    })
}
