//! The files of an hour to merge, and those that a merge that was cut short left behind.
//!
//! A merge writes its parts in order; the last one names what was merged. Only then are those files
//! deleted. So after a crash either the last part is there, and the rest of the files it names can
//! go, or it is not, and the parts can go. [`leftover_files`] are deleted before another merge of
//! the hour begins.

use std::collections::{BTreeMap, BTreeSet};

use super::{FileKey, FileName};

/// Fresh files of an hour that still goes on, from which on they are merged. With as many in the
/// time that a merge takes, there are never more than 120.
const FRESH_FILES_MAX: usize = 60;

/// Fresh files that a merged hour may have before it is merged again: late records, which are few.
pub(super) const LATE_FILES_MAX: usize = 10;

/// The note of a merged file about its merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeNote {
    /// The number of the part, from 0.
    pub part: u16,
    /// The names of the files that were merged; only the last part has them.
    pub sources: Option<Vec<String>>,
}

/// The files to merge into one, of those of an hour without [`leftover_files`]. Empty if nothing is
/// to be done. While the hour goes on, only fresh files are; once it is closed, all.
pub fn files_to_merge(files: &[FileKey], is_closed: bool) -> Vec<FileKey> {
    let fresh = files.iter().filter(|file| file.is_fresh());
    let fresh_files = fresh.clone().count();
    let merges: BTreeSet<&str> = files.iter().filter_map(merge_id).collect();
    let is_merged = merges.len() == 1;
    let is_late = is_merged && fresh_files <= LATE_FILES_MAX;
    if !is_closed {
        let is_step = fresh_files >= FRESH_FILES_MAX;
        return if is_step {
            fresh.cloned().collect()
        } else {
            Vec::new()
        };
    }
    let is_done = is_late || (merges.is_empty() && fresh_files <= 1);
    if is_done { Vec::new() } else { files.to_vec() }
}

/// The files of an hour to delete, because a merge ended or was cut short. Each merged file has its
/// note.
pub fn leftover_files(files: &[(FileKey, Option<MergeNote>)]) -> Vec<FileKey> {
    let merges = merges_by_id(files);
    let whole = merges.values().filter(|merge| merge.is_whole());
    let sources: BTreeSet<&str> = whole
        .flat_map(|merge| merge.sources)
        .map(String::as_str)
        .collect();
    files
        .iter()
        .map(|(file, _)| file)
        .filter(|file| {
            let is_cut_short = merge_id(file).is_some_and(|id| !merges[id].is_whole());
            is_cut_short || sources.contains(file.file_name().as_str())
        })
        .cloned()
        .collect()
}

/// The parts of one merge that are there.
#[derive(Default)]
struct MergeParts<'a> {
    parts: BTreeSet<u16>,
    last: Option<u16>,
    sources: &'a [String],
}

impl MergeParts<'_> {
    fn is_whole(&self) -> bool {
        self.last
            .is_some_and(|last| (0..=last).all(|part| self.parts.contains(&part)))
    }
}

fn merges_by_id(files: &[(FileKey, Option<MergeNote>)]) -> BTreeMap<&str, MergeParts<'_>> {
    let mut merges: BTreeMap<&str, MergeParts<'_>> = BTreeMap::new();
    for (file, note) in files {
        let Some(id) = merge_id(file) else { continue };
        let merge = merges.entry(id).or_default();
        let Some(note) = note else { continue };
        merge.parts.insert(note.part);
        if let Some(sources) = &note.sources {
            merge.last = Some(note.part);
            merge.sources = sources;
        }
    }
    merges
}

pub(super) fn merge_id(file: &FileKey) -> Option<&str> {
    match &file.name {
        FileName::Merged { id, .. } => Some(id),
        FileName::Fresh { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery_log::LogHour;
    use crate::model::Timestamp;

    fn key(name: FileName) -> FileKey {
        FileKey {
            hour: LogHour::containing(Timestamp::EPOCH),
            name,
        }
    }

    fn fresh(minute: u8) -> FileKey {
        key(FileName::Fresh {
            minute,
            id: "x".to_owned(),
        })
    }

    fn merged(id: &str, part: u16) -> FileKey {
        key(FileName::Merged {
            id: id.to_owned(),
            part,
        })
    }

    fn check(files: &[FileKey], is_closed: bool, expected: usize) {
        let merged = files_to_merge(files, is_closed);
        assert_eq!(merged.len(), expected);
        assert!(merged.iter().all(|file| files.contains(file)));
    }

    #[test]
    fn an_hour_that_goes_on_is_merged_in_steps() {
        let files: Vec<_> = (0..60).map(|n| fresh(n % 60)).collect();
        check(&files[..59], false, 0);
        check(&files, false, 60);
        check(
            &[files, vec![merged("a", 0), merged("b", 0)]].concat(),
            false,
            60,
        );
    }

    #[test]
    fn a_closed_hour_becomes_one_file() {
        check(&[], true, 0);
        check(&[fresh(1)], true, 0);
        check(&[fresh(1), fresh(2)], true, 2);
        check(&[fresh(1), merged("a", 0), merged("b", 0)], true, 3);
        check(&[merged("a", 0), merged("a", 1)], true, 0);
        check(&[merged("a", 0), merged("b", 0)], true, 2);
    }

    #[test]
    fn a_merged_hour_waits_for_more_late_records() {
        let late: Vec<_> = (0..11).map(fresh).collect();
        check(
            &[vec![merged("a", 0)], late[..10].to_vec()].concat(),
            true,
            0,
        );
        check(&[vec![merged("a", 0)], late].concat(), true, 12);
    }

    fn noted(id: &str, part: u16, sources: Option<&[FileKey]>) -> (FileKey, Option<MergeNote>) {
        let sources = sources.map(|files| files.iter().map(FileKey::file_name).collect());
        (merged(id, part), Some(MergeNote { part, sources }))
    }

    /// Files that were merged are left over only once the last part of the merge is there.
    #[test]
    fn merged_files_are_leftovers_once_the_last_part_exists() {
        let one = fresh(1);
        let other = fresh(2);
        let late = fresh(3);
        let sources = [one.clone(), other.clone()];
        let plain = |file: &FileKey| (file.clone(), None);
        let files = [plain(&one), plain(&other), plain(&late)];
        assert_eq!(leftover_files(&files), []);
        let first = noted("a", 0, None);
        let cut_short = [&files[..], std::slice::from_ref(&first)].concat();
        assert_eq!(leftover_files(&cut_short), [merged("a", 0)]);
        let whole = [&cut_short[..], &[noted("a", 1, Some(&sources))]].concat();
        assert_eq!(leftover_files(&whole), sources);
        let deleted = [plain(&late), first, noted("a", 1, Some(&sources))];
        assert_eq!(leftover_files(&deleted), []);
    }

    #[test]
    fn a_merge_without_its_first_part_deletes_nothing_but_itself() {
        let one = fresh(1);
        let files = [(one.clone(), None), noted("a", 1, Some(&[one]))];
        assert_eq!(leftover_files(&files), [merged("a", 1)]);
    }

    #[test]
    fn a_step_that_was_merged_again_is_left_over() {
        let step = merged("a", 0);
        let files = [
            noted("a", 0, Some(&[fresh(1)])),
            noted("b", 0, Some(&[step.clone(), fresh(2)])),
        ];
        assert_eq!(leftover_files(&files), [step]);
    }
}
