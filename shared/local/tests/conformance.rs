//! The embedded adapters keep the promises of their ports.

#![expect(clippy::unwrap_used, reason = "a harness that fails panics")]

use std::sync::Mutex;

use posthaste_local::FileStore;
use posthaste_ports::conformance::store;
use tempfile::TempDir;

/// Folders that live as long as the test.
#[derive(Default)]
struct Folders(Mutex<Vec<TempDir>>);

impl Folders {
    fn fresh(&self) -> std::path::PathBuf {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_owned();
        self.0.lock().unwrap().push(folder);
        path
    }
}

/// Objects as plain files.
#[derive(Default)]
struct Files(Folders);

impl store::StoreHarness for Files {
    type Store = FileStore;

    async fn fresh(&self) -> FileStore {
        FileStore::open(&self.0.fresh()).unwrap()
    }
}

#[tokio::test]
async fn plain_files_pass_as_an_object_store() {
    store::run(&Files::default()).await;
}
