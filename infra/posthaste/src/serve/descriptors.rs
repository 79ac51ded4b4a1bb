//! File descriptors: every connection takes one, and the usual soft limit of 1024 is too few for a server.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// With fewer descriptors than this, slow endpoints and many producers compete for them.
const DESCRIPTORS_ENOUGH: u64 = 16_384;

/// Raises the soft limit to the hard one, and says so in the log if that is still little.
pub(super) fn raise_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        tracing::warn!(%error, "the limit of open files cannot be raised");
    }
    let limit = getrlimit(Resource::Nofile).current;
    if limit.is_some_and(|limit| limit < DESCRIPTORS_ENOUGH) {
        tracing::warn!(?limit, before = ?current, "few open files are allowed; raise the hard limit (ulimit -Hn)");
    }
}
