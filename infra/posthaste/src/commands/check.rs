//! `check`: what the database of a data folder holds, and what of it is damaged.

use std::panic;
use std::path::Path;

use posthaste_local::CheckReport;
use serde_json::json;

use super::CommandError;
use crate::output::Reply;

pub(super) fn run(data_dir: &Path) -> Result<Reply, CommandError> {
    let report = without_panics(|| posthaste_local::check(data_dir));
    let report = report.map_err(|source| CommandError::Check { source })?;
    let done = reply(&report);
    if report.damages == 0 {
        return Ok(done);
    }
    Err(CommandError::Damaged { folder: data_dir.to_owned(), damages: report.damages, done: Box::new(done) })
}

/// Keeps off standard error how the engine panics on a damaged page: what is caught is in the report.
fn without_panics<T>(work: impl FnOnce() -> T) -> T {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let done = work();
    panic::set_hook(hook);
    done
}

fn reply(report: &CheckReport) -> Reply {
    let CheckReport { messages, objects, without_digest, damages, named } = report;
    let reply = Reply::new(json!({
        "messages": messages, "objects": objects, "withoutDigest": without_digest,
        "damages": damages, "named": named,
    }));
    let reply = reply.line(format!("{messages} messages and {objects} objects read, {damages} damages"));
    let reply = match without_digest {
        0 => reply,
        some => reply.line(format!("{some} messages of an older version carry no digest")),
    };
    named.iter().fold(reply, |reply, damage| reply.line(format!("damaged: {damage}")))
}
