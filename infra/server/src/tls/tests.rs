use super::*;
use posthaste_testkit::ManualClock;
use posthaste_tests::authority::{Authority, Issued};
use std::fs;
use tempfile::TempDir;

/// 2026-01-01.
const START: Timestamp = Timestamp::from_millis(1_767_225_600_000);
const NAMES: &[&str] = &["hooks.example.com"];

struct World {
    authority: Authority,
    folder: TempDir,
    clock: ManualClock,
}

impl World {
    fn new() -> Self {
        Self {
            authority: Authority::new(),
            folder: tempfile::tempdir().unwrap(),
            clock: ManualClock::new(START),
        }
    }

    fn open(&self, issued: &Issued) -> ServerTls {
        let [certificate, key] = issued.write(self.folder.path());
        ServerTls::open(TlsFiles { certificate, key }, START).unwrap()
    }

    fn look(&self, tls: &ServerTls) {
        tls.check_files(self.clock.now());
    }
}

fn is_same(tls: &ServerTls, before: &Arc<ServerConfig>) -> bool {
    Arc::ptr_eq(&tls.config(), before)
}

fn told(tls: &ServerTls) -> Option<bool> {
    let state = tls.state.read();
    state.refused.as_ref().map(|refused| refused.is_told)
}

#[test]
fn new_content_is_taken_and_the_same_content_is_not_news() {
    let world = World::new();
    let issued = world.authority.issue(NAMES);
    let tls = world.open(&issued);
    let first = tls.config();
    // Another time of the file, and the same content.
    issued.write(world.folder.path());
    world.look(&tls);
    assert!(is_same(&tls, &first));
    world.authority.issue(NAMES).write(world.folder.path());
    world.look(&tls);
    assert!(!is_same(&tls, &first));
    assert_eq!(told(&tls), None);
}

#[test]
fn wrong_content_is_told_at_the_second_look_and_never_taken() {
    let world = World::new();
    let issued = world.authority.issue(NAMES);
    let tls = world.open(&issued);
    let first = tls.config();
    let path = world.folder.path().join("tls.key");
    for wrong in ["", &world.authority.issue(NAMES).key] {
        fs::write(&path, wrong).unwrap();
        for expected in [Some(false), Some(true), Some(true)] {
            world.look(&tls);
            assert_eq!(told(&tls), expected);
        }
    }
    fs::remove_file(&path).unwrap();
    world.look(&tls);
    assert_eq!(told(&tls), Some(false));
    assert!(is_same(&tls, &first));
    issued.write(world.folder.path());
    world.look(&tls);
    assert!(is_same(&tls, &first) && told(&tls).is_none());
}

#[test]
fn certificate_outside_of_its_time_is_told_of_and_used() {
    let world = World::new();
    let standing = |tls: &ServerTls| tls.state.read().told;
    let tls = world.open(&world.authority.issue_expired(NAMES));
    assert_eq!(standing(&tls), CertificateStanding::Expired);
    world
        .authority
        .issue_early(NAMES)
        .write(world.folder.path());
    world.look(&tls);
    assert_eq!(standing(&tls), CertificateStanding::NotYet);
    world.authority.issue(NAMES).write(world.folder.path());
    world.look(&tls);
    assert_eq!(standing(&tls), CertificateStanding::Valid);
}

#[test]
fn validity_is_the_one_in_the_certificate() {
    let world = World::new();
    let validity = |issued: &Issued| {
        let tls = world.open(issued);
        let state = tls.state.read();
        state.validity.unwrap()
    };
    let expired = validity(&world.authority.issue_expired(NAMES));
    let begin = "1975-01-01T00:00:00Z";
    let end = "2021-01-01T00:00:00Z";
    let time = |text| Timestamp::parse(text).unwrap();
    assert_eq!((expired.from, expired.until), (time(begin), time(end)));
    let at = |text| CertificateStanding::at_time(time(text), &expired);
    assert_eq!(at("1974-12-31T23:59:59Z"), CertificateStanding::NotYet);
    assert_eq!(at("1975-01-01T00:00:00Z"), CertificateStanding::Valid);
    assert_eq!(at("2021-01-01T00:00:00.999Z"), CertificateStanding::Valid);
    assert_eq!(at("2021-01-01T00:00:01Z"), CertificateStanding::Expired);
}
