//! Why a data folder could not be opened.

use std::io;
use std::path::{Path, PathBuf};

use super::failure::EngineError;
use super::folder::ENGINE_FILE;

/// Why a data folder could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder or its lock file cannot be made or opened.
    #[error("the data folder {path} cannot be used")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Another process has the folder open.
    #[error("the data folder {path} is open in another posthaste{}", in_process(*pid))]
    Locked {
        /// The folder.
        path: PathBuf,
        /// The other process, where it could be read from the lock file.
        pid: Option<u32>,
    },
    /// The engine's file cannot be opened or read.
    #[error("the store {} cannot be opened and is left where it is: {advice}", file.display())]
    Engine {
        file: PathBuf,
        /// Advice for the operator.
        advice: &'static str,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl OpenError {
    pub(super) fn of(dir: &Path, source: EngineError) -> Self {
        Self::Engine { file: dir.join(ENGINE_FILE), advice: source.advice(), source: Box::new(source) }
    }
}

fn in_process(pid: Option<u32>) -> String {
    pid.map(|pid| format!(" (process {pid})")).unwrap_or_default()
}
