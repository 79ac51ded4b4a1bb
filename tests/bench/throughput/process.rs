//! The resources that a process has used, from `/proc`.

use std::fs;

/// Clock ticks per second in `/proc/PID/stat`: fixed on Linux for user space.
/// <https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html>
const TICKS_PER_SECOND: f64 = 100.0;

/// CPU time of a process until now, in seconds, user and system.
pub(crate) fn cpu_seconds(pid: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("the process runs");
    // The name in brackets may hold spaces; what is wanted stands after it: fields 14 and 15 of all.
    let (_, rest) = stat.rsplit_once(')').expect("stat has a name in brackets");
    let fields = rest.split_whitespace().skip(11).take(2);
    fields.filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / TICKS_PER_SECOND
}

/// Resident memory of a process in MiB: now, and the most it ever was.
pub(crate) fn resident_mib(pid: u32) -> (f64, f64) {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process runs");
    let kib = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("status has the line");
        line.split_whitespace().next().and_then(|number| number.parse::<f64>().ok()).expect("it is a number")
    };
    (kib("VmRSS:") / 1024.0, kib("VmHWM:") / 1024.0)
}
