//! The machine's disks by `statvfs`, and its memory from `/proc` and the control group. Where there
//! is no `/proc` (not Linux) memory is unknown, and its rows of the table of pressure never act.

use std::fs;
use std::path::{Path, PathBuf};

use posthaste_core::pressure::ByteUsage;
use rustix::fs::StatVfs;

/// Deepest nesting of control groups that is looked through.
const CGROUP_DEPTH_MAX: usize = 32;

/// The folders in which the kernel shows its numbers.
#[derive(Debug)]
struct MachineFiles {
    proc: PathBuf,
    cgroup: PathBuf,
}

/// The resident size of this process, in bytes; `None` where the kernel does not show it.
pub fn resident_bytes() -> Option<u64> {
    MachineFiles::this_machine().process_bytes()
}

/// The machine's memory, or the control group's where that is limited; `None` where the kernel does
/// not show it.
pub fn memory_usage() -> Option<ByteUsage> {
    MachineFiles::this_machine().memory_usage()
}

/// The usage of the disk of a folder, as `df` computes it: the total is the sum of the used and the
/// available bytes. Blocks that the filesystem keeps for the superuser are neither. `None` if the
/// folder cannot be examined, or its file system tells no size.
pub fn disk_usage(folder: &Path) -> Option<ByteUsage> {
    filesystem_usage(&rustix::fs::statvfs(folder).ok()?)
}

/// The numbers of a file system. One without blocks has no bound of its own (`ramfs`, a `tmpfs` of
/// `size=0`) or does not know it (FUSE), and is not full.
/// <https://man7.org/linux/man-pages/man5/tmpfs.5.html>
fn filesystem_usage(stat: &StatVfs) -> Option<ByteUsage> {
    if stat.f_blocks == 0 || stat.f_frsize == 0 {
        return None;
    }
    let used_blocks = stat.f_blocks.saturating_sub(stat.f_bfree);
    let used = used_blocks.saturating_mul(stat.f_frsize);
    let available = stat.f_bavail.saturating_mul(stat.f_frsize);
    Some(ByteUsage {
        used,
        total: used.saturating_add(available),
    })
}

impl MachineFiles {
    fn this_machine() -> Self {
        Self {
            proc: PathBuf::from("/proc"),
            cgroup: PathBuf::from("/sys/fs/cgroup"),
        }
    }

    /// The resident size: `VmRSS`, which unlike `statm` needs no page size.
    fn process_bytes(&self) -> Option<u64> {
        field_in_bytes(
            &fs::read_to_string(self.proc.join("self/status")).ok()?,
            "VmRSS:",
        )
    }

    /// The control group's memory where it is limited below the machine's, as in a container; else
    /// the machine's.
    fn memory_usage(&self) -> Option<ByteUsage> {
        let text = fs::read_to_string(self.proc.join("meminfo")).ok()?;
        let total = field_in_bytes(&text, "MemTotal:")?;
        let limited = self.control_group().filter(|group| group.total < total);
        limited.or_else(|| {
            let available = field_in_bytes(&text, "MemAvailable:")?;
            Some(ByteUsage {
                used: total.saturating_sub(available),
                total,
            })
        })
    }

    /// The tightest limit among this process's control group (version 2) and those around it. Pages
    /// of files that the kernel can drop do not count as used.
    fn control_group(&self) -> Option<ByteUsage> {
        let text = fs::read_to_string(self.proc.join("self/cgroup")).ok()?;
        let path = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
        let groups = Path::new(path).ancestors().take(CGROUP_DEPTH_MAX);
        groups
            .filter_map(|group| self.group_limit(group))
            .min_by_key(|group| group.total)
    }

    fn group_limit(&self, group: &Path) -> Option<ByteUsage> {
        let folder = self.cgroup.join(group);
        // A group without a limit says "max" here.
        let total = read_number(&folder.join("memory.max"))?;
        let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
        let droppable = number_field(&stat, "inactive_file").unwrap_or(0);
        Some(ByteUsage {
            used: read_number(&folder.join("memory.current"))?.saturating_sub(droppable),
            total,
        })
    }
}

fn read_number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// A line such as `VmRSS:      1234 kB`, in bytes.
fn field_in_bytes(text: &str, name: &str) -> Option<u64> {
    number_field(text, name)?.checked_mul(1024)
}

/// The number that follows a name at the start of a line.
fn number_field(text: &str, name: &str) -> Option<u64> {
    let mut words = text
        .lines()
        .map(str::split_whitespace)
        .find_map(|mut words| (words.next() == Some(name)).then_some(words))?;
    words.next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMINFO: &str =
        "MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    250 kB\n";

    /// A machine whose kernel shows these files.
    fn check(files: &[(&str, &str)], process_bytes: Option<u64>, memory: Option<(u64, u64)>) {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let machine = MachineFiles {
            proc: root.path().join("proc"),
            cgroup: root.path().join("cgroup"),
        };
        assert_eq!(machine.process_bytes(), process_bytes, "{files:?}");
        assert_eq!(
            machine.memory_usage(),
            memory.map(|(used, total)| ByteUsage { used, total }),
            "{files:?}"
        );
    }

    #[test]
    fn memory_is_what_the_kernel_says() {
        let status = "Name:\tposthaste\nVmHWM:\t  90 kB\nVmRSS:\t    64 kB\n";
        let files = [("proc/self/status", status), ("proc/meminfo", MEMINFO)];
        check(&files, Some(64 * 1024), Some((750 * 1024, 1000 * 1024)));
    }

    /// Memory is that of the tightest control group, where one is limited below the machine.
    #[test]
    fn tightest_control_group_limit_replaces_the_machine_total() {
        let files = [
            ("proc/meminfo", MEMINFO),
            ("proc/self/cgroup", "1:name=systemd:/\n0::/pod/app\n"),
            ("cgroup/pod/app/memory.max", "max\n"),
            ("cgroup/pod/memory.max", "512000\n"),
            ("cgroup/pod/memory.current", "300000\n"),
            (
                "cgroup/pod/memory.stat",
                "anon 1\ninactive_file 100000\nactive_file 7\n",
            ),
        ];
        check(&files, None, Some((200_000, 512_000)));
    }

    #[test]
    fn a_limit_above_the_machines_memory_is_none() {
        let files = [
            ("proc/meminfo", MEMINFO),
            ("proc/self/cgroup", "0::/\n"),
            ("cgroup/memory.max", "1024000\n"),
            ("cgroup/memory.current", "1\n"),
        ];
        check(&files, None, Some((750 * 1024, 1000 * 1024)));
    }

    /// Memory is unknown where the kernel's files are missing or cannot be read.
    #[test]
    fn unreadable_memory_is_unknown() {
        check(&[], None, None);
        check(
            &[
                ("proc/meminfo", "MemTotal: much\n"),
                ("proc/self/status", "VmRSS:\n"),
            ],
            None,
            None,
        );
        check(
            &[("proc/self/status", "VmRSS: 99999999999999999999 kB\n")],
            None,
            None,
        );
    }

    #[test]
    fn a_folder_lies_on_a_disk() {
        let folder = tempfile::tempdir().unwrap();
        let disk_of_folder = disk_usage(folder.path()).unwrap();
        assert!(
            disk_of_folder.total > 0 && disk_of_folder.used <= disk_of_folder.total,
            "{disk_of_folder:?}"
        );
        assert_eq!(disk_usage(&folder.path().join("missing")), None);
    }

    /// The result of `statvfs` for this folder, with these numbers of blocks of this size.
    fn stat_of(blocks: u64, free: u64, block_bytes: u64) -> StatVfs {
        StatVfs {
            f_blocks: blocks,
            f_bfree: free,
            f_bavail: free,
            f_frsize: block_bytes,
            ..rustix::fs::statvfs(".").unwrap()
        }
    }

    #[test]
    fn file_system_without_a_size_is_unknown_and_not_full() {
        let check = |(blocks, free, block_bytes), expected: Option<(u64, u64)>| {
            let expected = expected.map(|(used, total)| ByteUsage { used, total });
            assert_eq!(
                filesystem_usage(&stat_of(blocks, free, block_bytes)),
                expected
            );
        };
        check((0, 0, 4096), None);
        check((0, 7, 4096), None);
        check((100, 40, 0), None);
        check((100, 40, 4096), Some((60 * 4096, 100 * 4096)));
        check((100, 0, 512), Some((100 * 512, 100 * 512)));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_and_machine_have_memory() {
        let memory = memory_usage().unwrap();
        assert!(memory.used > 0 && memory.used <= memory.total, "{memory:?}");
        assert!(resident_bytes().unwrap() > 100_000);
    }
}
