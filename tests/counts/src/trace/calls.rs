//! System calls by what they are for.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use super::line::Line;
use crate::figure::Figure;

/// The calls of a part of a trace.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    /// The number of calls, by what they are for and by name.
    counts: BTreeMap<(Figure, String), u32>,
    /// Bytes that were written to files.
    file_bytes: u32,
}

impl Calls {
    /// Reads lines of a trace. Only what lies below a folder counts as a file.
    pub(super) fn of(lines: &str, folder: &Path) -> Self {
        let folder = format!("<{}/", folder.display());
        let mut calls = Self::default();
        // Threads whose write to a file has no result yet.
        let mut writing = HashMap::new();
        for line in lines.lines().filter_map(Line::parse) {
            let is_file_write = match line.target {
                Some(target) => calls.add(line.name, target, &folder) == Some(Figure::FileWrites),
                None => writing.remove(line.thread).unwrap_or(false),
            };
            calls.file_bytes += line.result.filter(|_| is_file_write).unwrap_or(0);
            writing.insert(line.thread, is_file_write && line.result.is_none());
        }
        calls
    }

    /// A count.
    pub(crate) fn count(&self, figure: Figure) -> u32 {
        if figure == Figure::FileBytes {
            return self.file_bytes;
        }
        self.counts
            .iter()
            .filter(|((of, _), _)| *of == figure)
            .map(|(_, count)| count)
            .sum()
    }

    /// The names of the calls that a figure counts, each with its number.
    pub(crate) fn names(&self, figure: Figure) -> impl Iterator<Item = (&str, u32)> {
        let counts = self.counts.iter().filter(move |((of, _), _)| *of == figure);
        counts.map(|((_, name), count)| (name.as_str(), *count))
    }

    fn add(&mut self, name: &str, target: &str, folder: &str) -> Option<Figure> {
        let figure = figure(name, target, folder)?;
        *self.counts.entry((figure, name.to_owned())).or_default() += 1;
        Some(figure)
    }
}

/// The figure that counts a call. None counts those that get memory from the system.
fn figure(name: &str, target: &str, folder: &str) -> Option<Figure> {
    let is_file = target.contains(folder);
    let is_event = target.contains("[eventfd]");
    match name {
        "brk" | "madvise" | "mmap" | "mprotect" | "mremap" | "munmap" => None,
        "read" | "write" if is_event => Some(Figure::Wakes),
        "write" | "writev" | "pwrite64" | "pwritev" | "pwritev2" if is_file => {
            Some(Figure::FileWrites)
        }
        "read" | "readv" | "recvfrom" | "recvmsg" if !is_file => Some(Figure::Receives),
        "write" | "writev" | "sendto" | "sendmsg" => Some(Figure::Sends),
        "epoll_wait" | "epoll_pwait" | "epoll_pwait2" => Some(Figure::Polls),
        "futex" | "sched_yield" => Some(Figure::Locks),
        "fsync" | "fdatasync" | "sync_file_range" => Some(Figure::Syncs),
        _ => Some(Figure::OtherCalls),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(lines: &str) -> Calls {
        Calls::of(lines, Path::new("/data"))
    }

    fn check(line: &str, expected: Option<Figure>) {
        let calls = calls(line);
        let figures: Vec<_> = calls.counts.keys().map(|(figure, _)| *figure).collect();
        assert_eq!(figures, Vec::from_iter(expected), "{line}");
    }

    #[test]
    fn calls_are_told_apart_by_name_and_target() {
        check(
            r#"1 write(4<anon_inode:[eventfd]>, ""..., 8) = 8"#,
            Some(Figure::Wakes),
        );
        check(
            r#"1 write(9</data/log/a.parquet>, ""..., 8) = 8"#,
            Some(Figure::FileWrites),
        );
        check(r#"1 write(2</tmp/out>, ""..., 8) = 8"#, Some(Figure::Sends));
        check(
            r#"1 writev(14<socket:[7]>, [{iov_base=""..., iov_len=8}], 1) = 8"#,
            Some(Figure::Sends),
        );
        check(
            r#"1 recvfrom(14<socket:[7]>, ""..., 8192, 0, NULL, NULL) = 7"#,
            Some(Figure::Receives),
        );
        check(
            "1 fdatasync(9</data/posthaste.redb>) = 0",
            Some(Figure::Syncs),
        );
        check(
            r#"1 getrandom(""..., 16, 0) = 16"#,
            Some(Figure::OtherCalls),
        );
        check("1 munmap(0x7f, 4096) = 0", None);
    }

    #[test]
    fn bytes_of_files_are_counted_when_their_write_has_ended() {
        let lines = r#"
1 pwrite64(9</data/posthaste.redb>, ""..., 4096, 0 <unfinished ...>
2 pwrite64(9</data/posthaste.redb>, ""..., 320, 0) = 320
3 write(4<anon_inode:[eventfd]>, ""..., 8 <unfinished ...>
1 <... pwrite64 resumed>) = 4096
3 <... write resumed>) = 8
"#;
        let calls = calls(lines);
        assert_eq!(
            (
                calls.count(Figure::FileWrites),
                calls.count(Figure::FileBytes)
            ),
            (2, 4416)
        );
    }
}
