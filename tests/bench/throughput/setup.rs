//! The server of a run: its options, and the connections of its producer.

use std::path::Path;

use clap::ValueEnum;
use posthaste_tests::home::Home;
use posthaste_tests::server::Server;

/// The log filter: only warnings, and the line that says where the server listens.
const LOG_FILTER: &str = "warn,posthaste_server=info";

/// What the delivery log keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Nothing: `--delivery-log off`.
    Off,
    /// What it keeps without the option.
    Default,
    /// Attempts.
    Attempts,
    /// Attempts and payloads.
    Payloads,
}

/// The options of the program and the connections of its producer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup<'a> {
    /// The connections of the producer.
    pub(crate) connections: usize,
    /// The pressure profile.
    pub(crate) profile: &'a str,
    /// The mode of the delivery log.
    pub(crate) mode: Mode,
    /// A certificate that the program trusts besides.
    pub(crate) extra_ca: Option<&'a Path>,
    /// The URL of a collector, and the ratio of the events that are traced.
    pub(crate) traced: Option<(&'a str, &'a str)>,
}

impl Mode {
    /// The name in a table.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Default => "default",
            Self::Attempts => "attempts",
            Self::Payloads => "payloads",
        }
    }
}

impl Setup<'_> {
    /// Starts a server on a folder.
    pub(crate) fn start(&self, home: &Home) -> Server {
        Server::start(home.path(), &self.options())
    }

    /// The options of the command line.
    pub(crate) fn options(&self) -> Vec<&str> {
        let mut options = vec![
            "--pressure-profile",
            self.profile,
            "--log-filter",
            LOG_FILTER,
        ];
        if self.mode != Mode::Default {
            options.extend(["--delivery-log", self.mode.name()]);
        }
        if let Some((collector, ratio)) = self.traced {
            options.extend(["--otlp-endpoint", collector, "--trace-ratio", ratio]);
        }
        if let Some(file) = self.extra_ca {
            options.extend([
                "--extra-ca",
                file.to_str()
                    .expect("a temporary folder has a name in UTF-8"),
            ]);
        }
        options
    }
}
