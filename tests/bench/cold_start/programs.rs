//! The programs and what they are told.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::process::Process;
use crate::runtime_api::RuntimeApi;

/// The profile in which programs for Lambda are built.
const PROFILE: &str = "lambda";

/// The package that is measured, and the one it is measured against.
const PACKAGES: [&str; 2] = ["posthaste-lambda", "posthaste-nothing"];

/// The program that does nothing.
pub(crate) const NOTHING: &str = "nothing";

/// All functions; the first does nothing, and the others are compared with it.
pub(crate) const ALL: [&str; 8] = [
    NOTHING,
    "publish",
    "deliver",
    "wake",
    "deadletter",
    "monitor",
    "manage",
    "record",
];

/// The functions of `posthaste-log`; the others are in `posthaste-delivery`.
const IN_LOG: [&str; 3] = ["record", "manage", "wake"];

/// The places where programs find their surroundings.
#[derive(Debug, Clone)]
pub(crate) struct World {
    /// The folder of the programs.
    pub(crate) folder: PathBuf,
    /// The URL of S3 and SQS.
    pub(crate) aws: String,
    /// The file of root certificates.
    pub(crate) roots: PathBuf,
    /// Whether the programs' logs are shown.
    pub(crate) shows_log: bool,
}

/// Builds the programs, each package by itself: together, features that only the other needs would
/// be in both.
pub(crate) fn build() -> PathBuf {
    for package in PACKAGES {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args([
            "build",
            "--locked",
            "--profile",
            PROFILE,
            "--package",
            package,
            "--bins",
        ]);
        let status = cargo
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .stdin(Stdio::null())
            .status();
        assert!(
            status.expect("cargo starts").success(),
            "failed to build {package}"
        );
    }
    // The bench itself is in <target>/<profile>/deps.
    let this = env::current_exe().expect("this program has a path");
    this.ancestors()
        .nth(3)
        .expect("a target folder")
        .join(PROFILE)
}

impl World {
    /// The program that has a function. A folder with a program for each function is measured too.
    pub(crate) fn file(&self, function: &str) -> PathBuf {
        let alone = self.folder.join(function);
        match function {
            NOTHING => self.folder.join(PACKAGES[1]),
            _ if alone.is_file() => alone,
            function if IN_LOG.contains(&function) => self.folder.join("posthaste-log"),
            _ => self.folder.join("posthaste-delivery"),
        }
    }

    /// Starts a function under a Runtime API of its own.
    pub(crate) fn start(&self, function: &str) -> (RuntimeApi, Process) {
        let api = RuntimeApi::start();
        let process = Process::start(
            &self.file(function),
            &self.environment(function, &api),
            self.shows_log,
        );
        (api, process)
    }

    fn environment(&self, function: &str, api: &RuntimeApi) -> Vec<(String, String)> {
        let queue = |name: &str| format!("{}/123456789012/{name}", self.aws);
        let mut variables = lambda(function, &api.address());
        variables.extend([
            ("AWS_ENDPOINT_URL", self.aws.clone()),
            ("SSL_CERT_FILE", text(&self.roots)),
            ("STATE_BUCKET", "state".to_owned()),
            ("DEAD_LETTER_BUCKET", "dead-letters".to_owned()),
            ("LOG_BUCKET", "log".to_owned()),
            ("DELIVERIES_QUEUE_URL", queue("deliveries")),
            ("DEADLETTERS_QUEUE_URL", queue("deadletters")),
            ("REDRIVE_QUEUE_URL", queue("redrive")),
            ("RECORDS_QUEUE_URL", queue("records")),
            ("ALLOW_ENDPOINTS", "127.0.0.0/8".to_owned()),
            ("ADMIN_KEY_SHA256", "5".repeat(64)),
            (
                "PUBLISH_URL",
                "https://abcdefgh.lambda-url.us-east-1.on.aws/".to_owned(),
            ),
        ]);
        variables
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }
}

/// The variables that Lambda itself sets.
/// <https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html>
fn lambda(function: &str, api: &str) -> Vec<(&'static str, String)> {
    vec![
        ("AWS_LAMBDA_RUNTIME_API", api.to_owned()),
        ("_HANDLER", function.to_owned()),
        ("AWS_LAMBDA_FUNCTION_NAME", function.to_owned()),
        ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST".to_owned()),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "512".to_owned()),
        (
            "AWS_LAMBDA_LOG_GROUP_NAME",
            format!("/aws/lambda/{function}"),
        ),
        (
            "AWS_LAMBDA_LOG_STREAM_NAME",
            "2026/03/12/[$LATEST]0".to_owned(),
        ),
        ("AWS_REGION", "us-east-1".to_owned()),
        ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE".to_owned()),
        (
            "AWS_SECRET_ACCESS_KEY",
            "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".to_owned(),
        ),
        ("AWS_SESSION_TOKEN", "a-token".to_owned()),
    ]
}

fn text(path: &Path) -> String {
    path.to_str().expect("a path in UTF-8").to_owned()
}
