//! The program with everything that it runs on: its disk, its clock and its name server.

use std::ffi::OsString;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use posthaste_tests::api::{Api, Topic};
use posthaste_tests::binary::posthaste;
use posthaste_tests::disk::SmallDisk;
use posthaste_tests::home::Home;
use posthaste_tests::name_server::{NameAnswer, NameServer};
use posthaste_tests::patience::{rest, wait_until};
use posthaste_tests::seed::Seed;
use posthaste_tests::seen::Seen;
use posthaste_tests::server::Server;
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, prlimit};
use serde_json::Value;
use tempfile::TempDir;

use crate::moods::HOST;
use crate::swallower::SWALLOWS;
use crate::trouble::Trouble;

/// The topic of all events.
pub(crate) const TOPIC: &str = "orders";

/// An address of this machine at which nobody listens.
const NOBODY: &str = "127.0.0.9";

/// Descriptors and bytes of memory that a process may have beside those that it has.
const FEW_DESCRIPTORS: usize = 4;
const LITTLE_MEMORY: u64 = 8 * 1024 * 1024;

/// The file of the clock's offset is read again so often.
const CLOCK_CACHED_SECS: &str = "1";

/// The settings that let a server use a small disk up to its end.
const PRESSURE: &str = "\
PercentageDatabaseDiskSpaceUsedHighThreshold: 95
DatabaseCheckPointDepthMax: 1 MB
";
const PRESSURE_FILE: &str = "pressure.yaml";

/// The program that is tortured, and the parts that it needs.
#[derive(Debug)]
pub(crate) struct Parts {
    /// The library that moves the clock (libfaketime).
    pub(crate) clock: PathBuf,
    /// The program of a former release.
    pub(crate) former: Option<PathBuf>,
    pub(crate) disk_bytes: u64,
}

/// A machine with a server on it.
pub(crate) struct Machine {
    parts: Parts,
    // Before the disk, on which it has open files.
    server: Option<Server>,
    disk: SmallDisk,
    home: Home,
    own: TempDir,
    names: NameServer,
    clock_offset_secs: i64,
    /// The topic at each server that there was.
    topics: Seen<Topic>,
}

impl Machine {
    /// Starts a server on an empty disk, and makes the topic.
    pub(crate) fn start(parts: Parts, topic: &Value, topics: Seen<Topic>) -> Self {
        let home = Home::new();
        let own = tempfile::tempdir().expect("a temporary folder");
        let disk = SmallDisk::mount(home.path(), parts.disk_bytes);
        let mut machine = Self {
            parts,
            server: None,
            disk,
            home,
            own,
            names: NameServer::start(),
            clock_offset_secs: 0,
            topics,
        };
        fs::write(machine.own.path().join(PRESSURE_FILE), PRESSURE).expect("a file of settings");
        machine.names.resolve(HOST, &["127.0.0.1"]);
        machine.move_clock(0);
        let server = machine.serve(posthaste());
        let made = server.api().create_topic(TOPIC, topic);
        machine.topics.push(made);
        machine.server = Some(server);
        machine
    }

    pub(crate) fn api(&self) -> &Api {
        self.server().api()
    }

    pub(crate) fn home(&self) -> &Home {
        &self.home
    }

    /// Does this to it, until it is over.
    pub(crate) fn suffer(&mut self, trouble: Trouble, seed: &mut Seed) {
        let while_it_lasts = Duration::from_millis(1000 + seed.below(5000) as u64);
        match trouble {
            Trouble::Kill => self.kill(),
            Trouble::Freeze => self.freeze(while_it_lasts * 2),
            Trouble::Restart => self.restart_as(posthaste()),
            Trouble::FullDisk => {
                self.disk.fill();
                rest(while_it_lasts);
                self.disk.free();
            }
            Trouble::KillOnFullDisk => {
                self.disk.fill();
                rest(while_it_lasts);
                self.end_by_force();
                self.disk.free();
                self.go_on(posthaste());
            }
            Trouble::FailingSync => self.inject("error=EIO", while_it_lasts / 4),
            Trouble::SlowSync => self.inject("delay_exit=200000", while_it_lasts),
            Trouble::ClockForward => self.move_clock(90),
            Trouble::ClockBack => self.move_clock(-5),
            Trouble::LyingNames => self.lie(seed, while_it_lasts),
            Trouble::SwallowedPackets => {
                self.mislead(
                    NameAnswer::Addresses(vec![address(SWALLOWS)]),
                    while_it_lasts,
                );
            }
            Trouble::FewDescriptors => {
                let open = fs::read_dir(format!("/proc/{}/fd", self.server().pid()));
                let open = open.expect("the process runs").count();
                self.limit(
                    Resource::Nofile,
                    (open + FEW_DESCRIPTORS) as u64,
                    while_it_lasts,
                );
            }
            Trouble::LittleMemory => {
                let has = virtual_bytes(self.server().pid());
                self.limit(Resource::As, has + LITTLE_MEMORY, while_it_lasts);
                // Whoever found none is gone by then.
                rest(Duration::from_secs(1));
            }
            Trouble::OtherRelease => {
                let former = self.parts.former.clone();
                self.restart_as(&former.expect("a former release is given"));
                rest(while_it_lasts);
                self.restart_as(posthaste());
            }
        }
    }

    /// Starts a new process if the last one has ended by itself, and answers what it said last.
    pub(crate) fn revive(&mut self) -> Option<String> {
        let server = self.server.as_mut().expect("a server");
        if !server.has_ended() {
            return None;
        }
        let log = server.log();
        self.go_on(posthaste());
        Some(last_of(&log))
    }

    /// Ends it in order, and answers what is wrong if it does not end well.
    pub(crate) fn stop(mut self) -> Option<String> {
        let mut server = self.server.take().expect("a server");
        server.terminate();
        let status = server.wait();
        let log = server.log();
        (!status.success()).then(|| format!("it ended with {status}: {}", last_of(&log)))
    }

    fn server(&self) -> &Server {
        self.server.as_ref().expect("a server")
    }

    fn kill(&mut self) {
        self.end_by_force();
        self.go_on(posthaste());
    }

    fn end_by_force(&mut self) {
        let server = self.server.take().expect("a server");
        let pid = server.pid();
        server.kill();
        // What libfaketime shares between the processes that a process starts, and leaves there.
        for kind in ["faketime_shm", "sem.faketime_sem"] {
            let _ = fs::remove_file(format!("/dev/shm/{kind}_{pid}"));
        }
    }

    fn restart_as(&mut self, program: &Path) {
        self.server.take().expect("a server").stop();
        self.go_on(program);
    }

    fn go_on(&mut self, program: &Path) {
        let server = self.serve(program);
        self.topics.push(server.api().topic(TOPIC));
        self.server = Some(server);
    }

    fn serve(&self, program: &Path) -> Server {
        let mut command = Command::new(program);
        command
            .env("LD_PRELOAD", &self.parts.clock)
            .env("FAKETIME_TIMESTAMP_FILE", self.clock_file())
            .env("FAKETIME_CACHE_DURATION", CLOCK_CACHED_SECS)
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        let names = self.names.address().to_string();
        let pressure = self.own.path().join(PRESSURE_FILE);
        let pressure = pressure.to_str().expect("a path of letters");
        let arguments = ["--dns-server", &names, "--pressure-settings", pressure];
        Server::start_by(command, self.home.path(), &arguments)
    }

    fn freeze(&self, length: Duration) {
        self.server().signal(Signal::STOP);
        rest(length);
        self.server().signal(Signal::CONT);
    }

    /// Lets calls that write to the disk go wrong.
    fn inject(&self, fault: &str, length: Duration) {
        let mut tracer = Command::new("strace")
            .args(["-f", "-qq", "-e", "trace=fdatasync,fsync", "-e"])
            .arg(format!("inject=fdatasync,fsync:{fault}"))
            .args(["-o", "/dev/null", "-p", &self.server().pid().to_string()])
            .stdin(Stdio::null())
            .spawn()
            .expect("strace starts");
        let pid = self.server().pid();
        wait_until("the tracer", || is_traced(pid).then_some(()));
        rest(length);
        interrupt(&mut tracer);
    }

    fn clock_file(&self) -> OsString {
        self.own.path().join("clock").into()
    }

    fn move_clock(&mut self, by_secs: i64) {
        self.clock_offset_secs += by_secs;
        let file = self.clock_file();
        let next = self.own.path().join("next");
        fs::write(&next, format!("{:+}\n", self.clock_offset_secs)).expect("a file of the clock");
        fs::rename(&next, file).expect("a file of the clock");
    }

    fn lie(&self, seed: &mut Seed, length: Duration) {
        let lies = [
            NameAnswer::NoSuchName,
            NameAnswer::Failure,
            NameAnswer::Silence,
            NameAnswer::Addresses(vec![address(NOBODY)]),
        ];
        self.mislead(lies[seed.below(lies.len())].clone(), length);
    }

    /// Answers the name of receivers like this for a while.
    fn mislead(&self, answer: NameAnswer, length: Duration) {
        self.names.answer(HOST, answer);
        rest(length);
        self.names.resolve(HOST, &["127.0.0.1"]);
    }

    /// Gives the process no more than so much of something for a while.
    fn limit(&self, resource: Resource, most: u64, length: Duration) {
        let little = Rlimit {
            current: Some(most),
            maximum: getrlimit(resource).maximum,
        };
        let pid = Some(self.server().id());
        let before = prlimit(pid, resource, little).expect("the process is ours");
        rest(length);
        // It may have ended.
        let _ = prlimit(pid, resource, before);
    }
}

/// The last lines of a log.
fn last_of(log: &[String]) -> String {
    log[log.len().saturating_sub(3)..].join("\n")
}

/// Whether a process is traced; so is one that is over.
fn is_traced(pid: u32) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else {
        return true;
    };
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("TracerPid:"));
    line.is_some_and(|tracer| tracer.trim() != "0")
}

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// Ends a tracer, which leaves its process alone then.
fn interrupt(tracer: &mut Child) {
    // It ends by itself with its process.
    let _ = kill_process(Pid::from_child(tracer), Signal::INT);
    wait_until("the tracer's end", || {
        tracer.try_wait().expect("the tracer is ours")
    });
}

/// The address space of a process, in bytes.
fn virtual_bytes(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.expect("status has the line") * 1024
}
