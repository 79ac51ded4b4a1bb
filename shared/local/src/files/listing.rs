//! Pages of a folder tree in the byte order of keys, without holding more than a page of names per
//! level.

use std::collections::BTreeMap;
use std::fs::{FileType, ReadDir};
use std::io;
use std::path::Path;
use std::time::SystemTime;

use posthaste_core::model::{OBJECT_KEY_BYTES_MAX, Timestamp, is_key_text};
use posthaste_ports::{ListPage, ObjectMeta, validate};

use super::disk;

/// Names with this prefix are the store's own: no key has such a segment and no listing shows one.
pub(super) const HIDDEN_PREFIX: &str = ".posthaste-";

/// The first `max` objects whose keys start with `prefix` and are greater than `after`.
pub(super) fn page(root: &Path, prefix: &str, after: &str, max: usize) -> io::Result<ListPage> {
    // Only files in the folder that the prefix names can match. A prefix that names none matches
    // nothing.
    let base = prefix.rfind('/').map_or("", |slash| &prefix[..=slash]);
    if !base.is_empty() && !is_folder_key(base) {
        return Ok(ListPage::default());
    }
    // One more than asked for tells whether there is more.
    let mut walk = ListingWalk {
        root,
        prefix,
        wanted: max + 1,
        found: Vec::new(),
    };
    if max == 1
        && after < prefix
        && let Some(first) = walk.object_at_prefix()?
    {
        // No key that begins with the prefix is before it. Whether there are others only the whole
        // folder could tell.
        return Ok(ListPage {
            next_after: Some(first.key.clone()),
            objects: vec![first],
        });
    }
    walk.walk_folder(base, after)?;
    let mut objects = walk.found;
    let has_more = objects.len() > max;
    objects.truncate(max);
    let next_after = if has_more {
        objects.last().map(|last| last.key.clone())
    } else {
        None
    };
    Ok(ListPage {
        objects,
        next_after,
    })
}

fn is_folder_key(base: &str) -> bool {
    let key = base.trim_end_matches('/');
    key.len() + 1 == base.len()
        && validate::object_key(key).is_ok()
        && !key
            .split('/')
            .any(|segment| segment.starts_with(HIDDEN_PREFIX))
}

struct ListingWalk<'a> {
    root: &'a Path,
    prefix: &'a str,
    wanted: usize,
    found: Vec<ObjectMeta>,
}

/// Names of one folder in the order of keys. A folder's name ends in `/`, as it does in the keys
/// below it: that is what puts `a-b` before `a/b`.
type FolderNames = BTreeMap<String, FileType>;

impl ListingWalk<'_> {
    /// The object whose key is the prefix itself. `None` if the prefix is no key, or names no file.
    fn object_at_prefix(&self) -> io::Result<Option<ObjectMeta>> {
        let name = self.prefix.rsplit('/').next().unwrap_or_default();
        if validate::object_key(self.prefix).is_err() || name.starts_with(HIDDEN_PREFIX) {
            return Ok(None);
        }
        let path = self.root.join(self.prefix);
        match std::fs::symlink_metadata(path) {
            Err(error) if disk::means_absent(&error) => Ok(None),
            Ok(found) if !found.is_file() => Ok(None),
            Ok(_) => self.file_meta(self.prefix),
            Err(error) => Err(error),
        }
    }

    /// Adds what matches below the folder `base` (empty, or ending in `/`) until enough is found.
    fn walk_folder(&mut self, base: &str, after: &str) -> io::Result<()> {
        let mut handled = String::new();
        loop {
            let names = self.next_names(base, after, &handled)?;
            let is_last = names.len() < self.wanted;
            for (name, kind) in names {
                let key = format!("{base}{name}");
                if kind.is_dir() {
                    self.walk_folder(&key, after)?;
                } else {
                    self.found.extend(self.file_meta(&key)?);
                }
                if self.found.len() >= self.wanted {
                    return Ok(());
                }
                handled = name;
            }
            if is_last {
                return Ok(());
            }
        }
    }

    /// The first `wanted` names of a folder that follow `handled` and may lead to a match.
    fn next_names(&self, base: &str, after: &str, handled: &str) -> io::Result<FolderNames> {
        let mut names = FolderNames::new();
        for entry in read_folder(&self.root.join(base))?.into_iter().flatten() {
            let entry = entry?;
            let kind = entry.file_type()?;
            // A name that is not UTF-8 is not part of a key, and a link may lead out of the folder.
            let Ok(mut name) = entry.file_name().into_string() else {
                continue;
            };
            let is_in_a_key = is_key_text(&name) && !name.starts_with(HIDDEN_PREFIX);
            if !is_in_a_key || !(kind.is_dir() || kind.is_file()) {
                continue;
            }
            if kind.is_dir() {
                name.push('/');
            }
            if name.as_str() > handled && self.may_match(&format!("{base}{name}"), after) {
                names.insert(name, kind);
            }
            if names.len() > self.wanted {
                names.pop_last();
            }
        }
        Ok(names)
    }

    fn may_match(&self, key: &str, after: &str) -> bool {
        if key.len() > OBJECT_KEY_BYTES_MAX {
            return false;
        }
        if key.ends_with('/') {
            // A folder before `after` holds later keys only if `after` is in it.
            let is_on_the_way = key.starts_with(self.prefix) || self.prefix.starts_with(key);
            is_on_the_way && (key > after || after.starts_with(key))
        } else {
            key.starts_with(self.prefix) && key > after
        }
    }

    /// The entry of a file in a listing; `None` if it has gone in the meantime.
    fn file_meta(&self, key: &str) -> io::Result<Option<ObjectMeta>> {
        let found = match std::fs::symlink_metadata(self.root.join(key)) {
            Err(error) if disk::means_absent(&error) => return Ok(None),
            other => other?,
        };
        let since_epoch = found
            .modified()?
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        let modified_at = Timestamp::EPOCH + since_epoch;
        Ok(Some(ObjectMeta {
            key: key.to_owned(),
            size: found.len(),
            modified_at,
        }))
    }
}

fn read_folder(path: &Path) -> io::Result<Option<ReadDir>> {
    match std::fs::read_dir(path) {
        Err(error) if disk::means_absent(&error) => Ok(None),
        other => other.map(Some),
    }
}
