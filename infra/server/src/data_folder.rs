//! The files of the data folder that a server keeps open or has read, and whether their paths still
//! name them.
//!
//! A database that was moved away, replaced or deleted goes on taking writes, and all of them end
//! with the process. So nothing more is accepted from then on. What is in it is still delivered,
//! and the log says how to save the rest.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ::http::Method;
use parking_lot::Mutex;
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::model::Secret;
use posthaste_local::{DisplacedPath, FileStore, OpenStoreFiles, PlacedFile};
use posthaste_system::SystemClock;
use tokio::task::{JoinSet, spawn_blocking};
use tokio_util::sync::CancellationToken;

use super::admin_key;
use super::probes::READYZ;
use super::schedule::run_every;

/// Time between two looks, as between two looks at the disk's space.
const LOOK_PERIOD: Duration = Duration::from_secs(2);

/// Wait that is asked of a request that cannot be kept.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// The path that tells whether the server works.
pub(super) const HEALTH: &str = "/health";

/// The paths at which an endpoint consents, also by GET.
const CONSENT: &str = "/validate/";

/// The paths that change nothing on the disk, whatever their method.
const SIGN_IN_AND_OUT: [&str; 2] = ["/console/sign-in", "/console/sign-out"];

/// The files of a data folder.
#[derive(Debug, Default)]
pub struct DataFolder {
    place: Option<Arc<OpenStoreFiles>>,
    /// Folders of plain files, in which each file is opened by its path.
    folders: Vec<FileStore>,
    /// The file of the admin key, where the key is the file's.
    key: Option<KeyFile>,
    /// True while the path of the database names no file or another one.
    is_lost: AtomicBool,
    told: ReportedFiles,
}

/// The file of the admin key, and the key that it held at the start.
#[derive(Debug)]
pub(super) struct KeyFile {
    pub(super) path: PathBuf,
    pub(super) key: Secret,
}

/// The files that the log already calls gone, by path.
#[derive(Debug, Default)]
struct ReportedFiles(Mutex<Vec<PathBuf>>);

impl DataFolder {
    pub(super) fn new(
        place: Option<Arc<OpenStoreFiles>>,
        folders: Vec<FileStore>,
        key: Option<KeyFile>,
    ) -> Self {
        Self {
            place,
            folders,
            key,
            is_lost: AtomicBool::new(false),
            told: ReportedFiles::default(),
        }
    }

    /// Starts the looks.
    pub(super) fn spawn(self: &Arc<Self>, tasks: &mut JoinSet<()>, stop: &CancellationToken) {
        let this = Arc::clone(self);
        tasks.spawn(run_every(
            "data-folder",
            LOOK_PERIOD,
            SystemClock,
            stop.clone(),
            move || {
                let this = Arc::clone(&this);
                // A mount that hangs holds this look up, and nothing else.
                async move {
                    if let Err(error) = spawn_blocking(move || this.check_all()).await {
                        tracing::error!(%error, "the data folder was not looked at");
                    }
                }
            },
        ));
    }

    /// Problem of a request whose answer must be kept, while the database is not where its path
    /// says.
    pub(super) fn refuse_if(&self, must_be_kept: bool) -> Option<ApiProblem> {
        let is_refused = must_be_kept && self.is_lost.load(Ordering::Relaxed);
        is_refused.then(lost_database_problem)
    }

    pub(super) fn check_all(&self) {
        if let Some(place) = &self.place {
            self.look_at_database(&place.engine);
            if let Some(lock) = &place.lock {
                self.look_at_lock(lock);
            }
        }
        for folder in &self.folders {
            self.look_at_folder(folder);
        }
        if let Some(key) = &self.key {
            self.look_at_key(key);
        }
    }

    fn look_at_database(&self, engine: &PlacedFile) {
        let seen = engine.check_path();
        let path = engine.path().display();
        self.is_lost.store(seen.is_err(), Ordering::Relaxed);
        match (seen, self.told.is_reported(engine.path())) {
            (Err(error), false) => {
                self.told.mark_reported(engine.path());
                tracing::error!(
                    %path,
                    error = &error as &dyn Error,
                    open_file = %engine.open_name().display(),
                    "the database is not where it was opened, so nothing more is accepted; put the same file back, or save \
                     the open file before this process ends"
                );
            }
            (Ok(()), true) => {
                self.told.forget(engine.path());
                tracing::info!(%path, "the database is where it was opened again");
            }
            _ => {}
        }
    }

    fn look_at_lock(&self, lock: &PlacedFile) {
        let seen = lock.check_path();
        if let Err(error) = self.told.only_news(lock.path(), seen) {
            tracing::warn!(
                path = %lock.path().display(),
                error = &error as &dyn Error,
                "the lock file is not the one that was locked; the database has a lock of its own"
            );
        }
    }

    fn look_at_folder(&self, folder: &FileStore) {
        let seen = folder.check_path();
        if let Err(error) = self.told.only_news(folder.root(), seen) {
            tracing::warn!(
                path = %folder.root().display(),
                error = &error as &dyn Error,
                "a folder of files is not the one of before; what the other one holds is not found"
            );
        }
    }

    fn look_at_key(&self, key: &KeyFile) {
        let seen = admin_key::still_holds(&key.path, &key.key);
        if let Err(error) = self.told.only_news(&key.path, seen) {
            tracing::warn!(
                path = %key.path.display(),
                error = &error as &dyn Error,
                "the file of the admin key has changed; the key of the start counts until a restart"
            );
        }
    }
}

impl ReportedFiles {
    fn is_reported(&self, path: &Path) -> bool {
        self.0.lock().iter().any(|told| told == path)
    }

    fn mark_reported(&self, path: &Path) {
        self.0.lock().push(path.to_owned());
    }

    fn forget(&self, path: &Path) {
        self.0.lock().retain(|told| told != path);
    }

    /// Takes away what was told already: each change is told once.
    fn only_news(&self, path: &Path, seen: Result<(), DisplacedPath>) -> Result<(), DisplacedPath> {
        let was_told = self.is_reported(path);
        match seen {
            Ok(()) => {
                self.forget(path);
                Ok(())
            }
            Err(_) if was_told => Ok(()),
            Err(error) => {
                self.mark_reported(path);
                Err(error)
            }
        }
    }
}

/// Whether the answer to a request promises that something is kept, or that the server works.
pub(super) fn must_be_kept(method: &Method, path: &str) -> bool {
    let reads = [Method::GET, Method::HEAD, Method::OPTIONS].contains(method);
    path == HEALTH
        || path == READYZ
        || path.starts_with(CONSENT)
        || (!reads && !SIGN_IN_AND_OUT.contains(&path))
}

fn lost_database_problem() -> ApiProblem {
    ApiProblem::new(ProblemKind::Unavailable)
        .detail(
            "the database is not where serve opened it, so nothing more can be kept; the log of serve \
             says what to do",
        )
        .retry_after(RETRY_AFTER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use posthaste_local::{EmbeddedStore, LocalOptions};
    use posthaste_system::SystemEntropy;

    /// Refused are also checks of health, whose success promises that the server works.
    #[test]
    fn requests_that_promise_durability_are_refused() {
        let check = |method: Method, path: &str, expected| {
            assert_eq!(must_be_kept(&method, path), expected, "{method} {path}");
        };
        check(Method::POST, "/topics/orders/events", true);
        check(Method::POST, "/api/events", true);
        check(Method::PUT, "/topics/orders", true);
        check(Method::DELETE, "/topics/orders", true);
        check(Method::GET, "/health", true);
        check(Method::HEAD, "/health", true);
        check(Method::GET, "/validate/orders/billing/code", true);
        check(Method::POST, "/console/topics", true);
        check(Method::POST, "/console/sign-in", false);
        check(Method::GET, "/topics/orders", false);
        check(Method::HEAD, "/topics", false);
        check(Method::GET, "/metrics", false);
        check(Method::GET, "/readyz", true);
        check(Method::GET, "/livez", false);
        check(Method::GET, "/console", false);
    }

    #[tokio::test]
    async fn database_that_left_its_path_refuses_until_it_is_back() {
        let root = tempfile::tempdir().unwrap();
        let data = root.path().join("data");
        let local = EmbeddedStore::open(&data, LocalOptions::default(), SystemClock, SystemEntropy)
            .unwrap();
        let folder = DataFolder::new(local.open_files().cloned(), Vec::new(), None);
        let look = || {
            folder.check_all();
            assert!(folder.refuse_if(false).is_none());
            folder
                .refuse_if(true)
                .map(|problem| problem.status.as_u16())
        };
        assert_eq!(look(), None);
        std::fs::rename(&data, root.path().join("aside")).unwrap();
        assert_eq!(look(), Some(503));
        std::fs::create_dir(&data).unwrap();
        std::fs::copy(
            root.path().join("aside/posthaste.redb"),
            data.join("posthaste.redb"),
        )
        .unwrap();
        assert_eq!(look(), Some(503));
        std::fs::remove_dir_all(&data).unwrap();
        std::fs::rename(root.path().join("aside"), &data).unwrap();
        assert_eq!(look(), None);
    }

    #[test]
    fn each_change_is_told_once() {
        let told = ReportedFiles::default();
        let path = Path::new("lock");
        let news = |seen| told.only_news(path, seen).is_err();
        assert!(!news(Ok(())));
        assert!(news(Err(DisplacedPath::Missing)));
        assert!(!news(Err(DisplacedPath::Missing)));
        assert!(!news(Ok(())));
        assert!(news(Err(DisplacedPath::Other)));
    }
}
