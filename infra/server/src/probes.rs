//! The paths at which a supervisor or a load balancer asks for the state of this process. Each is
//! answered without a key and without a look at the store.

use serde::Serialize;

/// The path that answers while the process can answer at all.
pub(super) const LIVEZ: &str = "/livez";

/// The path that says whether requests should be sent to this server.
pub(super) const READYZ: &str = "/readyz";

/// The path that says which program answers.
pub(super) const VERSION: &str = "/version";

/// The answer to who asks whether the process lives, or is ready.
#[derive(Debug, Serialize)]
pub(super) struct ProbeAnswer {
    status: &'static str,
}

impl ProbeAnswer {
    /// All is well.
    pub(super) const OK: Self = Self { status: "ok" };
}

/// The facts that this program knows of itself.
#[derive(Debug, Serialize)]
pub(super) struct VersionAnswer {
    /// The version of the release.
    version: &'static str,
    /// The commit of the source, if `POSTHASTE_COMMIT` was set for the build.
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<&'static str>,
    /// The operating system that it was built for.
    os: &'static str,
    /// The processor that it was built for.
    architecture: &'static str,
}

impl VersionAnswer {
    /// This program's.
    pub(super) const THIS: Self = Self {
        version: env!("CARGO_PKG_VERSION"),
        commit: option_env!("POSTHASTE_COMMIT"),
        os: std::env::consts::OS,
        architecture: std::env::consts::ARCH,
    };
}

/// Whether a path is one of these.
pub(super) fn is_probe(path: &str) -> bool {
    [LIVEZ, READYZ, VERSION].contains(&path)
}
