//! The resources that a process has used, from `/proc`, and those that this one may use.

use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Clock ticks per second in `/proc/PID/stat`: fixed on Linux for user space.
/// <https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html>
const TICKS_PER_SECOND: f64 = 100.0;

/// CPU time of a process until now, in seconds, user and system.
pub(crate) fn cpu_seconds(pid: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("the process runs");
    // The name in brackets may hold spaces; what is wanted stands after it: fields 14 and 15 of
    // all.
    let (_, rest) = stat.rsplit_once(')').expect("stat has a name in brackets");
    let fields = rest.split_whitespace().skip(11).take(2);
    fields
        .filter_map(|field| field.parse::<f64>().ok())
        .sum::<f64>()
        / TICKS_PER_SECOND
}

/// Resident memory of a process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resident {
    pub(crate) now_mib: f64,
    /// The most it ever was.
    pub(crate) most_mib: f64,
}

/// Resident memory of a process until now.
pub(crate) fn resident(pid: u32) -> Resident {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process runs");
    let mib = |name: &str| {
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .expect("status has the line");
        let kib = line
            .split_whitespace()
            .next()
            .and_then(|number| number.parse::<f64>().ok());
        kib.expect("it is a number") / 1024.0
    };
    Resident {
        now_mib: mib("VmRSS:"),
        most_mib: mib("VmHWM:"),
    }
}

/// Allows this process as many open files as it may have.
pub(crate) fn raise_open_files() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    // An error leaves the limit as it is. A run that needs more ends with "too many open files".
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: maximum,
            maximum,
        },
    );
}
