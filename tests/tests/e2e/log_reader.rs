//! A reader of the log that keeps its pipe open and reads nothing: it misses lines, and nobody waits
//! for it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, Command, Stdio};

use posthaste_tests::api::Api;
use posthaste_tests::binary::posthaste;
use posthaste_tests::events::cloud_event;
use posthaste_tests::home::Home;
use posthaste_tests::patience::wait_until;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// A request makes a line of 200 bytes, and the program keeps 4 MiB of lines.
const REQUESTS_OF_A_ROUND: usize = 500;
const ROUNDS_MAX: usize = 120;

/// A server whose log is read by the test, line by line.
struct Served {
    process: Child,
    log: BufReader<ChildStderr>,
    api: Api,
}

impl Served {
    fn start(home: &Home) -> Self {
        let mut process = Command::new(posthaste())
            .args(["serve", "--listen", "127.0.0.1:0", "--log", "json"])
            .args(["--log-filter", "trace", "--data-dir"])
            .arg(home.path())
            .env_remove("POSTHASTE_KEY")
            .stderr(Stdio::piped())
            .spawn()
            .expect("posthaste starts");
        let mut log = BufReader::new(process.stderr.take().expect("it is a pipe"));
        let line = line_with(&mut log, |line| line["url"].is_string());
        let key = fs::read_to_string(home.path().join("admin.key")).expect("there is a key");
        let url = line["url"].as_str().expect("it is text").to_owned();
        Self {
            process,
            log,
            api: Api::new(url, key.trim()),
        }
    }

    /// Publishes until lines are lost: the pipe and the program's memory for lines are full. That is
    /// bounded by a count, since a busy machine needs minutes for it.
    fn fill(&self) {
        let topic = self.api.create_topic("orders", &json!({}));
        let is_full = (0..ROUNDS_MAX).any(|_| {
            for _ in 0..REQUESTS_OF_A_ROUND {
                topic.publish(&cloud_event("1"));
            }
            self.api.metric("posthaste_log_lines_lost_total") > 0.0
        });
        assert!(is_full, "no line is lost");
        // And nobody waits from then on.
        topic.publish(&cloud_event("2"));
    }

    fn terminate(&self) {
        let pid = i32::try_from(self.process.id()).expect("a process has a number");
        let pid = Pid::from_raw(pid).expect("a process has a number");
        kill_process(pid, Signal::TERM).expect("it is ours");
    }

    fn wait(&mut self) {
        let ended = wait_until("its end", || self.process.try_wait().expect("it is ours"));
        assert_eq!(ended.code(), Some(0));
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // An error means that it has already ended, which is the aim.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn line_with(log: &mut impl BufRead, is_it: impl Fn(&Value) -> bool) -> Value {
    let lines = log.lines().map(|line| line.expect("the log is text"));
    let parsed = lines.map(|line| serde_json::from_str::<Value>(&line).expect("a line is JSON"));
    parsed.into_iter().find(is_it).expect("the line is there")
}

#[test]
fn reader_that_stops_stops_nobody_and_learns_what_it_missed() {
    let home = Home::new();
    let mut served = Served::start(&home);
    served.fill();
    let is_it = |line: &Value| {
        line["message"]
            .as_str()
            .is_some_and(|it| it.starts_with("log lines were"))
    };
    let line = line_with(&mut served.log, is_it);
    assert!(
        line["lines"].as_u64().is_some_and(|lines| lines > 0),
        "{line}"
    );
    served.terminate();
    // The last lines are there for a reader that reads.
    line_with(&mut served.log, |line| {
        line["message"]
            .as_str()
            .is_some_and(|it| it.starts_with("draining"))
    });
    served.wait();
}

#[test]
fn server_ends_although_nobody_reads_its_log() {
    let home = Home::new();
    let mut served = Served::start(&home);
    served.fill();
    served.terminate();
    served.wait();
}
