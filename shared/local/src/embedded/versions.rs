//! Versions of state objects that were read lately, so that asking whether one has changed costs no
//! read of the engine: publish and deliver ask for every request.

use std::collections::HashMap;

use parking_lot::Mutex;

/// Most versions known. Beyond it they are forgotten and learned again.
const KNOWN_MAX: usize = 10_000;

/// Known versions. A version is learned by a read and forgotten by the commit thread before the
/// write that changes it returns.
#[derive(Debug, Default)]
pub(super) struct KnownVersions(Mutex<VersionMap>);

#[derive(Debug, Default)]
struct VersionMap {
    /// Counts forgotten versions: a read that began before the last of them is too old to learn
    /// from.
    changes: u64,
    versions: HashMap<String, u64>,
}

impl KnownVersions {
    /// True if the object certainly still has this version.
    pub(super) fn has(&self, key: &str, version: u64) -> bool {
        self.0.lock().versions.get(key) == Some(&version)
    }

    /// The number to read before a read of an object, and to give to [`learn`](Self::learn) after
    /// it.
    pub(super) fn change_count(&self) -> u64 {
        self.0.lock().changes
    }

    /// Stores the version that a read found, unless something was written since the read began.
    pub(super) fn learn(&self, key: &str, version: u64, changes_before: u64) {
        let mut known = self.0.lock();
        if known.changes != changes_before {
            return;
        }
        if known.versions.len() >= KNOWN_MAX {
            known.versions.clear();
        }
        known.versions.insert(key.to_owned(), version);
    }

    /// Forgets the version of an object that was written or deleted.
    pub(super) fn forget(&self, key: &str) {
        let mut known = self.0.lock();
        known.changes += 1;
        known.versions.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_version_is_known_until_the_object_is_written() {
        let versions = KnownVersions::default();
        versions.learn("a", 1, versions.change_count());
        assert!(versions.has("a", 1) && !versions.has("a", 2) && !versions.has("b", 1));
        versions.forget("a");
        assert!(!versions.has("a", 1));
    }

    #[test]
    fn a_read_that_began_before_a_write_teaches_nothing() {
        let versions = KnownVersions::default();
        let before = versions.change_count();
        versions.forget("a");
        versions.learn("a", 1, before);
        assert!(!versions.has("a", 1));
    }
}
