//! TLS of the server's own: who may ask, what is said of wrong files, and a certificate that is
//! renewed while the server goes on.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use posthaste_tests::api::Api;
use posthaste_tests::authority::{Authority, Issued};
use posthaste_tests::endpoint::Endpoint;
use posthaste_tests::events::{cloud_event, subscription};
use posthaste_tests::home::Home;
use posthaste_tests::patience::{PATIENCE, wait_until};
use posthaste_tests::server::Server;
use serde_json::Value;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

const FREE: &str = "127.0.0.1:0";
const HERE: &[&str] = &["127.0.0.1"];

/// The lines of the log with this message.
fn lines(server: &Server, message: &str) -> Vec<Value> {
    let lines = server.log().into_iter();
    let parsed = lines.filter_map(|line| serde_json::from_str::<Value>(&line).ok());
    parsed
        .filter(|line| line["message"].as_str() == Some(message))
        .collect()
}

/// A URL of the line that says where the server listens.
fn url_of(server: &Server, member: &str) -> String {
    let lines = lines(server, &format!("listening on {}", server.url()));
    lines[0][member].as_str().expect("a text").to_owned()
}

fn start(home: &Home, folder: &Path, more: &[&str]) -> Server {
    let [certificate, key] = ["tls.crt", "tls.key"].map(|name| folder.join(name));
    let of_tls = [
        "--tls-cert",
        certificate.to_str().expect("a path of ASCII"),
        "--tls-key",
        key.to_str().expect("a path of ASCII"),
    ];
    Server::start(home.path(), &[&of_tls, more].concat())
}

/// One connection, which is kept.
type Kept = StreamOwned<ClientConnection, TcpStream>;

fn connect(server: &Server, authority: &Authority, protocols: &[&str]) -> Kept {
    let mut roots = RootCertStore::empty();
    let root = CertificateDer::from_pem_slice(authority.pem().as_bytes()).expect("it is in PEM");
    roots.add(root).expect("it is an authority");
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring has them")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|it| it.as_bytes().to_vec()).collect();
    let name = "127.0.0.1".try_into().expect("a name of a server");
    let connection = ClientConnection::new(Arc::new(config), name).expect("it can begin");
    let stream = TcpStream::connect(server.url().trim_start_matches("https://"));
    let stream = stream.expect("the server listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("not zero");
    StreamOwned::new(connection, stream)
}

fn is_healthy(kept: &mut Kept) -> bool {
    let sent = kept.write_all(b"GET /livez HTTP/1.1\r\nhost: h\r\n\r\n");
    let mut answer = Vec::new();
    let mut piece = [0; 1024];
    while sent.is_ok() && !answer.ends_with(b"}") {
        match kept.read(&mut piece) {
            Ok(0) | Err(_) => return false,
            Ok(bytes) => answer.extend_from_slice(&piece[..bytes]),
        }
    }
    answer.starts_with(b"HTTP/1.1 200")
}

#[test]
fn every_address_speaks_tls_to_who_trusts_its_authority() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let authority = Authority::new();
    let folder = tempfile::tempdir().expect("there is room");
    authority.issue(HERE).write(folder.path());
    let file = folder.path().join("topics.yaml");
    fs::write(&file, "topics: { bills: {} }\n").expect("a file of topics");
    let config = file.to_str().expect("a path of ASCII");
    let more = [
        "--manage-listen",
        FREE,
        "--metrics-listen",
        FREE,
        "--config",
        config,
    ];
    let server = start(&home, folder.path(), &more);
    let key = server.api().admin_key();
    let urls = ["url", "manage_url", "metrics_url"].map(|member| url_of(&server, member));
    assert!(
        urls.iter().all(|url| url.starts_with("https://")),
        "{urls:?}"
    );
    let [public, management, metrics] = urls.map(|url| {
        let base = url.trim_end_matches("/metrics").to_owned();
        Api::trusting(&authority, base, key)
    });

    // The file of the command line came over TLS too, although nothing here trusts the authority.
    wait_until("a ready server", || {
        let answer = management.manage("GET", "/readyz", None);
        (answer.status == 200).then_some(())
    });
    management.manage("GET", "/topics/bills", None).expect(200);
    let orders = management.create_topic_with("orders", "a", &subscription(&endpoint.url("/a")));
    let keyed = [
        ("aeg-sas-key", orders.keys[0].as_str()),
        ("content-type", "application/cloudevents+json"),
    ];
    let event = cloud_event("1").to_string();
    let published = public.send("POST", &orders.path(), &keyed, event.as_bytes());
    published.expect("an answer").expect(200);
    endpoint.wait_for("/a", 1);
    metrics.manage("GET", "/metrics", None).expect(200);
    let sign_in = management.send("GET", "/console/sign-in", &[], b"");
    let sign_in = sign_in.expect("an answer").expect(200);
    let cookie = sign_in.header("set-cookie").expect("a cookie");
    assert!(cookie.contains("; Secure;"), "{cookie}");

    let stranger = Api::trusting(&Authority::new(), server.url().to_owned(), key);
    let error = stranger
        .send("GET", "/health", &[], b"")
        .expect_err("not trusted");
    assert!(
        error.to_string().contains("invalid peer certificate"),
        "{error}"
    );
    server.stop();
}

#[test]
fn http_1_1_is_the_only_protocol_of_tls() {
    let home = Home::new();
    let authority = Authority::new();
    let folder = tempfile::tempdir().expect("there is room");
    authority.issue(HERE).write(folder.path());
    let server = start(&home, folder.path(), &[]);
    for protocols in [&["h2", "http/1.1"][..], &[]] {
        let mut kept = connect(&server, &authority, protocols);
        assert!(is_healthy(&mut kept), "{protocols:?}");
        let expected = (!protocols.is_empty()).then_some(&b"http/1.1"[..]);
        assert_eq!(kept.conn.alpn_protocol(), expected);
    }
    let mut other = connect(&server, &authority, &["h2"]);
    let error = other.write_all(b"x").expect_err("no protocol in common");
    assert!(
        error.to_string().contains("NoApplicationProtocol"),
        "{error}"
    );
}

#[test]
fn plain_http_to_an_address_of_tls_is_told_so() {
    let home = Home::new();
    let authority = Authority::new();
    let folder = tempfile::tempdir().expect("there is room");
    authority.issue(HERE).write(folder.path());
    let server = start(&home, folder.path(), &[]);
    let url = server.url().replace("https://", "http://");
    let plain = Api::new(url, server.api().admin_key());
    let answer = plain
        .manage("PUT", "/topics/orders", Some(&Value::Null))
        .expect(400);
    let text = String::from_utf8_lossy(&answer.body);
    assert!(text.contains("https://"), "{text}");
}

/// A folder as Kubernetes mounts a secret: the files are links into a folder that is a link.
struct Mounted<'a>(&'a Path);

impl Mounted<'_> {
    fn begin(&self) {
        for name in ["tls.crt", "tls.key"] {
            symlink(format!("..data/{name}"), self.0.join(name)).expect("a link");
        }
    }

    fn put(&self, version: &str, issued: &Issued) {
        let folder = self.0.join(version);
        fs::create_dir(&folder).expect("a folder");
        issued.write(&folder);
        let link = self.0.join("..data_tmp");
        symlink(version, &link).expect("a link");
        fs::rename(link, self.0.join("..data")).expect("links can be replaced");
    }
}

#[test]
fn renewed_certificate_is_taken_and_a_wrong_one_is_not() {
    let home = Home::new();
    let old = Authority::new();
    let new = Authority::new();
    let folder = tempfile::tempdir().expect("there is room");
    let mounted = Mounted(folder.path());
    mounted.begin();
    mounted.put("1", &old.issue(HERE));
    let server = start(&home, folder.path(), &[]);
    let key = server.api().admin_key();
    let answers_to = |authority: &Authority| {
        let api = Api::trusting(authority, server.url().to_owned(), key);
        api.send("GET", "/livez", &[], b"").is_ok()
    };
    let mut kept = connect(&server, &old, &[]);
    assert!(is_healthy(&mut kept) && answers_to(&old) && !answers_to(&new));

    let renewed = new.issue(HERE);
    mounted.put("2", &renewed);
    wait_until("the new certificate", || answers_to(&new).then_some(()));
    assert!(!answers_to(&old));
    assert!(is_healthy(&mut kept), "the open connection goes on");
    let taken =
        "a new certificate of --tls-cert is in use; open connections go on with the one before";
    assert_eq!(lines(&server, taken).len(), 1);

    // The key of before beside a new certificate, as if it were half-written.
    let wrong = Issued {
        certificate: old.issue(HERE).certificate,
        key: renewed.key,
    };
    mounted.put("3", &wrong);
    let refused =
        "the files of --tls-cert and --tls-key cannot be used, the certificate of before goes on";
    let line = wait_until("a line about the wrong key", || {
        lines(&server, refused).into_iter().next()
    });
    let error = line["error"].as_str().expect("a text");
    assert!(
        error.starts_with("--tls-key: ") && error.contains("the key is of another certificate"),
        "{error}"
    );
    assert!(answers_to(&new) && is_healthy(&mut kept));
    mounted.put("4", &old.issue(HERE));
    wait_until("the certificate after it", || {
        answers_to(&old).then_some(())
    });
    assert_eq!(lines(&server, refused).len(), 1);
    assert_eq!(lines(&server, taken).len(), 2);
    server.stop();
}

#[test]
fn server_with_half_of_tls_does_not_start() {
    let home = Home::new();
    let authority = Authority::new();
    let folder = tempfile::tempdir().expect("there is room");
    let paths = authority.issue(HERE).write(folder.path());
    let [certificate, key] = paths.each_ref().map(|it| it.to_str().expect("ASCII"));
    let check = |arguments: &[&str], code: i32, expected: &str| {
        let (found, log) = Server::fail_to_start(home.path(), arguments);
        assert_eq!(found, Some(code), "{log}");
        assert!(log.contains(expected), "{log}");
        // Nothing was begun.
        assert_eq!(fs::read_dir(home.path()).expect("a folder").count(), 0);
    };
    let half = "--tls-cert is given without --tls-key";
    check(&["--tls-cert", certificate], 2, half);
    let half = "--tls-key is given without --tls-cert";
    check(&["--tls-key", key], 2, half);
    let swapped = ["--tls-cert", key, "--tls-key", certificate];
    check(&swapped, 1, "no certificate in it");
    let other = folder.path().join("other");
    fs::create_dir(&other).expect("a folder");
    let [_, of_another] = authority.issue(HERE).write(&other);
    let of_another = of_another.to_str().expect("ASCII");
    let mixed = ["--tls-cert", certificate, "--tls-key", of_another];
    check(&mixed, 1, "the key is of another certificate");
    let missing = ["--tls-cert", "/no-such.pem", "--tls-key", key];
    check(&missing, 1, "--tls-cert: failed to read /no-such.pem");
}
