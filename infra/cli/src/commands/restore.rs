//! `restore`: a data folder is made of a backup.

use std::path::Path;

use posthaste_ports::Clock;
use posthaste_system::SystemClock;
use serde_json::json;

use crate::backup::restore_backup;
use crate::error::CommandError;
use crate::output::CommandReply;

pub fn run(backup: &Path, data_dir: &Path) -> Result<CommandReply, CommandError> {
    let manifest = restore_backup(backup, data_dir, SystemClock.now())?;
    let (files, bytes) = manifest.files_and_bytes();
    let reply = CommandReply::new(json!({
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
