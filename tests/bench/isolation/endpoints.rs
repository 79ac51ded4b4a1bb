//! All endpoints, seen from the bench. They run in a process of their own, so that their CPU time
//! is counted apart.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use posthaste_tests::api::Api;
use serde::{Deserialize, Serialize};

use crate::arrived::Seen;
use crate::fault::Fault;

/// The argument that makes this program the endpoints.
pub(crate) const ROLE: &str = "endpoints";

/// The path of the hundredth.
pub(crate) const HUNDREDTH_PATH: &str = "/hundredth";

/// Hosts and ports of the healthy ones: nine subscriptions on each.
pub(crate) const LINKS: usize = 11;

/// The addresses of the endpoints.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Addresses {
    /// For questions.
    pub(crate) control: SocketAddr,
    /// The healthy ones.
    pub(crate) healthy: Vec<SocketAddr>,
    /// The hundredth.
    pub(crate) hundredth: SocketAddr,
}

/// The running process.
#[derive(Debug)]
pub(crate) struct Endpoints {
    process: Child,
    addresses: Addresses,
    api: Api,
}

impl Endpoints {
    /// Starts them. All are well.
    pub(crate) fn start() -> Self {
        let program = std::env::current_exe().expect("this program has a path");
        let mut process = Command::new(program)
            .arg(ROLE)
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program starts");
        let mut line = String::new();
        let output = process.stdout.take().expect("it is piped");
        BufReader::new(output)
            .read_line(&mut line)
            .expect("it says where it listens");
        let addresses: Addresses = serde_json::from_str(&line).expect("it says where it listens");
        let api = Api::new(format!("http://{}", addresses.control), "");
        Self {
            process,
            addresses,
            api,
        }
    }

    /// The URL of a healthy one.
    pub(crate) fn healthy(&self, n: usize) -> String {
        format!("http://{}/s{n}", self.addresses.healthy[n % LINKS])
    }

    /// The URL of the hundredth: where the first nine healthy ones are, or on a host of its own.
    pub(crate) fn hundredth(&self, is_shared: bool) -> String {
        let address = if is_shared {
            self.addresses.healthy[0]
        } else {
            self.addresses.hundredth
        };
        format!("http://{address}{HUNDREDTH_PATH}")
    }

    /// Gives the hundredth a fault.
    pub(crate) fn turn(&self, fault: Fault) {
        self.ask(&format!("/turn/{}", fault.name()));
    }

    /// Forgets what arrived.
    pub(crate) fn reset(&self) {
        self.ask("/reset");
    }

    /// The events that arrived until now.
    pub(crate) fn seen(&self) -> Seen {
        serde_json::from_slice(&self.ask("/seen")).expect("it says what it saw")
    }

    fn ask(&self, path: &str) -> Vec<u8> {
        self.api
            .send("GET", path, &[], b"")
            .expect("they answer")
            .expect(200)
            .body
    }
}

impl Drop for Endpoints {
    fn drop(&mut self) {
        // An error means that it has already ended by itself, which is as good.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
