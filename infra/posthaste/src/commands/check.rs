//! `check`: what the database of a data folder holds, and what of it is damaged.

use std::panic;
use std::path::{Path, PathBuf};

use posthaste_local::{CheckReport, OpenError};
use serde_json::json;

use crate::error::{CommandError, Failure};
use crate::output::Reply;

/// Error of a data folder that cannot be checked.
#[derive(Debug, thiserror::Error)]
#[error("failed to check the data folder")]
struct CheckError {
    source: OpenError,
}

/// Error of a data folder that is damaged.
#[derive(Debug, thiserror::Error)]
#[error("the data folder {} is damaged in {damages} places", folder.display())]
struct Damaged {
    folder: PathBuf,
    damages: u64,
}

impl Failure for CheckError {}

impl Failure for Damaged {
    fn hint(&self) -> Option<String> {
        let hint = "restore the folder from a backup; a server that starts on it sends nothing that is damaged";
        Some(hint.to_owned())
    }
}

pub(crate) fn run(data_dir: &Path) -> Result<Reply, CommandError> {
    let report = without_panics(|| posthaste_local::check_folder(data_dir));
    let report = report.map_err(|source| CheckError { source })?;
    let done = reply(&report);
    if report.damages == 0 {
        return Ok(done);
    }
    let damaged = Damaged {
        folder: data_dir.to_owned(),
        damages: report.damages,
    };
    Err(CommandError::from(damaged).after(done))
}

/// Keeps the engine's panics on damaged pages off standard error. The check catches them and
/// reports them.
fn without_panics<T>(work: impl FnOnce() -> T) -> T {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let done = work();
    panic::set_hook(hook);
    done
}

fn reply(report: &CheckReport) -> Reply {
    let CheckReport {
        messages,
        objects,
        without_digest,
        damages,
        named,
    } = report;
    let reply = Reply::new(json!({
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
