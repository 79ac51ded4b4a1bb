//! A program as a process: what it used, from `/proc`, and the real time.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longest time for anything that must happen: far longer than it takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A running program. It ends with this.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    /// The moment before it was forked and executed.
    pub(crate) began: Instant,
}

/// Resident memory in KiB.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resident {
    /// Now.
    pub(crate) now_kib: u64,
    /// The most it ever was.
    pub(crate) most_kib: u64,
}

/// The time, to compare moments of several processes on this machine.
#[expect(clippy::disallowed_methods, reason = "a bench measures real time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

impl Process {
    /// Starts a program with exactly these variables.
    pub(crate) fn start(program: &Path, environment: &[(String, String)], shows_log: bool) -> Self {
        let mut command = Command::new(program);
        command
            .env_clear()
            .envs(environment.iter().cloned())
            .stdin(Stdio::null());
        if !shows_log {
            command.stdout(Stdio::null()).stderr(Stdio::null());
        }
        let began = now();
        let child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        Self { child, began }
    }

    /// The CPU that its threads have used, user and system, as the scheduler counts it: in
    /// nanoseconds, where `/proc/PID/stat` has hundredths of a second.
    pub(crate) fn cpu(&self) -> Duration {
        let tasks =
            fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("the process runs");
        let spent = tasks.map(|task| -> u64 {
            let path = task.expect("the process runs").path().join("schedstat");
            let text = fs::read_to_string(path).expect("the kernel keeps schedstat");
            text.split_whitespace()
                .next()
                .and_then(|ns| ns.parse().ok())
                .expect("it begins with a number")
        });
        Duration::from_nanos(spent.sum())
    }

    /// The resident memory.
    pub(crate) fn resident(&self) -> Resident {
        let path = format!("/proc/{}/status", self.child.id());
        let status = fs::read_to_string(path).expect("the process runs");
        let kib = |name: &str| {
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .expect("status has the line");
            line.split_whitespace()
                .next()
                .and_then(|kib| kib.parse().ok())
                .expect("it is a number")
        };
        Resident {
            now_kib: kib("VmRSS:"),
            most_kib: kib("VmHWM:"),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // An error means that it has already ended by itself, which is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
