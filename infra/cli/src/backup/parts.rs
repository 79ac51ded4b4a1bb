//! The parts of a data folder, and which of them a backup has.

use posthaste_core::model::is_object_key;

use crate::commands::ADMIN_KEY_FILE;

/// The database: queues, topics, what waits, states.
pub const DATABASE: &str = posthaste_local::ENGINE_FILE;

/// The folder of dead letters.
pub const DEAD_LETTERS: &str = "dead-letters";

/// The folder of the delivery log.
pub const LOG: &str = "log";

/// The folder of files of the delivery log that cannot be read.
pub const LOG_ASIDE: &str = "log-damaged";

/// The folder of the summaries of the delivery log. It is made again, and no part of a backup.
pub const LOG_SUMMARY: &str = "log-summary";

/// The file that makes a folder a backup.
pub(super) const MANIFEST_FILE: &str = "backup.json";

/// The folders of a backup.
const FOLDERS: [&str; 3] = [LOG, LOG_ASIDE, DEAD_LETTERS];

/// The beginning of names that are the stores' own. No object has one.
const HIDDEN_PREFIX: &str = ".posthaste-";

/// The part to which a file of a backup belongs. `None` if a backup has no such file: its path
/// may lead anywhere.
pub(super) fn part_of(path: &str) -> Option<&str> {
    if [DATABASE, ADMIN_KEY_FILE].contains(&path) {
        return Some(path);
    }
    let (folder, key) = path.split_once('/')?;
    (FOLDERS.contains(&folder) && is_object(key)).then_some(folder)
}

/// Whether a path within one of the folders is that of an object.
pub(super) fn is_object(key: &str) -> bool {
    let mut segments = key.split('/');
    is_object_key(key) && !segments.any(|segment| segment.starts_with(HIDDEN_PREFIX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_into_the_parts_of_a_data_folder_alone() {
        let check = |path: &str, expected| assert_eq!(part_of(path), expected, "{path}");
        check("posthaste.redb", Some("posthaste.redb"));
        check("admin.key", Some("admin.key"));
        check("log/date=2026-11-29/hour=09/a.parquet", Some("log"));
        check(
            "dead-letters/ORDERS/BILLING/2026/1/1/1/x.json",
            Some("dead-letters"),
        );
        check("log-damaged/a", Some("log-damaged"));
        for other in [
            "",
            "log",
            "log/",
            "lock",
            "log-summary/2026",
            "log/../admin.key",
            "log/a/../../x",
            "log/./a",
            "log//a",
            "log/.posthaste-tmp/1",
            "log/a\nb",
            "../log/a",
            "/etc/passwd",
            "backup.json",
        ] {
            check(other, None);
        }
    }
}
