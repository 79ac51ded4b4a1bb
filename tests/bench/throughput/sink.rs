//! The endpoints: they answer 204, count, and note the time of each event. A process of its own, so
//! that its CPU time is counted apart.

mod arrived;
mod certificate;
mod serving;

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use posthaste_tests::api::Api;
use posthaste_tests::patience::wait_until;
use serde_json::Value;
use tempfile::TempDir;

pub(crate) use serving::serve;

/// The argument that makes this program a sink. The number of its hosts follows.
pub(crate) const ROLE: &str = "sink";

/// A running sink.
#[derive(Debug)]
pub(crate) struct Sink {
    process: Child,
    /// The addresses of its hosts.
    pub(crate) hosts: Vec<SocketAddr>,
    /// The address that speaks TLS.
    tls: SocketAddr,
    folder: TempDir,
    api: Api,
}

impl Sink {
    /// Starts one that listens on so many hosts.
    pub(crate) fn start(hosts: usize) -> Self {
        let program = std::env::current_exe().expect("this program has a path");
        let folder = TempDir::new().expect("there is room for a temporary folder");
        let mut command = Command::new(program);
        command
            .args([ROLE, &hosts.to_string()])
            .arg(ca_file(folder.path()))
            .stdout(Stdio::piped());
        let mut process = command.spawn().expect("this program starts");
        let mut line = String::new();
        let output = process.stdout.take().expect("it is piped");
        BufReader::new(output)
            .read_line(&mut line)
            .expect("it says where it listens");
        let (hosts, tls): (Vec<SocketAddr>, _) =
            serde_json::from_str(&line).expect("it says where it listens");
        let api = Api::new(format!("http://{}", hosts[0]), "");
        Self {
            process,
            hosts,
            tls,
            folder,
            api,
        }
    }

    /// The URL of its first host.
    pub(crate) fn url(&self) -> String {
        self.url_of(0)
    }

    /// The URL of a host.
    pub(crate) fn url_of(&self, host: usize) -> String {
        format!("http://{}", self.hosts[host])
    }

    /// The URL that speaks TLS, and the certificate to trust for it.
    pub(crate) fn tls(&self) -> (String, PathBuf) {
        (format!("https://{}", self.tls), ca_file(self.folder.path()))
    }

    /// Forgets what arrived. What is held now will not count.
    pub(crate) fn reset(&self) {
        self.ask("/reset");
    }

    /// Answers no more, or hardly: each answer is held for some seconds.
    pub(crate) fn hold(&self) {
        self.ask("/hold");
    }

    /// Answers everything again, at once.
    pub(crate) fn release(&self) {
        self.ask("/release");
    }

    /// The number of events that arrived.
    pub(crate) fn count(&self) -> usize {
        self.ask("/count")["count"]
            .as_u64()
            .and_then(|count| usize::try_from(count).ok())
            .unwrap_or(0)
    }

    /// Waits for so many arrivals, for as long as there are more of them: a run may take far longer
    /// than a test.
    pub(crate) fn wait_for(&self, count: usize) {
        let mut seen = self.count();
        while seen < count {
            let before = seen;
            seen = wait_until("more arrivals", || {
                Some(self.count()).filter(|seen| *seen > before)
            });
        }
    }

    /// The arrival of the last one, in seconds since the epoch.
    pub(crate) fn last(&self) -> f64 {
        self.ask("/count")["last"]
            .as_f64()
            .expect("something arrived")
    }

    /// The times from publish to arrival, in milliseconds: median, 99th percentile, most.
    pub(crate) fn took_ms(&self) -> [f64; 3] {
        let took = self.ask("/took");
        ["p50", "p99", "max"].map(|name| took[name].as_f64().expect("something arrived"))
    }

    fn ask(&self, path: &str) -> Value {
        self.api
            .send("GET", path, &[], b"")
            .expect("the sink answers")
            .expect(200)
            .json()
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        // An error means that it has already ended by itself, which is as good.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn ca_file(folder: &Path) -> PathBuf {
    folder.join("ca.pem")
}
