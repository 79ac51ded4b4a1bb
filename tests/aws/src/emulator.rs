//! Emulators of AWS that others have made, each as a process of its own on 127.0.0.1 for the length
//! of a test.
//!
//! `tests/install` puts them into the folder that `POSTHASTE_TOOLS` names. One that is missing fails
//! the test: nothing is skipped.

mod patience;
mod ready;
mod tool;

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;

use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

pub use tool::{ACCESS_KEY, REGION, Tool};

/// The variable that names the folder of the installed tools.
pub const TOOLS: &str = "POSTHASTE_TOOLS";

/// Runs a program, and kills it with all that it started once standard input ends. That is a pipe
/// from the test, so an interrupted or killed test leaves nothing behind. The watcher reads a copy
/// of it, because a shell gives what it runs in the background no standard input.
const SUPERVISED: &str = r#"exec 3<&0
"$@" </dev/null 3<&- &
program=$!
{ cat <&3 >/dev/null; kill -KILL 0; } &
wait "$program""#;

/// The number of log lines that a failed test shows.
const LOG_LINES_SHOWN: usize = 60;

/// A running emulator. It is killed, with all that it started, when this is dropped.
#[derive(Debug)]
pub struct Emulator {
    process: Child,
    endpoint: String,
    folder: TempDir,
}

impl Emulator {
    /// Starts an emulator on a free port and waits until it answers.
    pub fn start(tool: Tool) -> Self {
        let program = installed(tool);
        let folder = tempfile::tempdir().expect("a folder for the emulator's data");
        let port = free_port();
        let log = File::create(folder.path().join("log")).expect("the emulator's log");
        let mut command = Command::new("sh");
        command
            .args(["-c", SUPERVISED, "sh"])
            .arg(program)
            .args(tool.arguments(port))
            .env_clear()
            .envs(tool.environment(port, folder.path()));
        command.current_dir(folder.path()).stdin(Stdio::piped());
        command
            .stdout(log.try_clone().expect("the emulator's log, twice"))
            .stderr(log);
        // A group of its own, so that everything in it is killed at once.
        let process = command
            .process_group(0)
            .spawn()
            .expect("the emulator starts");
        let mut emulator = Self {
            process,
            endpoint: format!("http://127.0.0.1:{port}"),
            folder,
        };
        emulator.wait_until_ready(tool, port);
        emulator
    }

    /// The endpoint of every service, for `AWS_ENDPOINT_URL`.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The last lines of what it wrote.
    pub fn log(&self) -> String {
        let log = fs::read(self.folder.path().join("log")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES_SHOWN)..].join("\n")
    }

    fn wait_until_ready(&mut self, tool: Tool, port: u16) {
        let is_ready = patience::until(|| {
            if let Some(status) = self.process.try_wait().expect("the process is ours") {
                panic!(
                    "{tool} ended at once with {status}; its log:\n{}",
                    self.log()
                );
            }
            ready::answers(port, tool.health()).then_some(())
        });
        assert!(
            is_ready.is_some(),
            "{tool} does not answer; its log:\n{}",
            self.log()
        );
    }
}

#[expect(
    clippy::print_stderr,
    reason = "a test that fails shows what the emulator said"
)]
impl Drop for Emulator {
    fn drop(&mut self) {
        let group = i32::try_from(self.process.id())
            .ok()
            .and_then(Pid::from_raw);
        // The process may have ended already, which is fine.
        let _ = group.map(|group| kill_process_group(group, Signal::KILL));
        let _ = self.process.wait();
        if thread::panicking() {
            eprintln!("--- the emulator's log ---\n{}", self.log());
        }
    }
}

/// The program of a tool, or a panic that says how to get it.
fn installed(tool: Tool) -> PathBuf {
    let advice = format!("run tests/run, or tests/install {tool}");
    let tools = std::env::var_os(TOOLS)
        .unwrap_or_else(|| panic!("{TOOLS} is not set: {advice}, and set it"));
    let program = PathBuf::from(tools)
        .join(tool.to_string())
        .join("bin")
        .join(tool.program());
    assert!(
        program.exists(),
        "{} is not there: {advice}",
        program.display()
    );
    program
}

/// Ports for emulators: below those that the system gives to whoever asks for any, and those of
/// `tests/docs`. An emulator listens seconds after its port was found to be free.
const PORTS: Range<u16> = 12_000..20_000;

/// A port that is free now. Processes that look at the same moment begin at different ones.
fn free_port() -> u16 {
    let ids = std::process::id() % u32::from(PORTS.end - PORTS.start);
    let first = PORTS.start + u16::try_from(ids).expect("it is smaller than the range");
    (first..PORTS.end)
        .chain(PORTS.start..first)
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .expect("a free port on 127.0.0.1")
}
