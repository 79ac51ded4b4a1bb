//! Certificates as people make them, with `openssl`, and the message about each.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use posthaste_core::model::{CertificateFault, SendFailure};
use posthaste_http::{ClientSettings, HyperWebhookClient};
use posthaste_ports::WebhookClient;
use posthaste_system::SystemClock;
use tempfile::TempDir;

use crate::{on_loopback, post};

/// A folder in which `openssl` works.
struct Workshop(TempDir);

impl Workshop {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.path().join(file)
    }

    /// Runs `openssl` with these arguments, in words.
    fn openssl(&self, arguments: &str) {
        let output = Command::new("openssl")
            .args(arguments.split_whitespace())
            .current_dir(self.0.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "openssl {arguments}\n{said}");
    }

    /// Makes an authority: `ca.pem` and `ca.key`.
    fn authority(&self) {
        self.openssl(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out \
             ca.pem -subj /CN=Company -days 30",
        );
    }

    /// Makes `stranger.pem`, an authority that has signed nothing here.
    fn stranger(&self) {
        self.openssl(&format!(
            "req -x509 -newkey {EC} -nodes -keyout stranger.key -out stranger.pem -subj \
             /CN=Stranger -days 30"
        ));
    }

    /// Makes `server.pem` and `server.key`, which the authority signs.
    fn signed(&self, key: &str, extensions: &str, days: &str) {
        std::fs::write(self.path("server.ext"), extensions).unwrap();
        self.openssl(&format!(
            "req -newkey {key} -nodes -keyout server.key -out server.csr -subj /CN=server"
        ));
        self.openssl(&format!(
            "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out server.pem \
             -extfile server.ext {days}"
        ));
    }

    /// Makes them with a begin and an end of validity.
    fn signed_for(&self, (from, until): (&str, &str), extensions: &str) {
        for (file, text) in [
            ("server.ext", extensions),
            ("ca.cnf", CA_CONFIGURATION),
            ("index.txt", ""),
            ("serial.txt", "01\n"),
        ] {
            std::fs::write(self.path(file), text).unwrap();
        }
        self.openssl(&format!(
            "req -newkey {EC} -nodes -keyout server.key -out server.csr -subj /CN=server"
        ));
        self.openssl(&format!(
            "ca -config ca.cnf -in server.csr -out server.pem -extfile server.ext -startdate {from} \
             -enddate {until} -batch -notext"
        ));
    }

    /// The failure of a request to a server of these options, in words, by a client that trusts
    /// this file.
    async fn said(&self, server: &str, trusted: &str) -> (SendFailure, String) {
        let mut server = Server::start(self, server);
        let settings = ClientSettings {
            extra_root_file: Some(self.path(trusted)),
            ..on_loopback()
        };
        let client = HyperWebhookClient::new(settings, SystemClock).unwrap();
        let url = format!("https://localhost:{}/", server.address.port());
        loop {
            let answer = client.send(post(&url)).await;
            let failure = answer.result.unwrap_err();
            // It may not listen yet.
            assert!(
                server.child.try_wait().unwrap().is_none(),
                "openssl has ended"
            );
            if failure != SendFailure::Refused {
                let text = answer.failure_text.map(String::from);
                return (failure, text.unwrap_or_else(|| failure.to_string()));
            }
            tokio::task::yield_now().await;
        }
    }

    async fn check_certificate(&self, trusted: &str, kind: CertificateFault, faults: &str) {
        // At its own level openssl shows no small key.
        let server = "-cert server.pem -key server.key -cipher ALL:@SECLEVEL=0";
        let text = format!("TLS certificate not trusted: {faults}");
        let expected = (SendFailure::Certificate(kind), text);
        assert_eq!(self.said(server, trusted).await, expected);
    }

    async fn check_handshake(&self, server: &str, expected: &str) {
        let text = format!("the TLS handshake failed: {expected}");
        let expected = (SendFailure::Tls, text);
        let said = self.said(server, "ca.pem").await;
        assert_eq!(said, expected, "{server}");
    }
}

/// A running `openssl s_server`; ends with this value.
struct Server {
    address: SocketAddr,
    child: Child,
}

impl Server {
    fn start(workshop: &Workshop, options: &str) -> Self {
        // A port that was free a moment ago: the program cannot say which it took.
        let address = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let child = Command::new("openssl")
            .args(["s_server", "-quiet", "-accept", &address.to_string()])
            .args(options.split_whitespace())
            .current_dir(workshop.0.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { address, child }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// The least that `openssl ca` needs.
const CA_CONFIGURATION: &str = "[ca]\ndefault_ca=own\n[own]\ndatabase=index.txt\n\
    serial=serial.txt\nnew_certs_dir=.\ncertificate=ca.pem\nprivate_key=ca.key\n\
    default_md=sha256\npolicy=any\n[any]\ncommonName=supplied\n";

const EC: &str = "ec -pkeyopt ec_paramgen_curve:P-256";
const FOR_LOCALHOST: &str = "subjectAltName=DNS:localhost\n";
const AUTHORITY: &str = "it is a certificate of an authority (CA:TRUE), as `openssl req -x509` \
    makes them, and not one of a server (`-addext basicConstraints=critical,CA:FALSE`)";
const BY_ITSELF: &str = "its issuer is unknown (it is signed by itself)";

/// The first recipe that everybody finds, and the file given to `--extra-ca`.
#[tokio::test]
async fn certificate_of_openssl_req_x509_is_named_for_what_it_is() {
    let workshop = Workshop::new();
    workshop.stranger();
    let recipe = format!(
        "req -x509 -newkey {EC} -nodes -keyout server.key -out server.pem -days 30 -subj \
         /CN=Hooks"
    );
    let authority = CertificateFault::Authority;
    workshop.openssl(&format!("{recipe} -addext subjectAltName=DNS:localhost"));
    workshop
        .check_certificate("server.pem", authority, AUTHORITY)
        .await;
    let both = format!("{AUTHORITY}; {BY_ITSELF}");
    workshop
        .check_certificate("stranger.pem", authority, &both)
        .await;
    workshop.openssl(&recipe);
    let nameless = "it is for no host (it has no subjectAltName), and not for localhost";
    let all = format!("{AUTHORITY}; {BY_ITSELF}; {nameless}");
    workshop
        .check_certificate("stranger.pem", authority, &all)
        .await;
}

#[tokio::test]
async fn time_of_a_certificate_is_said_beside_its_other_faults() {
    let workshop = Workshop::new();
    workshop.authority();
    workshop.stranger();
    let trusted = "ca.pem";
    let past = ("20200101000000Z", "20210203040506Z");
    let until = "it expired on 2021-02-03T04:05:06Z";
    let expired = CertificateFault::Expired;
    workshop.signed_for(past, FOR_LOCALHOST);
    workshop.check_certificate(trusted, expired, until).await;
    let both = format!("{until}; its issuer is unknown");
    workshop
        .check_certificate("stranger.pem", expired, &both)
        .await;
    workshop.signed_for(past, "subjectAltName=DNS:a.example\n");
    let names = "it is for a.example, and not for localhost";
    let both = format!("{until}; {names}");
    workshop.check_certificate(trusted, expired, &both).await;
    let all = format!("{until}; its issuer is unknown; {names}");
    workshop
        .check_certificate("stranger.pem", expired, &all)
        .await;
    let future = ("40000101000000Z", "40010101000000Z");
    workshop.signed_for(
        future,
        &format!("basicConstraints=CA:TRUE\n{FOR_LOCALHOST}"),
    );
    let not_yet = format!("it is not valid before 4000-01-01T00:00:00Z; {AUTHORITY}");
    let early = CertificateFault::NotYetValid;
    workshop.check_certificate(trusted, early, &not_yet).await;
}

#[tokio::test]
async fn faults_of_a_certificate_are_found_apart() {
    let workshop = Workshop::new();
    workshop.authority();
    workshop.stranger();
    let trusted = "ca.pem";
    let other_names = "it is for a.example, *.b.example, 192.0.2.1, and not for localhost";
    let other = CertificateFault::OtherName;
    let names = "subjectAltName=DNS:a.example,DNS:*.b.example,IP:192.0.2.1\n";
    workshop.signed(EC, names, "-days 30");
    workshop
        .check_certificate(trusted, other, other_names)
        .await;
    let unknown = CertificateFault::UnknownIssuer;
    let both = format!("its issuer is unknown; {other_names}");
    workshop
        .check_certificate("stranger.pem", unknown, &both)
        .await;
    let for_clients = format!("extendedKeyUsage=clientAuth\n{FOR_LOCALHOST}");
    workshop.signed(EC, &for_clients, "-days 30");
    let purpose = "it is for another purpose than a server's (client authentication)";
    let of_purpose = CertificateFault::OtherPurpose;
    workshop
        .check_certificate(trusted, of_purpose, purpose)
        .await;
    let without_issuer = format!("{purpose}; its issuer is unknown");
    workshop
        .check_certificate("stranger.pem", of_purpose, &without_issuer)
        .await;
    // Another authority of the same name.
    workshop.signed(EC, FOR_LOCALHOST, "-days 30");
    workshop.authority();
    let forged =
        "a signature of it is wrong (its issuer has the name of a known one, and another key)";
    workshop.check_certificate(trusted, unknown, forged).await;
}

#[tokio::test]
async fn keys_that_the_library_lacks_are_named() {
    let workshop = Workshop::new();
    workshop.authority();
    let trusted = "ca.pem";
    workshop.signed("rsa:1024", FOR_LOCALHOST, "-days 30");
    let small = "it needs an algorithm that posthaste lacks (an RSA key of fewer than 2048 bits)";
    workshop
        .check_certificate(trusted, CertificateFault::Algorithm, small)
        .await;
    let no_algorithm = "no cipher suite, key exchange or signature algorithm in common, or the \
        endpoint asks for a client certificate (it sent the alert handshake_failure, 40)";
    for key in ["ec -pkeyopt ec_paramgen_curve:P-521", "ed448"] {
        workshop.signed(key, FOR_LOCALHOST, "-days 30");
        workshop
            .check_handshake("-cert server.pem -key server.key", no_algorithm)
            .await;
    }
}

#[tokio::test]
async fn handshake_that_fails_says_why() {
    let workshop = Workshop::new();
    workshop.authority();
    workshop.signed(EC, FOR_LOCALHOST, "-days 30");
    let check = async |options: &str, expected: &str| {
        let server = format!("-cert server.pem -key server.key {options}");
        workshop.check_handshake(&server, expected).await;
    };
    check(
        "-tls1_1 -cipher ALL:@SECLEVEL=0",
        "no TLS version in common: posthaste has TLS 1.2 and TLS 1.3 (it sent the alert \
         protocol_version, 70)",
    )
    .await;
    let no_algorithm = "no cipher suite, key exchange or signature algorithm in common, or the \
        endpoint asks for a client certificate (it sent the alert handshake_failure, 40)";
    check("-tls1_2 -cipher ECDHE-ECDSA-AES256-SHA", no_algorithm).await;
    check("-tls1_3 -groups X448", no_algorithm).await;
    check(
        "-tls1_3 -Verify 1 -verify_return_error",
        "the endpoint asks for a client certificate, and posthaste has none (it sent the alert \
         certificate_required, 116)",
    )
    .await;
    check(
        "-alpn h2",
        "the endpoint does not offer HTTP/1.1 (it sent the alert no_application_protocol, 120)",
    )
    .await;
}
