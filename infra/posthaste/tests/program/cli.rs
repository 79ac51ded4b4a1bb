//! The command line without a server: what is refused, with which exit code and which words.

use crate::common::{failure, posthaste, run, run_with};

fn check(arguments: &[&str], code: i32, words: &[&str]) {
    let (found, text) = failure(&run(arguments));
    assert_eq!(found, code, "{arguments:?}: {text}");
    for word in words {
        assert!(text.contains(word), "{arguments:?}: {text}");
    }
}

#[test]
fn help_documents_the_exit_codes_and_every_command() {
    let output = run(&["--help"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0));
    for line in [
        "serve",
        "apply",
        "publish",
        "topics",
        "subscriptions",
        "dead-letters",
        "pressure",
        "demo",
    ] {
        assert!(text.contains(&format!("\n  {line}")), "{text}");
    }
    for code in 0..=7 {
        assert!(text.contains(&format!("\n  {code}  ")), "{text}");
    }
}

#[test]
fn a_wrong_command_line_is_2() {
    check(&[], 2, &["Usage"]);
    check(&["topics", "shows"], 2, &["shows"]);
    check(&["apply"], 2, &["--file"]);
    check(
        &["serve", "--allow-endpoints", "127.0.0.1/64"],
        2,
        &["127.0.0.1/64"],
    );
    check(&["serve", "--drain-timeout", "60"], 2, &["PT10S"]);
    check(
        &["serve", "--allow-endpoints", "localhost"],
        2,
        &["127.0.0.1", "names are not looked up"],
    );
    for address in ["localhost", "127.0.0.1", "99999", "::1:8080"] {
        check(
            &["serve", "--listen", address],
            2,
            &["localhost:8080", "a port alone"],
        );
    }
    check(
        &["--url", "localhost:8080", "topics", "--key", "k"],
        2,
        &["localhost:8080", "http://127.0.0.1:8080"],
    );
}

#[test]
fn a_log_filter_that_would_silence_the_server_is_2() {
    for (filter, word) in [
        ("verbose", "\"verbose\""),
        ("info,posthaste_deliver", "posthaste_deliver=debug"),
        ("posthaste=loud", "--log-filter"),
        ("info,[delivery{topic=orders}]=trace", "asks for a span"),
        ("info,posthaste_deliver[span]=debug", "asks for a span"),
    ] {
        // The file is not there: a server whose filter is accepted ends with 1.
        check(
            &[
                "serve",
                "--config",
                "/does/not/exist",
                "--log-filter",
                filter,
            ],
            2,
            &["--log-filter", word],
        );
    }
    for good in [
        "debug",
        "off",
        "WARN,posthaste_deliver=debug",
        " info, posthaste_deliver=debug,",
    ] {
        check(
            &["serve", "--config", "/does/not/exist", "--log-filter", good],
            1,
            &["/does/not/exist"],
        );
    }
}

#[test]
fn a_name_server_that_is_none_is_2_by_its_name() {
    for server in ["ns.example.com:53", "10.0.0.2", "10.0.0.2:0"] {
        let arguments = [
            "serve",
            "--config",
            "/does/not/exist",
            "--dns-server",
            server,
        ];
        check(&arguments, 2, &["--dns-server", server, "expected"]);
        let mut command = posthaste(&arguments[..3]);
        let (code, text) = failure(
            &command
                .env("POSTHASTE_DNS_SERVER", server)
                .output()
                .unwrap(),
        );
        assert!(
            code == 2 && text.contains("--dns-server") && text.contains(server),
            "{text}"
        );
    }
    let arguments = [
        "serve",
        "--config",
        "/does/not/exist",
        "--dns-server",
        "10.0.0.2:53",
    ];
    check(&arguments, 1, &["/does/not/exist"]);
}

#[test]
fn a_variable_that_is_set_to_nothing_counts_as_not_set() {
    let mut command = posthaste(&["topics", "--url", "http://127.0.0.1:1", "--key", "k"]);
    command.envs([
        ("POSTHASTE_DATA_DIR", ""),
        ("POSTHASTE_URL", ""),
        ("POSTHASTE_KEY", ""),
    ]);
    assert_eq!(command.output().unwrap().status.code(), Some(7));
    let mut command = posthaste(&["serve", "--config", "/does/not/exist"]);
    command.envs([
        ("ALLOW_ENDPOINTS", ""),
        ("POSTHASTE_LISTEN", ""),
        ("POSTHASTE_DNS_SERVER", ""),
    ]);
    assert_eq!(failure(&command.output().unwrap()).0, 1);
}

#[test]
fn a_server_that_is_not_there_is_7() {
    // Port 1 of loopback: nothing listens there, and nothing may without privileges.
    check(
        &["--url", "http://127.0.0.1:1", "topics", "--key", "k"],
        7,
        &["127.0.0.1:1", "posthaste serve", "POSTHASTE_URL"],
    );
}

#[test]
fn missing_key_exits_5_and_names_where_it_was_expected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    check(
        &["topics", "--data-dir", path],
        5,
        &["admin.key", "POSTHASTE_KEY"],
    );
}

#[test]
fn a_file_that_cannot_be_read_is_1() {
    check(
        &["publish", "t", "--file", "/does/not/exist", "--key", "k"],
        1,
        &["/does/not/exist"],
    );
    check(
        &["apply", "-f", "/does/not/exist", "--key", "k"],
        1,
        &["/does/not/exist"],
    );
}

/// Server is not asked for anything when a file has a mistake.
#[test]
fn typo_in_a_file_exits_3_with_line_and_column() {
    let text = "topics:\n  orders:\n    inputSchema: CloudEvent\n";
    let output = run_with(
        &[
            "apply",
            "-f",
            "-",
            "--key",
            "k",
            "--url",
            "http://127.0.0.1:1",
        ],
        text,
    );
    let (code, text) = failure(&output);
    assert_eq!(code, 3, "{text}");
    assert!(
        text.contains("-:3:18") && text.contains("CloudEvents"),
        "{text}"
    );
}

#[test]
fn all_mistakes_of_a_file_are_named_at_once() {
    let text = "topics:\n  orders:\n    inputSchema: CloudEvent\n    subscriptions: { a: {} }\n  b: { c: 1 }\n";
    let output = run_with(
        &[
            "apply",
            "-f",
            "-",
            "--key",
            "k",
            "--url",
            "http://127.0.0.1:1",
        ],
        text,
    );
    let (code, text) = failure(&output);
    let expected = "error: 3 mistakes
  -:3:18: topics.orders.inputSchema: unknown word, did you mean `CloudEvents`?
  -:4:22: topics.orders.subscriptions.a: missing member `endpoint`
  -:5:8: topics.b.c: unknown member `c`, expected one of ";
    assert!(code == 3 && text.starts_with(expected), "{code} {text}");
}

#[test]
fn errors_are_json_where_json_is_asked_for() {
    let (code, text) = failure(&run(&[
        "topics",
        "--key",
        "k",
        "--json",
        "--url",
        "http://127.0.0.1:1",
    ]));
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, json["error"]["exitCode"].as_i64()), (7, Some(7)));
}
