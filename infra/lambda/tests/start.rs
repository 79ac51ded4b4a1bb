//! The programs as processes, in environments that cannot be used: each ends at once, with one line
//! that says why.

#![expect(
    clippy::unwrap_used,
    reason = "in a test, helpers included, an error is a failed test"
)]

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::process::{Command, Stdio};

use serde_json::Value;

const QUEUE: &str = "http://127.0.0.1:4566/000000000000/queue";

/// The program of a function, told to be that function and nothing else.
fn command(function: &str) -> Command {
    let program = match function {
        "record" | "manage" | "wake" => env!("CARGO_BIN_EXE_posthaste-log"),
        _ => env!("CARGO_BIN_EXE_posthaste-delivery"),
    };
    let mut command = Command::new(program);
    command.env_clear().env("_HANDLER", function);
    command
}

/// Starts a function in exactly this environment, and returns the one line that it wrote.
fn refusal<V: AsRef<OsStr>>(function: &str, environment: &[(&str, V)]) -> String {
    let mut command = command(function);
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let line: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(line["level"], "ERROR");
    line["message"].as_str().unwrap().to_owned()
}

fn check(function: &str, environment: &[(&str, &str)], expected: &[&str]) {
    let problems = refusal(function, environment);
    let problems = problems
        .strip_prefix("failed to read the environment: ")
        .unwrap();
    assert_eq!(
        problems.split("; ").collect::<Vec<_>>(),
        expected,
        "{function}"
    );
}

#[test]
fn a_function_without_an_environment_names_what_it_needs() {
    let state = "STATE_BUCKET is not set, expected the name of a bucket";
    let bucket = "DEAD_LETTER_BUCKET is not set, expected the name of a bucket";
    let deliveries = "DELIVERIES_QUEUE_URL is not set, expected the URL of a queue";
    let dead_letters = "DEADLETTERS_QUEUE_URL is not set, expected the URL of a queue";
    let redrive = "REDRIVE_QUEUE_URL is not set, expected the URL of a queue";
    let records = "RECORDS_QUEUE_URL is not set, expected the URL of a queue";
    let log = "LOG_BUCKET is not set, expected the name of a bucket";
    let key = "ADMIN_KEY_SHA256 is not set, expected the SHA-256 digest of the admin key, as 64 hexadecimal digits";
    check("publish", &[], &[state, deliveries]);
    check("deliver", &[], &[state, deliveries, dead_letters, records]);
    check("wake", &[], &[state, bucket, log, deliveries]);
    check("record", &[], &[state, log, records]);
    let queues = [state, bucket, deliveries, dead_letters, redrive, records];
    check("deadletter", &[], &queues);
    check("monitor", &[], &[state, deliveries, dead_letters]);
    check("manage", &[], &[state, bucket, log, deliveries, key]);
}

#[test]
fn missing_variables_of_lambda_itself_are_named() {
    let region = "AWS_REGION is not set, expected a region such as eu-central-1";
    let environment = [
        ("STATE_BUCKET", "state"),
        ("DEAD_LETTER_BUCKET", "dead"),
        ("LOG_BUCKET", "log"),
        ("DELIVERIES_QUEUE_URL", QUEUE),
    ];
    check("wake", &environment, &[region]);
}

#[test]
fn a_function_whose_log_is_off_says_all_the_same_why_it_ends() {
    let mut command = command("wake");
    command.envs([
        ("STATE_BUCKET", "state"),
        ("DEAD_LETTER_BUCKET", "dead"),
        ("LOG_BUCKET", "log"),
        ("DELIVERIES_QUEUE_URL", QUEUE),
        ("LOG_LEVEL", "off"),
    ]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.starts_with("failed to read the environment: AWS_REGION is not set"),
        "{said}"
    );
}

#[test]
fn a_value_that_is_not_utf_8_is_refused_by_its_name() {
    let queue = OsString::from(QUEUE);
    let level = OsString::from_vec(b"inf\xff".to_vec());
    let environment = [
        ("STATE_BUCKET", "state".into()),
        ("DELIVERIES_QUEUE_URL", queue),
        ("LOG_LEVEL", level),
    ];
    let refusal = refusal("wake", &environment);
    assert!(
        refusal.contains("LOG_LEVEL is \"inf\u{fffd}\", expected off, error, warn"),
        "{refusal}"
    );
}

#[test]
fn a_secret_that_is_refused_is_not_logged() {
    let environment = [
        ("STATE_BUCKET", "state"),
        ("DEAD_LETTER_BUCKET", "dead"),
        ("ADMIN_KEY_SHA256", "hunter2"),
    ];
    let refusal = refusal("manage", &environment);
    assert!(
        refusal.contains("ADMIN_KEY_SHA256 is not usable") && !refusal.contains("hunter2"),
        "{refusal}"
    );
}

/// A program that lacks the handler's function names the functions that it has.
#[test]
fn unknown_handler_is_refused_with_the_known_functions() {
    let environment: [(&str, &str); 0] = [];
    let refused = refusal("bootstrap", &environment);
    let expected = "expected one of publish, deliver, deadletter, monitor: correct Handler";
    assert_eq!(
        refused,
        format!("the handler \"bootstrap\" is not in this program, {expected}")
    );
}

/// During an update the function's name says what the former handler does not.
#[test]
fn function_name_replaces_the_former_handler_during_an_update() {
    let refused = |name| refusal("bootstrap", &[("AWS_LAMBDA_FUNCTION_NAME", name)]);
    let environment = "failed to read the environment: STATE_BUCKET is not set";
    assert!(refused("posthaste-PublishFunction-1A2B3C").starts_with(environment));
    assert!(
        refused("my-stack-DeliverFunction-1A2B3C").contains("DEADLETTERS_QUEUE_URL is not set")
    );
    for other in ["posthaste", "publish", "posthaste-publish-1A2B3C"] {
        assert!(
            refused(other).starts_with("the handler \"bootstrap\" is not in this program"),
            "{other}"
        );
    }
}
