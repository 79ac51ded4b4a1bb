//! Advice on a server that does not start: what the system's own words leave out.

use std::error::Error;
use std::fs;
use std::io::{self, ErrorKind};
use std::iter;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::process::geteuid;

/// The error of the system below another error.
pub(super) fn system_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a io::Error> {
    iter::successors(Some(error), |error| (*error).source()).find_map(|error| error.downcast_ref())
}

/// Advice on a path in which the server keeps its data, or on a file in it.
pub(super) fn on_data(path: &Path, error: &io::Error) -> Option<String> {
    let of_open_files = on_open_files(error);
    if of_open_files.is_some() {
        return of_open_files;
    }
    match error.kind() {
        ErrorKind::PermissionDenied => Some(on_rights(path, geteuid().as_raw())),
        ErrorKind::ReadOnlyFilesystem => Some(format!(
            "--data-dir or POSTHASTE_DATA_DIR with a folder on a file system that can be written; that of {} cannot",
            nearest_existing(path).display()
        )),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Some(format!(
            "more room on the disk of {}: `df` shows it",
            nearest_existing(path).display()
        )),
        ErrorKind::NotADirectory | ErrorKind::AlreadyExists => Some(format!(
            "--data-dir or POSTHASTE_DATA_DIR with a folder; {} is none",
            nearest_existing(path).display()
        )),
        _ => None,
    }
}

/// Advice where no more files can be opened.
pub(super) fn on_open_files(error: &io::Error) -> Option<String> {
    let is_full = matches!(
        Errno::from_io_error(error),
        Some(Errno::MFILE | Errno::NFILE)
    );
    is_full.then(|| {
        "a higher limit of open files: `ulimit -n`, or LimitNOFILE= of the service".to_owned()
    })
}

/// Advice on an address of an option that cannot be listened on.
pub(super) fn on_listening(option: &str, error: &io::Error) -> Option<String> {
    match error.kind() {
        ErrorKind::AddrInUse => Some(format!(
            "another port for {option}: a program listens there already, `ss -ltnp` shows which"
        )),
        ErrorKind::PermissionDenied => Some(format!(
            "a port of 1024 or higher for {option}: lower ones need the right CAP_NET_BIND_SERVICE"
        )),
        ErrorKind::AddrNotAvailable => Some(format!(
            "an address of this machine for {option}, or 0.0.0.0 for all of them"
        )),
        _ => None,
    }
}

/// Advice where a user lacks rights. Most often something belongs to another user: the server was
/// started once as root.
fn on_rights(path: &Path, user: u32) -> String {
    let place = nearest_existing(path);
    if !path.exists() && place.is_dir() {
        return format!(
            "a folder {} that belongs to user {user}: this process is of that user and cannot make one in {}",
            path.display(),
            place.display()
        );
    }
    let entries = fs::read_dir(&place).into_iter().flatten().flatten();
    let inside = entries.map(|entry| entry.path());
    let places = iter::once(place.clone()).chain(inside);
    let mut of_another = places
        .filter_map(|path| owner_of(&path).map(|owner| (path, owner)))
        .filter(|(_, owner)| *owner != user);
    match of_another.next() {
        Some((path, owner)) => format!(
            "{} belongs to user {owner}, and this process is of user {user}: start it as that user, or give all of \
             the data folder to this one with `chown -R {user}`",
            path.display()
        ),
        None => format!(
            "the rights to read and write {} for user {user}",
            place.display()
        ),
    }
}

/// The path itself, or the nearest one above it that exists.
fn nearest_existing(path: &Path) -> PathBuf {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let found = whole
        .ancestors()
        .find(|path| fs::symlink_metadata(path).is_ok());
    found.unwrap_or(&whole).to_owned()
}

fn owner_of(path: &Path) -> Option<u32> {
    fs::metadata(path).ok().map(|found| found.uid())
}

/// Says in the log that root writes into the data folder of another user, who cannot read it later.
pub(super) fn warn_of_root(data_dir: &Path) {
    if let Some(owner) = other_owner(data_dir, geteuid().as_raw()) {
        tracing::warn!(
            path = %data_dir.display(), owner,
            "the data folder belongs to another user, who cannot read what root writes into it; start the server as that user"
        );
    }
}

/// The owner of a folder that root uses, if it is another user.
fn other_owner(data_dir: &Path, user: u32) -> Option<u32> {
    owner_of(data_dir).filter(|owner| user == 0 && *owner != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice(path: &Path, kind: ErrorKind) -> Option<String> {
        on_data(path, &kind.into())
    }

    #[test]
    fn a_path_that_is_no_folder_is_named() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        fs::write(&file, "").unwrap();
        let expected = format!(
            "--data-dir or POSTHASTE_DATA_DIR with a folder; {} is none",
            file.display()
        );
        for path in [file.clone(), file.join("data/more")] {
            assert_eq!(
                advice(&path, ErrorKind::NotADirectory),
                Some(expected.clone())
            );
        }
    }

    #[test]
    fn the_disk_is_named_by_what_exists() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("data/more");
        let shown = root.path().display();
        let full = advice(&path, ErrorKind::StorageFull).unwrap();
        assert_eq!(
            full,
            format!("more room on the disk of {shown}: `df` shows it")
        );
        let read_only = advice(&path, ErrorKind::ReadOnlyFilesystem).unwrap();
        assert!(
            read_only.ends_with(&format!("; that of {shown} cannot")),
            "{read_only}"
        );
        assert_eq!(advice(&path, ErrorKind::TimedOut), None);
    }

    #[test]
    fn advice_names_the_owner_and_the_user_of_the_process() {
        let root = tempfile::tempdir().unwrap();
        let own = owner_of(root.path()).unwrap();
        let file = root.path().join("posthaste.redb");
        fs::write(&file, "").unwrap();
        let shown = root.path().display();
        let same = on_rights(root.path(), own);
        assert_eq!(
            same,
            format!("the rights to read and write {shown} for user {own}")
        );
        let said = |path: &Path, named: &Path| {
            let advice = on_rights(path, own + 1);
            let named = named.display();
            let user = own + 1;
            let begin =
                format!("{named} belongs to user {own}, and this process is of user {user}: ");
            assert!(advice.starts_with(&begin), "{advice}");
            assert!(advice.ends_with(&format!("`chown -R {user}`")), "{advice}");
        };
        said(root.path(), root.path());
        said(&file, &file);
        let new = root.path().join("new");
        let expected = format!(
            "a folder {} that belongs to user {own}: this process is of that user and cannot make one in {shown}",
            new.display()
        );
        assert_eq!(on_rights(&new, own), expected);
    }

    #[test]
    fn root_in_a_folder_of_another_user_is_told_of() {
        let root = tempfile::tempdir().unwrap();
        let own = owner_of(root.path()).unwrap();
        let expected = (own != 0).then_some(own);
        assert_eq!(other_owner(root.path(), 0), expected);
        assert_eq!(other_owner(root.path(), own + 1), None);
    }

    #[test]
    fn too_few_open_files_are_told_of_by_their_limit() {
        let error = io::Error::from(Errno::MFILE);
        let advice = on_data(Path::new("data"), &error).unwrap();
        assert!(
            advice.starts_with("a higher limit of open files"),
            "{advice}"
        );
    }

    #[test]
    fn addresses_are_advised_on_by_their_option() {
        let check = |kind: ErrorKind, expected: &str| {
            let advice = on_listening("--manage-listen", &kind.into()).unwrap();
            assert!(advice.starts_with(expected), "{advice}");
            assert!(advice.contains("--manage-listen"), "{advice}");
        };
        check(ErrorKind::AddrInUse, "another port for");
        check(ErrorKind::PermissionDenied, "a port of 1024 or higher for");
        check(
            ErrorKind::AddrNotAvailable,
            "an address of this machine for",
        );
    }
}
