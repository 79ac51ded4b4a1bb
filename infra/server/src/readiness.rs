//! Whether a server has done what its command line asks of it before others may rely on it. Until
//! then its health is 503. From the signal to end on it is not ready again.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use posthaste_core::api::problem::{ApiProblem, ProblemKind};

/// Wait that is asked of a request for the health of a server that is not ready.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The work that a server still has to do, and whether it is about to end.
#[derive(Debug, Default)]
pub struct Readiness {
    /// The files that are not applied yet.
    files: Mutex<Vec<PathBuf>>,
    is_ending: AtomicBool,
}

impl Readiness {
    /// A server that still has to apply these files.
    pub(super) fn until_applied(files: &[PathBuf]) -> Self {
        Self {
            files: Mutex::new(files.to_owned()),
            is_ending: AtomicBool::new(false),
        }
    }

    /// Says that everything is applied.
    pub(super) fn mark_ready(&self) {
        self.files.lock().clear();
    }

    /// Says that the server is about to end: nothing more should be sent to it.
    pub(super) fn mark_ending(&self) {
        self.is_ending.store(true, Ordering::Relaxed);
    }

    /// The problem of a server to which no requests should be sent: it is about to end, or it is
    /// not ready.
    pub(super) fn problem_for_load_balancers(&self) -> Option<ApiProblem> {
        if self.is_ending.load(Ordering::Relaxed) {
            let ending = ApiProblem::new(ProblemKind::Unavailable).detail("the server is ending");
            return Some(ending.retry_after(RETRY_AFTER));
        }
        self.problem()
    }

    /// The problem of a server that is not ready. Everybody may ask, so it names the files without
    /// their folders.
    pub(super) fn problem(&self) -> Option<ApiProblem> {
        let files = self.files.lock();
        if files.is_empty() {
            return None;
        }
        let names: Vec<_> = files
            .iter()
            .filter_map(|file| file.file_name())
            .map(|name| name.to_string_lossy())
            .collect();
        let detail = format!("waiting until --config is applied: {}", names.join(", "));
        let problem = ApiProblem::new(ProblemKind::Unavailable).detail(detail);
        Some(problem.retry_after(RETRY_AFTER))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_is_ready_once_its_files_are_applied() {
        assert!(Readiness::default().problem().is_none());
        assert!(Readiness::until_applied(&[]).problem().is_none());
        let readiness = Readiness::until_applied(&["a.yaml".into(), "/etc/x/c.yaml".into()]);
        let problem = readiness.problem().unwrap();
        assert_eq!(problem.status.as_u16(), 503);
        let detail = format!("{problem:?}");
        assert!(detail.contains(": a.yaml, c.yaml"), "{detail}");
        assert!(readiness.problem_for_load_balancers().is_some());
        readiness.mark_ready();
        assert!(readiness.problem().is_none());
        assert!(readiness.problem_for_load_balancers().is_none());
    }

    #[test]
    fn ending_server_is_healthy_and_not_ready() {
        let readiness = Readiness::default();
        readiness.mark_ending();
        assert!(readiness.problem().is_none());
        let problem = readiness.problem_for_load_balancers().unwrap();
        assert_eq!(problem.status.as_u16(), 503);
        assert!(format!("{problem:?}").contains("the server is ending"));
    }
}
