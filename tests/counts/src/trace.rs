//! A server under strace, which writes down its system calls.

mod calls;
mod line;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use posthaste_tests::binary::posthaste;
use posthaste_tests::server::Server;
use tempfile::NamedTempFile;

pub(crate) use calls::Calls;

/// Worker threads of the server, so that it has the same number on every machine.
const WORKERS: &str = "1";

/// Bytes of a text that strace shows. No one looks at them.
const TEXT_BYTES: &str = "0";

/// The trace of one server.
#[derive(Debug)]
pub(crate) struct Trace {
    data_dir: PathBuf,
    file: File,
    /// The beginning of a line that was not whole yet.
    rest: String,
}

impl Trace {
    /// Starts a server under strace, which writes down these calls, or all. strace stops the server
    /// at each of these calls, and at no other.
    pub(crate) fn start(calls: Option<&str>, data_dir: &Path, options: &[&str]) -> (Server, Self) {
        let version = Command::new("strace")
            .arg("--version")
            .stdout(Stdio::null())
            .status();
        let advice = "this test counts system calls with strace: `tests/counts/strace` installs it";
        assert!(version.is_ok_and(|status| status.success()), "{advice}");
        let file = NamedTempFile::new().expect("there is room for a temporary file");
        let mut strace = Command::new("strace");
        // The process becomes the server, and strace a process beside it that ends with it.
        strace.args([
            "-D",
            "-f",
            "-q",
            "-y",
            "-s",
            TEXT_BYTES,
            "-e",
            "signal=none",
        ]);
        if let Some(calls) = calls {
            strace.args(["--seccomp-bpf", "-e", &format!("trace={calls}")]);
        }
        strace
            .arg("-o")
            .arg(file.path())
            .arg(posthaste())
            .env("TOKIO_WORKER_THREADS", WORKERS);
        let server = Server::start_by(strace, data_dir, options);
        // strace has opened the file as well, which needs no name any more.
        (
            server,
            Self {
                data_dir: data_dir.to_owned(),
                file: file.into_file(),
                rest: String::new(),
            },
        )
    }

    /// The calls since the last time. strace writes the line of a call before it lets the thread go
    /// on.
    pub(crate) fn next_calls(&mut self) -> Calls {
        let mut text = std::mem::take(&mut self.rest);
        self.file
            .read_to_string(&mut text)
            .expect("strace writes text");
        self.rest = text.split_off(text.rfind('\n').map_or(0, |end| end + 1));
        Calls::of(&text, &self.data_dir)
    }
}
