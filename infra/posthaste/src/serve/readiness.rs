//! Whether a server has done what its command line asks of it before others may rely on it. Until
//! then its health is 503.

use std::path::PathBuf;
use std::time::Duration;

use parking_lot::Mutex;
use posthaste_core::api::problem::{Problem, ProblemKind};

/// Wait that is asked of a request for the health of a server that is not ready.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What a server still has to do.
#[derive(Debug, Default)]
pub struct Readiness(Mutex<Vec<PathBuf>>);

impl Readiness {
    /// A server that still has to apply these files.
    pub(super) fn after(files: &[PathBuf]) -> Self {
        Self(Mutex::new(files.to_owned()))
    }

    /// Says that everything is applied.
    pub(super) fn mark_ready(&self) {
        self.0.lock().clear();
    }

    /// The problem of a server that is not ready. Everybody may ask, so it names the files without
    /// their folders.
    pub(super) fn problem(&self) -> Option<Problem> {
        let files = self.0.lock();
        if files.is_empty() {
            return None;
        }
        let names: Vec<_> = files
            .iter()
            .filter_map(|file| file.file_name())
            .map(|name| name.to_string_lossy())
            .collect();
        let detail = format!("waiting until --config is applied: {}", names.join(", "));
        let problem = Problem::new(ProblemKind::Unavailable).detail(detail);
        Some(problem.retry_after(RETRY_AFTER))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_is_ready_once_its_files_are_applied() {
        assert!(Readiness::default().problem().is_none());
        assert!(Readiness::after(&[]).problem().is_none());
        let readiness = Readiness::after(&["a.yaml".into(), "/etc/x/c.yaml".into()]);
        let problem = readiness.problem().unwrap();
        assert_eq!(problem.status.as_u16(), 503);
        let detail = format!("{problem:?}");
        assert!(detail.contains(": a.yaml, c.yaml"), "{detail}");
        readiness.mark_ready();
        assert!(readiness.problem().is_none());
    }
}
