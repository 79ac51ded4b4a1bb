//! `doctor` against a server as a process, and against endpoints that are not well.

use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::path::Path;
use std::process::Output;
use std::sync::Arc;
use std::thread;

use crate::common::{Server, failure, run};
use posthaste_tests::authority::Authority;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;

/// The exit code, and the checks in JSON.
fn checked(output: &Output) -> (i32, Vec<Value>) {
    let text = String::from_utf8_lossy(&output.stdout);
    let reply: Value = serde_json::from_str(&text)
        .unwrap_or_else(|_| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)));
    let checks = reply["checks"].as_array().unwrap().clone();
    (output.status.code().unwrap(), checks)
}

/// The check of this name whose object begins like this.
fn find<'a>(checks: &'a [Value], name: &str, of: &str) -> &'a Value {
    let is_it = |it: &&Value| it["check"] == name && it["of"].as_str().unwrap().starts_with(of);
    let found = checks.iter().find(is_it);
    found.unwrap_or_else(|| panic!("no {name} of {of}: {checks:#?}"))
}

fn text<'a>(check: &'a Value, member: &str) -> &'a str {
    check[member].as_str().unwrap()
}

#[test]
fn server_that_is_well_has_no_failed_check() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    let output = server.run(&["doctor", "--endpoints", "--json"]);
    let (code, checks) = checked(&output);
    // How full the disk is, and what follows from that, is this machine's.
    let failed = checks.iter().filter(|it| it["result"] == "failed");
    let failed: Vec<_> = failed.map(|it| text(it, "check")).collect();
    assert!(
        failed.iter().all(|it| ["disk", "pressure"].contains(it)),
        "{checks:#?}"
    );
    assert_eq!(code, i32::from(!failed.is_empty()), "{checks:#?}");
    let names: Vec<_> = checks.iter().map(|it| text(it, "check")).collect();
    let expected = [
        "server",
        "ready",
        "clock",
        "version",
        "key",
        "store",
        "store",
        "store",
        "pressure",
        "server-clock",
        "waiting",
        "disk",
        "open-files",
        "endpoint",
    ];
    assert_eq!(names, expected);
    for check in [
        "server", "ready", "clock", "version", "key", "store", "waiting", "endpoint",
    ] {
        assert_eq!(find(&checks, check, "")["result"], "ok", "{checks:#?}");
    }
    let disk = find(&checks, "disk", folder.path().to_str().unwrap());
    assert!(text(disk, "found").contains("% used"), "{disk}");
}

#[test]
fn people_get_a_line_for_each_check_and_a_summary() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    let output = server.run(&["doctor"]);
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(
        shown.starts_with(&format!("ok       server        {}", server.url)),
        "{shown}"
    );
    let last = shown.lines().last().unwrap();
    assert!(last.contains(" ok"), "{shown}");
}

#[test]
fn server_that_is_away_fails_and_the_rest_is_unknown() {
    // A port on which nothing listens any more.
    let address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let url = format!("http://{address}");
    let output = run(&["doctor", "--json", "--key", "k", "--url", &url]);
    let (code, checks) = checked(&output);
    assert_eq!(code, 1);
    let server = find(&checks, "server", &url);
    assert_eq!(server["result"], "failed");
    assert!(text(server, "found").contains("refused"), "{server}");
    assert!(
        text(server, "advice").contains("posthaste serve"),
        "{server}"
    );
    assert_eq!(find(&checks, "installation", &url)["result"], "unknown");
    let (_, error) = failure(&output);
    assert!(error.contains("1 of 2 checks failed"), "{error}");
}

#[test]
fn wrong_key_fails_and_what_is_seen_without_it_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    let wrong = "a-key-that-is-not-the-one-of-this-server";
    let output = run(&["doctor", "--json", "--key", wrong, "--url", &server.url]);
    let (code, checks) = checked(&output);
    assert_eq!(code, 1);
    let key = find(&checks, "key", "the admin key");
    assert_eq!(key["result"], "failed");
    assert!(text(key, "advice").contains("another key"), "{key}");
    assert_eq!(find(&checks, "server", &server.url)["result"], "ok");
    assert_eq!(find(&checks, "version", &server.url)["result"], "ok");
    assert!(!String::from_utf8_lossy(&output.stdout).contains(wrong));
}

/// An endpoint with a certificate, whose authority is in `ca.pem` of the folder. It reads whatever
/// comes and counts as a request what has bytes after the handshake.
fn endpoint(folder: &Path, is_expired: bool) -> (String, thread::JoinHandle<Vec<usize>>) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    fs::write(folder.join("ca.pem"), authority.pem()).unwrap();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    if is_expired {
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2021, 1, 1);
    }
    let certificate = params.signed_by(&key, &authority).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
        )
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/hooks", listener.local_addr().unwrap());
    let served = thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let connection = ServerConnection::new(config).unwrap();
        let mut rest = Vec::new();
        // A client that does not trust the certificate, or only looks, leaves.
        let read = StreamOwned::new(connection, stream).read_to_end(&mut rest);
        drop(read);
        vec![rest.len()]
    });
    (url, served)
}

/// The check of an endpoint, by a server that trusts the folder's authority and may go to
/// `allowed`.
fn endpoint_check(folder: &Path, url: &str, allowed: Option<&str>) -> (i32, Value) {
    let ca = folder.join("ca.pem");
    let mut options = Vec::new();
    if ca.exists() {
        options.extend(["--extra-ca", ca.to_str().unwrap()]);
    }
    let data = folder.join("data");
    let subscribing = Server::start(
        &data,
        &[&options[..], &["--allow-endpoints", "127.0.0.0/8"]].concat(),
    );
    let file = format!(
        "topics: {{ orders: {{ subscriptions: {{ billing: {{ endpoint: {{ url: '{url}' }} }} }} }} }}"
    );
    subscribing.json(&["apply", "-f", "-"], &file);
    drop(subscribing);
    options.extend(
        allowed
            .iter()
            .flat_map(|allowed| ["--allow-endpoints", allowed]),
    );
    let server = Server::start(&data, &options);
    let (code, checks) = checked(&server.run(&["doctor", "--endpoints", "--json"]));
    (code, find(&checks, "endpoint", "http").clone())
}

#[test]
fn endpoint_with_a_good_certificate_is_ok_and_gets_no_request() {
    let folder = tempfile::tempdir().unwrap();
    let (url, served) = endpoint(folder.path(), false);
    let (code, check) = endpoint_check(folder.path(), &url, Some("127.0.0.0/8"));
    assert_eq!((code, &check["result"]), (0, &"ok".into()), "{check}");
    assert!(text(&check, "of").ends_with(" (orders/billing)"), "{check}");
    let found = text(&check, "found");
    assert!(found.starts_with("connected to 127.0.0.1, TLS verified, the certificate ends in "));
    assert_eq!(served.join().unwrap(), [0]);
}

#[test]
fn endpoint_with_an_expired_certificate_fails() {
    let folder = tempfile::tempdir().unwrap();
    let (url, served) = endpoint(folder.path(), true);
    let (code, check) = endpoint_check(folder.path(), &url, Some("127.0.0.0/8"));
    assert_eq!((code, &check["result"]), (1, &"failed".into()), "{check}");
    let found = text(&check, "found");
    assert!(
        found.contains("not trusted") && found.contains("2021-01-01"),
        "{found}"
    );
    assert_eq!(served.join().unwrap(), [0]);
}

#[test]
fn endpoint_whose_address_is_refused_is_not_connected_to() {
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let (code, check) = endpoint_check(folder.path(), &url, None);
    assert_eq!((code, &check["result"]), (1, &"failed".into()), "{check}");
    let found = text(&check, "found");
    assert!(
        found.starts_with("refused: the address 127.0.0.1 is not public"),
        "{found}"
    );
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err());
}

#[test]
fn endpoint_whose_name_does_not_exist_fails() {
    let folder = tempfile::tempdir().unwrap();
    // RFC 6761 keeps this name from ever existing.
    let (code, check) = endpoint_check(folder.path(), "https://posthaste.invalid/", None);
    assert_eq!((code, &check["result"]), (1, &"failed".into()), "{check}");
    assert!(
        text(&check, "found").starts_with("the host name "),
        "{check}"
    );
}

#[test]
fn server_of_an_own_authority_is_trusted_by_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let authority = Authority::new();
    let files = authority.issue(&["localhost"]).write(folder.path());
    let [certificate, key] = files.each_ref().map(|path| path.to_str().unwrap());
    let server = Server::start(&data, &["--tls-cert", certificate, "--tls-key", key]);
    let url = server.url.replace("127.0.0.1", "localhost");
    let trusted = folder.path().join("ca.pem");
    fs::write(&trusted, authority.pem()).unwrap();
    let here = [
        "doctor",
        "--json",
        "--url",
        &url,
        "--data-dir",
        data.to_str().unwrap(),
    ];
    let (code, checks) = checked(&run(&here));
    let of_server = find(&checks, "certificate", "https://localhost");
    assert_eq!(
        (code, text(of_server, "result")),
        (1, "failed"),
        "{checks:#?}"
    );
    let ca = ["--ca-cert", trusted.to_str().unwrap()];
    let (_, checks) = checked(&run(&[&here, &ca[..]].concat()));
    for check in ["certificate", "server", "key"] {
        assert_eq!(find(&checks, check, "")["result"], "ok", "{checks:#?}");
    }
}
