//! Helpers of the program's tests: the binary as a process, and a server on a folder of its own.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

/// The program with these arguments, and without the variables of the environment that it reads.
pub(crate) fn posthaste(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_posthaste"));
    command.env_clear().args(arguments).stdin(Stdio::null());
    command
}

/// Runs it to its end.
pub(crate) fn run(arguments: &[&str]) -> Output {
    posthaste(arguments).output().unwrap()
}

/// Runs it to its end with a text as standard input.
pub(crate) fn run_with(arguments: &[&str], input: &str) -> Output {
    let mut command = posthaste(arguments);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    child.wait_with_output().unwrap()
}

/// The exit code and standard error.
pub(crate) fn failure(output: &Output) -> (i32, String) {
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stderr.clone()).unwrap(),
    )
}

/// A server as a process of its own. Dropping it kills it.
pub(crate) struct Server {
    pub url: String,
    pub child: Child,
    data_dir: String,
    log: Option<std::io::Lines<BufReader<std::process::ChildStderr>>>,
}

impl Server {
    /// Starts a server on a data folder and a free port, and waits until it listens.
    pub(crate) fn start(data_dir: &Path, more: &[&str]) -> Self {
        let data_dir = data_dir.to_str().unwrap().to_owned();
        let arguments = [
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--log",
            "json",
            "--data-dir",
            &data_dir,
        ];
        let mut child = posthaste(&[&arguments, more].concat())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut server = Self {
            url: String::new(),
            child,
            data_dir,
            log: Some(log),
        };
        server.url = server.wait_for_log("url");
        server
    }

    /// Reads the log until a line has this member, and returns it.
    pub(crate) fn wait_for_log(&mut self, member: &str) -> String {
        let value = self.wait_for_line(member)[member].take();
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    }

    /// Reads the log until a line has this member, and returns the line.
    pub(crate) fn wait_for_line(&mut self, member: &str) -> Value {
        loop {
            let log = self.log.as_mut().expect("the log is open");
            let line = log
                .next()
                .expect("the server ended before it said so")
                .unwrap();
            let line: Value =
                serde_json::from_str(&line).unwrap_or_else(|_| panic!("no JSON: {line}"));
            if line.get(member).is_some() {
                return line;
            }
        }
    }

    /// Runs a command against it, with the key of its data folder.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        run(&[
            arguments,
            &["--url", &self.url, "--data-dir", &self.data_dir],
        ]
        .concat())
    }

    /// The same with a text as standard input.
    pub(crate) fn run_with(&self, arguments: &[&str], input: &str) -> Output {
        run_with(
            &[
                arguments,
                &["--url", &self.url, "--data-dir", &self.data_dir],
            ]
            .concat(),
            input,
        )
    }

    /// The JSON reply of a command, which must succeed.
    pub(crate) fn json(&self, arguments: &[&str], input: &str) -> Value {
        let output = self.run_with(&[arguments, &["--json"]].concat(), input);
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Closes the reading end of its log, as `head` does when it has seen enough.
    pub(crate) fn close_log(&mut self) {
        self.log = None;
    }

    /// Sends a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-s", name, &pid])
                .status()
                .unwrap()
                .success()
        );
    }

    /// Waits for the end and returns the exit code. The log is read on, so that it never blocks the
    /// server.
    pub(crate) fn end(mut self) -> Option<i32> {
        while self.log.as_mut().is_some_and(|log| log.next().is_some()) {}
        self.child.wait().unwrap().code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The server may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
