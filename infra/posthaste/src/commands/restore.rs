//! `restore`: a data folder is made of a backup.

use std::path::Path;

use posthaste_ports::Clock;
use posthaste_system::SystemClock;
use serde_json::json;

use crate::backup::restore;
use crate::error::CommandError;
use crate::output::Reply;

pub(crate) fn run(backup: &Path, data_dir: &Path) -> Result<Reply, CommandError> {
    let manifest = restore(backup, data_dir, SystemClock.now())?;
    let (files, bytes) = manifest.total();
    let reply = Reply::new(json!({
        "folder": data_dir, "takenAt": manifest.taken_at, "version": manifest.version,
        "files": files, "bytes": bytes,
    }));
    let line = format!(
        "{} is as it was at {}: {files} files, {bytes} bytes",
        data_dir.display(),
        manifest.taken_at
    );
    Ok(reply.line(line))
}
