//! Files and folders for their owner alone, under any umask: signing secrets, publish keys and payloads lie in them.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Mode of a new file: read and written by its owner.
const FILE_MODE: u32 = 0o600;

/// Mode of a new folder: used by its owner.
const FOLDER_MODE: u32 = 0o700;

/// Mode bits of everybody but the owner.
const OTHERS: u32 = 0o077;

/// Mode bit of a folder that several users share, such as `/tmp`.
const STICKY: u32 = 0o1000;

/// Makes one folder.
pub fn make_folder(dir: &Path) -> io::Result<()> {
    DirBuilder::new().mode(FOLDER_MODE).create(dir)?;
    // A umask may have taken more away than others' rights.
    std::fs::set_permissions(dir, Permissions::from_mode(FOLDER_MODE))
}

/// Makes a folder and those above it that are missing.
pub fn make_folders(dir: &Path) -> io::Result<()> {
    // An empty path is what lies above the first folder of a relative one.
    let missing = dir.ancestors().take_while(|folder| *folder != Path::new("") && !folder.is_dir());
    let missing: Vec<_> = missing.collect();
    missing.into_iter().rev().try_for_each(|folder| match make_folder(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            // Another process may have made it meanwhile.
            if folder.is_dir() { Ok(()) } else { Err(io::ErrorKind::NotADirectory.into()) }
        }
        other => other,
    })
}

/// Opens a file. One that is made by this is its owner's alone, one that was there is narrowed to that.
pub fn open(options: &OpenOptions, path: &Path) -> io::Result<File> {
    let is_new = !path.try_exists()?;
    let file = options.clone().mode(FILE_MODE).open(path)?;
    if is_new {
        file.set_permissions(Permissions::from_mode(FILE_MODE))?;
    } else {
        narrow(path)?;
    }
    Ok(file)
}

/// Writes a file, in the place of one that was there.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    open(OpenOptions::new().write(true).create(true).truncate(true), path)?.write_all(bytes)
}

/// Takes the rights of everybody but the owner away from a file or folder. One that belongs to another user, or a
/// folder that several users share, stays as it is and is logged.
pub fn narrow(path: &Path) -> io::Result<()> {
    let found = std::fs::metadata(path)?;
    let mode = found.permissions().mode();
    if mode & OTHERS == 0 {
        return Ok(());
    }
    if found.is_dir() && mode & STICKY != 0 {
        tracing::warn!(path = %path.display(), "the folder is shared by several users and stays open to them");
        return Ok(());
    }
    match std::fs::set_permissions(path, Permissions::from_mode(mode & !OTHERS)) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            tracing::warn!(path = %path.display(), "it belongs to another user and stays open to others");
            Ok(())
        }
        other => other,
    }
}

/// Narrows a folder and all that lies in it, the folder last: its own mode says that all of it was done, so that the
/// next start need not look again. Links are not followed.
pub fn narrow_all(dir: &Path) -> io::Result<()> {
    if std::fs::metadata(dir)?.permissions().mode() & OTHERS == 0 {
        return Ok(());
    }
    narrow_inside(dir)?;
    narrow(dir)
}

fn narrow_inside(dir: &Path) -> io::Result<()> {
    // A list instead of recursion: how deep folders lie is up to the names in them.
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = match std::fs::read_dir(&folder) {
            // Another user's, such as the `lost+found` of a device.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => continue,
            other => other?,
        };
        for entry in entries {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_symlink() {
                continue;
            }
            narrow(&entry.path())?;
            if kind.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    Ok(())
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

    #[test]
    fn what_is_made_is_its_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("a/b");
        make_folders(&dir).unwrap();
        make_folders(&dir).unwrap();
        write(&dir.join("file"), b"x").unwrap();
        assert_eq!(
            [mode(&folder.path().join("a")), mode(&dir), mode(&dir.join("file"))],
            [0o700, 0o700, 0o600]
        );
    }

    #[test]
    fn what_was_open_to_others_is_narrowed_and_what_its_owner_may_not_do_stays() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        for (before, after) in
            [(0o644, 0o600), (0o666, 0o600), (0o440, 0o400), (0o600, 0o600), (0o755, 0o700)]
        {
            std::fs::write(&file, "x").unwrap();
            set(&file, before);
            narrow(&file).unwrap();
            assert_eq!(mode(&file), after, "{before:o}");
            std::fs::remove_file(&file).unwrap();
        }
        set(folder.path(), 0o1777);
        narrow(folder.path()).unwrap();
        assert_eq!(mode(folder.path()), 0o1777);
    }

    #[test]
    fn a_folder_is_narrowed_with_all_in_it_but_what_links_point_to() {
        let folder = tempfile::tempdir().unwrap();
        let (dir, other) = (folder.path().join("dir"), folder.path().join("other"));
        std::fs::create_dir_all(dir.join("a/b")).unwrap();
        std::fs::write(dir.join("a/b/file"), "x").unwrap();
        std::fs::write(&other, "x").unwrap();
        std::os::unix::fs::symlink(&other, dir.join("link")).unwrap();
        for path in [&dir, &dir.join("a"), &dir.join("a/b"), &dir.join("a/b/file"), &other] {
            set(path, 0o755);
        }
        narrow_all(&dir).unwrap();
        for path in [&dir, &dir.join("a"), &dir.join("a/b"), &dir.join("a/b/file")] {
            assert_eq!(mode(path), 0o700, "{}", path.display());
        }
        assert_eq!(mode(&other), 0o755);
    }
}
