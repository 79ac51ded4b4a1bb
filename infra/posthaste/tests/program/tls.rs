//! Commands and a server with TLS of its own: whom they trust, and what they say where they do not.

use std::path::Path;
use std::process::Output;

use crate::common::{Server, failure, posthaste, run};
use posthaste_tests::authority::Authority;

const FILE: &str = "topics: { orders: { subscriptions: {} } }\n";

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn succeeded(output: &Output) -> bool {
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    true
}

#[test]
fn commands_trust_the_authority_that_they_are_given() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let authority = Authority::new();
    let [certificate, key] = authority.issue(&["localhost"]).write(folder.path());
    let trusted = folder.path().join("ca.pem");
    std::fs::write(&trusted, authority.pem()).unwrap();
    let of_tls = ["--tls-cert", text(&certificate), "--tls-key", text(&key)];
    let server = Server::start(&data, &of_tls);
    let by_name = server.url.replace("127.0.0.1", "localhost");
    assert!(by_name.starts_with("https://localhost:"), "{by_name}");
    let check_hint = |arguments: &[&str], expected: [&str; 2]| {
        let (code, text) = failure(&run(arguments));
        assert_eq!(code, 7, "{text}");
        assert!(expected.iter().all(|it| text.contains(it)), "{text}");
    };

    let unknown = ["UnknownIssuer", "try: --ca-cert FILE or POSTHASTE_CA_CERT"];
    check_hint(&["health", "--url", &by_name], unknown);
    let ca = ["--ca-cert", text(&trusted)];
    let other_name = ["health", "--url", &server.url, ca[0], ca[1]];
    check_hint(
        &other_name,
        ["not valid for name", "try: --url with a name"],
    );
    let plain = by_name.replace("https", "http");
    let speaks = ["speaks TLS", "https:// instead"];
    check_hint(&["health", "--url", &plain, ca[0], ca[1]], speaks);

    assert!(succeeded(&run(&[
        "health", "--url", &by_name, ca[0], ca[1]
    ])));
    let by_variable = posthaste(&["health", "--url", &by_name])
        .env("POSTHASTE_CA_CERT", &trusted)
        .output();
    assert!(succeeded(&by_variable.unwrap()));
    let file = folder.path().join("topics.yaml");
    std::fs::write(&file, FILE).unwrap();
    let here = ["--url", &by_name, "--data-dir", text(&data), ca[0], ca[1]];
    let apply = ["apply", "-f", text(&file)];
    assert!(succeeded(&run(&[&apply, &here[..]].concat())));
    let event = folder.path().join("event.json");
    let cloud_event = r#"{"specversion":"1.0","id":"1","source":"/s","type":"t"}"#;
    std::fs::write(&event, cloud_event).unwrap();
    let publish = ["publish", "orders", "--file", text(&event)];
    assert!(succeeded(&run(&[&publish, &here[..]].concat())));
}

#[test]
fn file_of_authorities_that_cannot_be_used_is_named() {
    let (code, text) = failure(&run(&["health", "--ca-cert", "/no-such.pem"]));
    let expected = "error: --ca-cert: failed to read root certificates from /no-such.pem\n";
    assert!(code == 2 && text.starts_with(expected), "{text}");
}
