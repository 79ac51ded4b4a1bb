//! Names of the files in a data folder.

/// The lock file.
pub(super) const LOCK_FILE: &str = "lock";

/// The engine's file.
pub(super) const ENGINE_FILE: &str = "posthaste.redb";
