//! The admin key: the one that was given, or the data folder's. The first start makes that one, for
//! its owner alone; later starts read it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use posthaste_cli::commands::ADMIN_KEY_FILE;
use posthaste_core::model::pasted::{PastedError, read_admin_key, trim_unseen};
use posthaste_core::model::{MADE_KEY_BYTES, Secret, made_key};
use posthaste_local::{DisplacedPath, private};
use posthaste_ports::Entropy;

/// Error of a server without an admin key.
#[derive(Debug, thiserror::Error)]
pub enum AdminKeyError {
    /// The file cannot be read or written, or is open to others and cannot be narrowed.
    #[error("failed to {action} {}", path.display())]
    File {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The content is no key, or not all of one.
    #[error(
        "{} holds no admin key; write the whole key into it, or delete the file: the next start makes a new key",
        path.display()
    )]
    NotAKey {
        path: PathBuf,
        #[source]
        source: PastedError,
    },
    /// The key that was given is none. It is a secret, so the message does not show it.
    #[error("the key given by --key or POSTHASTE_KEY cannot be the admin key")]
    Unusable(#[source] PastedError),
}

impl AdminKeyError {
    fn failed_to(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File {
            action,
            path: path.to_owned(),
            source,
        }
    }
}

/// The key that was given, if it can be the admin key. An empty one counts as not given: a
/// service's settings have `POSTHASTE_KEY=` where there is none.
pub fn check_given(written: &Secret) -> Result<Option<Secret>, AdminKeyError> {
    if trim_unseen(written.expose()).is_empty() {
        return Ok(None);
    }
    parse(written.expose())
        .map(Some)
        .map_err(AdminKeyError::Unusable)
}

/// The key of a server: the one that was given, which is not written down, or the data folder's.
/// The caller holds the folder's lock.
pub fn given_or_stored(
    given: Option<&Secret>,
    data_dir: &Path,
    entropy: &impl Entropy,
) -> Result<Secret, AdminKeyError> {
    let Some(given) = given else {
        return read_or_make(data_dir, entropy);
    };
    let path = data_dir.join(ADMIN_KEY_FILE);
    if fs::read_to_string(&path).is_ok_and(|text| trim_unseen(&text) != given.expose()) {
        tracing::warn!(
            path = %path.display(),
            "the admin key is the given one; delete the file, which holds another: commands on this machine \
             read it and are refused"
        );
    }
    Ok(given.clone())
}

/// Reads the key of a data folder, or makes it. The caller holds the folder's lock.
fn read_or_make(data_dir: &Path, entropy: &impl Entropy) -> Result<Secret, AdminKeyError> {
    let path = data_dir.join(ADMIN_KEY_FILE);
    match fs::read_to_string(&path) {
        Ok(text) => {
            private::narrow_mode(&path).map_err(AdminKeyError::failed_to(
                "take others' rights away from",
                &path,
            ))?;
            parse(&text).map_err(|source| AdminKeyError::NotAKey { path, source })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mut random = [0; MADE_KEY_BYTES];
            entropy.fill(&mut random);
            let key = made_key(&random);
            write_whole(&path, key.expose()).map_err(AdminKeyError::failed_to("write", &path))?;
            Ok(key)
        }
        Err(source) => Err(AdminKeyError::failed_to("read", &path)(source)),
    }
}

/// An error if a file does not hold this key.
pub fn still_holds(path: &Path, key: &Secret) -> Result<(), DisplacedPath> {
    match fs::read_to_string(path) {
        Ok(text) if parse(&text).is_ok_and(|held| held.expose() == key.expose()) => Ok(()),
        Ok(_) => Err(DisplacedPath::Other),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(DisplacedPath::Missing),
        Err(error) => Err(DisplacedPath::Unknown(error)),
    }
}

fn parse(text: &str) -> Result<Secret, PastedError> {
    read_admin_key(text).map(Secret::new)
}

/// Writes the whole file or none of it, so that a crash never leaves half a key behind.
fn write_whole(path: &Path, key: &str) -> io::Result<()> {
    let unfinished = path.with_extension("key.new");
    let mut file = private::open(
        OpenOptions::new().write(true).create(true).truncate(true),
        &unfinished,
    )?;
    file.write_all(format!("{key}\n").as_bytes())?;
    file.sync_all()?;
    fs::rename(&unfinished, path)?;
    path.parent()
        .map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

#[cfg(test)]
mod tests {
    use super::*;
    use posthaste_testkit::SeededEntropy;
    use std::os::unix::fs::PermissionsExt;

    fn key(folder: &Path, seed: u64) -> Result<String, AdminKeyError> {
        read_or_make(folder, &SeededEntropy::new(seed)).map(|key| key.expose().to_owned())
    }

    #[test]
    fn a_key_is_made_once_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let made = key(folder.path(), 1).unwrap();
        assert_eq!(read_admin_key(&made), Ok(made.as_str()));
        assert_eq!(key(folder.path(), 2).unwrap(), made);
        let permissions = fs::metadata(folder.path().join(ADMIN_KEY_FILE))
            .unwrap()
            .permissions();
        assert_eq!(permissions.mode() & 0o777, 0o600);
    }

    #[test]
    fn a_file_that_holds_no_key_is_refused_and_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(ADMIN_KEY_FILE);
        for bad in [
            "",
            "\n",
            "short",
            "two lines of text here\nand more",
            "with-a-hidden\u{200b}-character",
        ] {
            fs::write(&path, bad).unwrap();
            assert!(
                matches!(key(folder.path(), 1), Err(AdminKeyError::NotAKey { .. })),
                "{bad:?}"
            );
            assert_eq!(fs::read_to_string(&path).unwrap(), bad);
        }
        fs::write(&path, "a-key-of-my-own-choice\n").unwrap();
        assert_eq!(key(folder.path(), 1).unwrap(), "a-key-of-my-own-choice");
    }

    #[test]
    fn made_key_whose_end_is_missing_is_refused_and_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(ADMIN_KEY_FILE);
        let made = key(folder.path(), 1).unwrap();
        for end in 0..made.len() {
            fs::write(&path, &made[..end]).unwrap();
            let error = key(folder.path(), 2).unwrap_err();
            let message = error.to_string();
            assert!(message.contains(&path.display().to_string()), "{message}");
            assert!(message.contains("delete the file"), "{message}");
            assert_eq!(fs::read_to_string(&path).unwrap(), made[..end]);
        }
        // Its line end is no part of it.
        fs::write(&path, &made).unwrap();
        assert_eq!(key(folder.path(), 2).unwrap(), made);
        // Nor is a given one taken that was copied in part.
        assert!(check_given(&Secret::new(&made[1..made.len() - 1])).is_ok());
        assert!(check_given(&Secret::new(&made[..made.len() - 1])).is_err());
    }

    #[test]
    fn keys_of_older_versions_and_of_operators_stay_valid() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(ADMIN_KEY_FILE);
        for valid in [
            "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc",
            "BwcHBwcHBwcHBwcHBwcHBw",
            "exactly-16-chars",
            "with a space in it",
        ] {
            for end in ["", "\n", "\r\n"] {
                fs::write(&path, format!("{valid}{end}")).unwrap();
                assert_eq!(key(folder.path(), 1).unwrap(), valid);
            }
        }
    }

    #[test]
    fn file_holds_the_key_of_the_start_until_it_is_changed_or_gone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(ADMIN_KEY_FILE);
        let key = Secret::new(key(folder.path(), 1).unwrap());
        let seen = || still_holds(&path, &key).map_err(|error| error.to_string());
        assert_eq!(seen(), Ok(()));
        fs::write(&path, "another-key-of-this-folder\n").unwrap();
        assert_eq!(seen(), Err("another file has its name".to_owned()));
        fs::remove_file(&path).unwrap();
        assert_eq!(seen(), Err("nothing has its name".to_owned()));
    }

    #[test]
    fn a_given_key_counts_and_is_not_written_down() {
        let folder = tempfile::tempdir().unwrap();
        let given = Secret::new("-given-by-the-operator");
        let path = folder.path().join(ADMIN_KEY_FILE);
        let opened =
            || given_or_stored(Some(&given), folder.path(), &SeededEntropy::new(1)).unwrap();
        assert!(opened().matches(given.expose()) && !path.exists());
        fs::write(&path, "another-key-of-this-folder\n").unwrap();
        assert!(opened().matches(given.expose()));
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            "another-key-of-this-folder\n"
        );
    }

    #[test]
    fn a_given_key_may_end_with_a_line_end_and_an_empty_one_is_none() {
        for written in [
            "exactly-16-chars",
            "exactly-16-chars\r\n",
            "\u{feff}exactly-16-chars\u{a0}",
        ] {
            let key = check_given(&Secret::new(written)).unwrap().unwrap();
            assert_eq!(key.expose(), "exactly-16-chars");
        }
        for nothing in ["", "\n"] {
            assert!(check_given(&Secret::new(nothing)).unwrap().is_none());
        }
    }

    #[test]
    fn a_given_key_is_as_long_as_any_and_its_error_does_not_show_it() {
        for bad in [
            "only-15-chars..",
            "with-an-ümlaut-in-it",
            "with-a-hidden\u{200b}-character",
        ] {
            let error = check_given(&Secret::new(bad)).unwrap_err().to_string();
            assert!(
                !error.contains(bad) && error.contains("POSTHASTE_KEY"),
                "{error}"
            );
        }
    }
}
