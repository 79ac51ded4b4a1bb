//! Files and folders that only their owner can use, under any umask: they hold signing secrets,
//! publish keys and payloads.

use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::io::Errno;

/// Mode of a new file: read and written by its owner.
const FILE_MODE: u32 = 0o600;

/// Mode of a new folder: used by its owner.
const FOLDER_MODE: u32 = 0o700;

/// Mode bits of a folder's owner.
const OWNER: u32 = 0o700;

/// Mode bits of all users except the owner.
const OTHERS: u32 = 0o077;

/// Mode bit of a folder that several users share, such as `/tmp`.
const STICKY: u32 = 0o1000;

/// The bits of a mode that can be set.
const MODE: u32 = 0o7777;

/// Makes one folder.
pub fn make_folder(dir: &Path) -> io::Result<()> {
    DirBuilder::new().mode(FOLDER_MODE).create(dir)?;
    let mode = mode_of(&std::fs::metadata(dir)?);
    // A umask may have taken more away than others' rights.
    set_mode(mode, FOLDER_MODE, |mode| {
        std::fs::set_permissions(dir, mode)
    })
    .map(drop)
}

/// Makes a folder. Missing parents get the mode that the umask gives, and all rights for their
/// owner.
pub fn make_folders(dir: &Path) -> io::Result<()> {
    match make_above(dir).and_then(|()| make_folder(dir)) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            // The folder was there, or another process has just made it.
            if dir.is_dir() {
                Ok(())
            } else {
                Err(io::ErrorKind::NotADirectory.into())
            }
        }
        other => other,
    }
}

fn make_above(dir: &Path) -> io::Result<()> {
    // The parent of a relative path's first folder is an empty path.
    let above = dir
        .ancestors()
        .skip(1)
        .filter(|above| *above != Path::new(""));
    let missing: Vec<_> = above.take_while(|above| !above.is_dir()).collect();
    for folder in missing.into_iter().rev() {
        match std::fs::create_dir(folder) {
            Ok(()) => {
                let mode = mode_of(&std::fs::metadata(folder)?);
                set_mode(mode, mode | OWNER, |mode| {
                    std::fs::set_permissions(folder, mode)
                })?;
            }
            // Another process has just made it.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Opens a file. Only its owner can use a file that is made here; an existing file is narrowed to
/// that where the file system allows it.
pub fn open(options: &OpenOptions, path: &Path) -> io::Result<File> {
    let is_new = !path.try_exists()?;
    let file = options.clone().mode(FILE_MODE).open(path)?;
    let mode = mode_of(&file.metadata()?);
    let wanted = if is_new { FILE_MODE } else { mode & !OTHERS };
    set_mode(mode, wanted, |mode| file.set_permissions(mode))?;
    Ok(file)
}

/// Writes a file and replaces an existing one.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    open(
        OpenOptions::new().write(true).create(true).truncate(true),
        path,
    )?
    .write_all(bytes)
}

/// Takes the rights of other users away from a file or folder. If that is refused, or if the folder
/// is one that several users share, it stays open to them, and the log says so.
pub fn narrow_mode(path: &Path) -> io::Result<()> {
    let found = std::fs::metadata(path)?;
    if found.is_dir() && mode_of(&found) & STICKY != 0 && mode_of(&found) & OTHERS != 0 {
        let path = path.display();
        tracing::warn!(%path, "the folder is shared by several users and stays open to them");
        return Ok(());
    }
    if !is_narrowed(path)? {
        warn_of_open_mode(path);
    }
    Ok(())
}

/// Narrows a folder and all its content, the folder last: its own mode then shows that all is done,
/// so that the next start does not look again. Links are not followed. If a mode cannot be changed,
/// the log says so once.
pub fn narrow_all(dir: &Path) -> io::Result<()> {
    let mode = mode_of(&std::fs::metadata(dir)?);
    if mode & OTHERS == 0 {
        return Ok(());
    }
    // If the file system has no modes, a million files in the folder are not tried one by one.
    if !has_modes(std::fs::set_permissions(dir, Permissions::from_mode(mode)))? {
        warn_of_open_mode(dir);
        return Ok(());
    }
    narrow_inside(dir)?;
    narrow_mode(dir)
}

fn narrow_inside(dir: &Path) -> io::Result<()> {
    // A list instead of recursion, because folders may be nested to any depth.
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = match std::fs::read_dir(&folder) {
            // A folder of another user, such as the `lost+found` of a device.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => continue,
            other => other?,
        };
        for entry in entries {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_symlink() {
                continue;
            }
            // The folder that holds all of this is what keeps others out, and is narrowed or warned
            // of at the end.
            is_narrowed(&entry.path())?;
            if kind.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    Ok(())
}

/// Narrows a file or folder, and returns whether it is narrow now: some file systems take a mode
/// and do not keep it.
fn is_narrowed(path: &Path) -> io::Result<bool> {
    let mode = mode_of(&std::fs::metadata(path)?);
    if mode & OTHERS == 0 {
        return Ok(true);
    }
    let is_set = set_mode(mode, mode & !OTHERS, |mode| {
        std::fs::set_permissions(path, mode)
    })?;
    Ok(is_set && mode_of(&std::fs::metadata(path)?) & OTHERS == 0)
}

/// Sets a mode if the file has another, and returns whether the file has the wanted mode now.
fn set_mode(
    found: u32,
    wanted: u32,
    set: impl FnOnce(Permissions) -> io::Result<()>,
) -> io::Result<bool> {
    if found == wanted {
        Ok(true)
    } else {
        was_accepted(set(Permissions::from_mode(wanted)))
    }
}

fn was_accepted(set: io::Result<()>) -> io::Result<bool> {
    match set {
        Ok(()) => Ok(true),
        Err(error) if is_refused(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

/// True if it is worth trying the content of a folder after its own mode: a folder of another user
/// may hold files of this user.
fn has_modes(set: io::Result<()>) -> io::Result<bool> {
    match set {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(true),
        other => was_accepted(other),
    }
}

/// True if modes cannot be changed here: the file belongs to another user, the mount is read-only,
/// or the file system has none, as on a Windows share. The program works there too.
fn is_refused(error: &io::Error) -> bool {
    let is_unsupported = Errno::from_io_error(error) == Some(Errno::OPNOTSUPP);
    is_unsupported
        || matches!(
            error.kind(),
            io::ErrorKind::PermissionDenied
                | io::ErrorKind::ReadOnlyFilesystem
                | io::ErrorKind::Unsupported
        )
}

fn warn_of_open_mode(path: &Path) {
    let path = path.display();
    tracing::warn!(
        %path, "the mode of a file cannot be changed, so it stays open to other users of this machine"
    );
}

fn mode_of(found: &Metadata) -> u32 {
    found.permissions().mode() & MODE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    fn set(path: &Path, mode: u32) {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    /// New files and folders are their owner's alone; parents have the mode that the umask gives.
    #[test]
    fn made_folders_are_private_and_parents_follow_the_umask() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("a/b/c");
        make_folders(&dir).unwrap();
        make_folders(&dir).unwrap();
        write(&dir.join("file"), b"x").unwrap();
        assert_eq!([mode(&dir), mode(&dir.join("file"))], [0o700, 0o600]);
        let other = folder.path().join("other");
        std::fs::create_dir(&other).unwrap();
        for made in ["a", "a/b"] {
            assert_eq!(mode(&folder.path().join(made)), mode(&other), "{made}");
        }
    }

    /// A mode that is right is not set again, and one that cannot be set is no error.
    #[test]
    fn right_mode_is_not_set_and_a_refused_mode_is_no_error() {
        let untouched = |_| unreachable!("it is as it should be");
        assert!(set_mode(0o600, 0o600, untouched).unwrap());
        let set = |mode: Permissions| {
            assert_eq!(mode.mode(), 0o600);
            Ok(())
        };
        assert!(set_mode(0o777, 0o600, set).unwrap());
        for refused in [
            Errno::PERM,
            Errno::ACCESS,
            Errno::ROFS,
            Errno::OPNOTSUPP,
            Errno::NOSYS,
        ] {
            assert!(
                !set_mode(0o777, 0o600, |_| Err(refused.into())).unwrap(),
                "{refused}"
            );
        }
        assert!(set_mode(0o777, 0o600, |_| Err(Errno::IO.into())).is_err());
    }

    /// The content of a folder is tried where the folder may be another user's.
    #[test]
    fn folder_contents_are_tried_if_another_user_may_own_it() {
        let check = |set: io::Result<()>, expected| assert_eq!(has_modes(set).ok(), expected);
        check(Ok(()), Some(true));
        for (refused, expected) in [
            (Errno::PERM, Some(true)),
            (Errno::ACCESS, Some(true)),
            (Errno::ROFS, Some(false)),
            (Errno::OPNOTSUPP, Some(false)),
            (Errno::NOSYS, Some(false)),
            (Errno::IO, None),
        ] {
            check(Err(refused.into()), expected);
        }
    }

    /// The kernel refuses other modes for the files of a process under `/proc`, even to root. The
    /// folder holds links alone.
    #[test]
    fn a_file_system_that_refuses_modes_is_used_as_it_is() {
        let dir = Path::new("/proc/self/ns");
        let file = Path::new("/proc/self/comm");
        let before = [mode(dir), mode(file)];
        assert!(before.iter().all(|mode| mode & OTHERS != 0), "{before:?}");
        narrow_mode(file).unwrap();
        narrow_all(dir).unwrap();
        open(OpenOptions::new().read(true), file).unwrap();
        assert_eq!([mode(dir), mode(file)], before);
    }

    /// Rights of other users are taken away, and what the owner may not do stays so.
    #[test]
    fn open_modes_are_narrowed_and_owner_limits_stay() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        for (before, after) in [
            (0o644, 0o600),
            (0o666, 0o600),
            (0o440, 0o400),
            (0o600, 0o600),
            (0o755, 0o700),
        ] {
            std::fs::write(&file, "x").unwrap();
            set(&file, before);
            narrow_mode(&file).unwrap();
            assert_eq!(mode(&file), after, "{before:o}");
            std::fs::remove_file(&file).unwrap();
        }
        set(folder.path(), 0o1777);
        narrow_mode(folder.path()).unwrap();
        assert_eq!(mode(folder.path()), 0o1777);
    }

    #[test]
    fn a_folder_is_narrowed_with_all_in_it_but_what_links_point_to() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("dir");
        let other = folder.path().join("other");
        std::fs::create_dir_all(dir.join("a/b")).unwrap();
        std::fs::write(dir.join("a/b/file"), "x").unwrap();
        std::fs::write(&other, "x").unwrap();
        std::os::unix::fs::symlink(&other, dir.join("link")).unwrap();
        for path in [
            &dir,
            &dir.join("a"),
            &dir.join("a/b"),
            &dir.join("a/b/file"),
            &other,
        ] {
            set(path, 0o755);
        }
        narrow_all(&dir).unwrap();
        for path in [
            &dir,
            &dir.join("a"),
            &dir.join("a/b"),
            &dir.join("a/b/file"),
        ] {
            assert_eq!(mode(path), 0o700, "{}", path.display());
        }
        assert_eq!(mode(&other), 0o755);
    }
}
