//! Options that commands share.

use std::path::PathBuf;

use clap::Args;

/// The data folder, if no other is named.
pub const DATA_DIR_DEFAULT: &str = "./posthaste-data";

/// The heading of these options in `--help`, below those of the command itself.
const GLOBAL: &str = "Global options";

/// Options of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = GLOBAL)]
pub struct GlobalOptions {
    /// The address of the server.
    #[arg(
        long,
        global = true,
        env = "POSTHASTE_URL",
        default_value = "http://127.0.0.1:8080"
    )]
    pub url: String,
    /// A file with certificates of authorities that the commands trust behind https, beside those of
    /// this machine: PEM, or one in DER.
    #[arg(long, global = true, env = "POSTHASTE_CA_CERT", value_name = "FILE")]
    pub ca_cert: Option<PathBuf>,
    /// The server's data folder on this machine. Commands read the admin key from it if no key is
    /// given [default: ./posthaste-data, for demo ./posthaste-data/demo].
    #[arg(long, global = true, env = "POSTHASTE_DATA_DIR", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Print JSON.
    #[arg(long, global = true)]
    pub json: bool,
}

/// The admin key, for commands that manage.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = GLOBAL)]
pub struct AdminKey {
    /// The admin key [default: what <data-dir>/admin.key holds].
    // A key may begin with a hyphen.
    #[arg(
        long,
        global = true,
        env = "POSTHASTE_KEY",
        hide_env_values = true,
        allow_hyphen_values = true
    )]
    pub key: Option<String>,
}
