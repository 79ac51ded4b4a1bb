//! Error of a server that does not start, or does not end well.

use std::io;
use std::net::SocketAddr;

use posthaste_cli::commands::ApplyError;
use posthaste_cli::error::CommandFailure;
use posthaste_core::pressure::SettingsError;
use posthaste_deliver::LinkBoundsError;
use posthaste_http::TlsSetupError;
use posthaste_local::OpenError;
use posthaste_ports::PortError;

use super::admin_key::AdminKeyError;
use super::advice;
use super::tls::{HalfGiven, ServerTlsError};

/// Error of a server that does not start, or does not end well.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The data folder cannot be opened: another process has it, or it cannot be used.
    #[error("failed to open the data folder")]
    Open(#[source] OpenError),
    /// There is no admin key.
    #[error(transparent)]
    AdminKey(#[from] AdminKeyError),
    /// Back pressure cannot be set up: a disk is too small for its formula.
    #[error("failed to set up back pressure")]
    Pressure(#[from] SettingsError),
    /// Certificates cannot be read.
    #[error("failed to set up TLS")]
    Tls(#[from] TlsSetupError),
    /// The certificate of the server, or its key, cannot be used.
    #[error("failed to set up TLS for the server")]
    ServerTls(#[from] ServerTlsError),
    /// One of the files of TLS was given without the other.
    #[error(transparent)]
    HalfOfTls(#[from] HalfGiven),
    /// The bounds of requests to one link contradict each other.
    #[error("--requests-per-link-start: {0}")]
    LinkBounds(#[from] LinkBoundsError),
    /// The address cannot be listened on.
    #[error("failed to listen on {address}")]
    Listen {
        /// The option that names it.
        option: &'static str,
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    /// Signals cannot be listened for, or threads cannot be made.
    #[error("failed to set up the process")]
    Process(#[source] io::Error),
    /// A configuration file was refused.
    #[error("failed to apply the configuration")]
    Config(#[source] ApplyError),
    /// A task of the program failed.
    #[error("failed inside")]
    Task(#[source] tokio::task::JoinError),
    /// A task that should run as long as the server has ended.
    #[error("failed inside: a part of the server ended by itself")]
    Ended,
    /// The thread that writes the store has ended.
    #[error("failed inside: the store can no longer be written; the log says why")]
    Store,
    /// The note of the process before cannot be read.
    #[error("failed to read what the process before wrote down")]
    RunNote(#[source] PortError),
    /// The folder of dead letters cannot be used.
    #[error("failed to open the folder of dead letters")]
    DeadLetters(#[source] PortError),
    /// The folder of the delivery log cannot be used.
    #[error("failed to open the folder of the delivery log")]
    Log(#[source] PortError),
}

impl CommandFailure for ServeError {
    fn exit_code(&self) -> Option<u8> {
        // The command line is wrong.
        matches!(self, Self::HalfOfTls(_)).then_some(2)
    }

    fn hint(&self) -> Option<String> {
        let path = match self {
            Self::Listen { option, source, .. } => return advice::on_listening(option, source),
            Self::Process(source) => return advice::on_open_files(source),
            Self::Open(OpenError::Folder { path, .. } | OpenError::Engine { file: path, .. })
            | Self::AdminKey(AdminKeyError::File { path, .. }) => path,
            _ => return None,
        };
        advice::on_data(path, advice::system_error(self)?)
    }
}
