//! The emulators there are, and how each is started. The versions are in `tests/requirements`.

use std::fmt;
use std::path::Path;

/// The access key and the secret key that every client of an emulator shows.
pub const ACCESS_KEY: &str = "test";

/// The region of everything on an emulator.
pub const REGION: &str = "us-east-1";

/// An emulator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// The one that also runs functions. It refuses stale receipt handles and few other things.
    Ministack,
    /// The strict one. It keeps the limits of delay and visibility, and is slow.
    Moto,
    /// The one that most people have, here without its Lambda, which needs Docker.
    Localstack,
}

impl Tool {
    /// The program in the `bin` folder of its virtual environment.
    pub(super) fn program(self) -> &'static str {
        match self {
            Self::Ministack => "ministack",
            Self::Moto => "moto_server",
            Self::Localstack => "python",
        }
    }

    pub(super) fn arguments(self, port: u16) -> Vec<String> {
        let text = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        match self {
            Self::Ministack => vec![],
            Self::Moto => text(&["-H", "127.0.0.1", "-p", &port.to_string()]),
            Self::Localstack => text(&["-m", "localstack.runtime.main"]),
        }
    }

    /// A path that answers 200 once requests are served.
    pub(super) fn health(self) -> &'static str {
        match self {
            Self::Ministack => "/_ministack/health",
            Self::Localstack => "/_localstack/health",
            Self::Moto => "/moto-api/data.json",
        }
    }

    /// The whole environment: nothing of the test's own, such as a proxy, reaches it.
    pub(super) fn environment(self, port: u16, folder: &Path) -> Vec<(&'static str, String)> {
        let mut all = vec![
            ("PATH", std::env::var("PATH").unwrap_or_default()),
            ("HOME", folder.display().to_string()),
            ("TMPDIR", folder.display().to_string()),
            ("PYTHONDONTWRITEBYTECODE", "1".to_owned()),
            ("AWS_ACCESS_KEY_ID", ACCESS_KEY.to_owned()),
            ("AWS_SECRET_ACCESS_KEY", ACCESS_KEY.to_owned()),
            ("AWS_DEFAULT_REGION", REGION.to_owned()),
        ];
        match self {
            Self::Moto => {}
            Self::Ministack => all.extend(ministack(port)),
            Self::Localstack => all.extend(localstack(port, folder)),
        }
        all
    }
}

fn ministack(port: u16) -> [(&'static str, String); 5] {
    [
        ("BIND_HOST", "127.0.0.1".to_owned()),
        ("MINISTACK_HOST", "127.0.0.1".to_owned()),
        ("GATEWAY_PORT", port.to_string()),
        ("LAMBDA_EXECUTOR", "local".to_owned()),
        ("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{port}")),
    ]
}

/// Two services, and nothing that listens elsewhere, asks the network or reports home.
fn localstack(port: u16, folder: &Path) -> [(&'static str, String); 10] {
    let address = format!("127.0.0.1:{port}");
    [
        ("GATEWAY_LISTEN", address.clone()),
        ("LOCALSTACK_HOST", address),
        ("GATEWAY_SERVER", "hypercorn".to_owned()),
        ("SQS_ENDPOINT_STRATEGY", "path".to_owned()),
        ("SQS_DISABLE_CLOUDWATCH_METRICS", "1".to_owned()),
        ("DNS_ADDRESS", "0".to_owned()),
        ("DISABLE_EVENTS", "1".to_owned()),
        ("SKIP_SSL_CERT_DOWNLOAD", "1".to_owned()),
        (
            "LOCALSTACK_VOLUME_DIR",
            folder.join("volume").display().to_string(),
        ),
        ("SERVICES", "sqs,s3".to_owned()),
    ]
}

/// The name of its folder and of its requirements file.
impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ministack => "ministack",
            Self::Moto => "moto",
            Self::Localstack => "localstack",
        })
    }
}
