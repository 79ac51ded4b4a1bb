//! `posthaste serve` as a process.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::api::Api;
use crate::binary::posthaste;
use crate::patience::{PATIENCE, wait_until};
use crate::seen::Seen;

/// The line in the log at which the process closed a stream.
const CLOSED: &str = "(closed)";

/// A running server. It is killed when this is dropped.
#[derive(Debug)]
pub struct Server {
    process: Child,
    log: Seen<String>,
    api: Api,
}

impl Server {
    /// Starts a server on a data folder and waits until it says where it listens.
    pub fn start(data_dir: &Path, arguments: &[&str]) -> Self {
        Self::start_within(PATIENCE, data_dir, arguments)
    }

    /// The same for a data folder that takes a while to read.
    pub fn start_within(patience: Duration, data_dir: &Path, arguments: &[&str]) -> Self {
        Self::begin(Command::new(posthaste()), patience, data_dir, arguments)
    }

    /// The same by another program, such as a tracer. The command ends with the path of
    /// [`posthaste`], and its process becomes the server.
    pub fn start_by(command: Command, data_dir: &Path, arguments: &[&str]) -> Self {
        Self::begin(command, PATIENCE, data_dir, arguments)
    }

    fn begin(command: Command, patience: Duration, data_dir: &Path, arguments: &[&str]) -> Self {
        let (process, log) = spawn(command, data_dir, arguments);
        let ready = log.wait_within(patience, "a server that says where it listens", |lines| {
            let url = lines.iter().find_map(|line| url_in(line));
            let is_over = lines.iter().filter(|line| *line == CLOSED).count() == 2;
            url.map(Ok)
                .or_else(|| is_over.then(|| Err(lines.join("\n"))))
        });
        let url = ready.unwrap_or_else(|log| panic!("the server ended at once:\n{log}"));
        let key_file = data_dir.join("admin.key");
        let key = fs::read_to_string(&key_file).expect("the server makes an admin key");
        Self {
            process,
            log,
            api: Api::new(url, key.trim()),
        }
    }

    /// Starts a server that is expected to refuse, waits for its end, and answers its exit code and
    /// its log.
    pub fn fail_to_start(data_dir: &Path, arguments: &[&str]) -> (Option<i32>, String) {
        let (mut process, log) = spawn(Command::new(posthaste()), data_dir, arguments);
        let status = wait_until("a server that refuses to start", || {
            process.try_wait().expect("it is ours")
        });
        let lines = log.wait_for("the end of the log", |lines| {
            (lines.iter().filter(|line| *line == CLOSED).count() == 2).then(|| lines.join("\n"))
        });
        (status.code(), lines)
    }

    /// The address of the listener.
    pub fn url(&self) -> &str {
        self.api.url()
    }

    /// A client of its API.
    pub fn api(&self) -> &Api {
        &self.api
    }

    /// The number of the process.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// The most bytes that it ever had resident, as the kernel has kept them: no look is too late
    /// for it.
    pub fn resident_bytes_max(&self) -> u64 {
        let status =
            fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("the process runs");
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))
            .expect("status has the line");
        let kib = line
            .split_whitespace()
            .next()
            .and_then(|number| number.parse::<u64>().ok());
        kib.expect("it is a number") * 1024
    }

    /// The log until now.
    pub fn log(&self) -> Vec<String> {
        self.log.all()
    }

    /// Sends SIGTERM: finish and go.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> ExitStatus {
        wait_until("the server's end", || {
            self.process.try_wait().expect("the process is ours")
        })
    }

    /// Ends it in order, and wants it to end well.
    pub fn stop(mut self) {
        self.terminate();
        let status = self.wait();
        assert_eq!(
            status.code(),
            Some(0),
            "the log:\n{}",
            self.log().join("\n")
        );
    }

    /// Whether the process is over.
    pub fn has_ended(&mut self) -> bool {
        let status = self.process.try_wait();
        status.expect("the process is ours").is_some()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.id(), signal).expect("the process is ours and still there");
    }

    /// The number of the process, for calls of the system.
    pub fn id(&self) -> Pid {
        Pid::from_child(&self.process)
    }

    /// `kill -9`.
    pub fn kill(mut self) {
        self.process.kill().expect("the process is ours");
        self.process.wait().expect("the process is ours");
    }
}

#[expect(
    clippy::print_stderr,
    reason = "a test that fails shows what the server said"
)]
impl Drop for Server {
    fn drop(&mut self) {
        // An error means that it has already ended, which is the aim.
        let _ = self.process.kill();
        let _ = self.process.wait();
        if thread::panicking() {
            eprintln!("--- the server's log ---\n{}", self.log().join("\n"));
        }
    }
}

fn spawn(mut command: Command, data_dir: &Path, arguments: &[&str]) -> (Child, Seen<String>) {
    command.args([
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--allow-endpoints",
        "127.0.0.0/8",
        "--log",
        "json",
    ]);
    command.arg("--data-dir").arg(data_dir).args(arguments);
    command
        .env_remove("POSTHASTE_KEY")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut process = command.spawn().expect("posthaste starts");
    let log = Seen::default();
    let streams: [Option<Box<dyn Read + Send>>; 2] = [
        process
            .stdout
            .take()
            .map(|stream| Box::new(stream) as Box<dyn Read + Send>),
        process
            .stderr
            .take()
            .map(|stream| Box::new(stream) as Box<dyn Read + Send>),
    ];
    for stream in streams.into_iter().flatten() {
        let log = log.clone();
        thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                log.push(line);
            }
            log.push(CLOSED.to_owned());
        });
    }
    (process, log)
}

/// The address in the log line that says where the server listens. Endpoints are logged as well,
/// sometimes earlier.
fn url_in(line: &str) -> Option<String> {
    let line: Value = serde_json::from_str(line).ok()?;
    line["message"]
        .as_str()
        .filter(|message| message.starts_with("listening"))?;
    line["url"].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_the_one_the_server_listens_on() {
        let check =
            |line: &str, expected: Option<&str>| assert_eq!(url_in(line).as_deref(), expected);
        check(
            r#"{"message":"listening on http://h:1","url":"http://h:1"}"#,
            Some("http://h:1"),
        );
        check(
            r#"{"message":"delivery attempt failed","url":"http://h:2"}"#,
            None,
        );
        check("listening on http://h:1", None);
    }
}
