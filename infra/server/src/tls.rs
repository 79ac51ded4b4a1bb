//! TLS of the server's own: the certificate that is in use, and the looks at its files. A new one is
//! taken while the server goes on.

mod files;
mod standing;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use posthaste_core::api::doctor::CertificateTimes;
use posthaste_core::model::{Timestamp, with_causes};
use posthaste_http::certificate_times;
use posthaste_ports::Clock;
use posthaste_system::SystemClock;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use tokio::task::{JoinSet, spawn_blocking};
use tokio_util::sync::CancellationToken;

use self::files::{CertificatePair, TlsDigest};
use self::standing::{CertificateStanding, format_end};
use super::schedule::run_every;

pub use self::files::{HalfGiven, TlsFileFault, TlsFiles, TlsFilesError};

/// Time between two looks at the files, as between two looks at those of the data folder.
const LOOK_PERIOD: Duration = Duration::from_secs(2);

/// The only protocol offered. Producers, endpoints and browsers all speak it; with HTTP/2 one
/// connection would hold many requests, and the bounds of connections count one.
const ALPN_HTTP_1_1: &[u8] = b"http/1.1";

/// Why a server cannot speak TLS.
#[derive(Debug, thiserror::Error)]
pub enum ServerTlsError {
    /// The files are refused.
    #[error(transparent)]
    Files(#[from] TlsFilesError),
    /// The cryptography lacks a protocol version.
    #[error("failed to set up TLS")]
    Refused(#[from] rustls::Error),
    /// The files cannot be read beside other work.
    #[error("failed to read the files of --tls-cert and --tls-key")]
    Read(#[source] io::Error),
}

/// The certificate of a server, which its files may replace.
#[derive(Debug)]
pub struct ServerTls {
    files: TlsFiles,
    state: RwLock<TlsState>,
}

/// The certificate in use, and what the log already says.
#[derive(Debug)]
struct TlsState {
    config: Arc<ServerConfig>,
    /// The content of the files that the certificate in use is of.
    content: TlsDigest,
    validity: Option<CertificateTimes>,
    /// The standing of the certificate in use, as the log says it.
    told: CertificateStanding,
    refused: Option<TlsRefusal>,
}

/// A fault of the files while a certificate of before is in use.
#[derive(Debug)]
struct TlsRefusal {
    message: String,
    is_told: bool,
}

impl ServerTls {
    /// Reads the files for the first time. Blocks.
    pub fn open(files: TlsFiles, now: Timestamp) -> Result<Self, ServerTlsError> {
        let texts = files.read()?;
        let pair = files.parse_pair(&texts)?;
        let path = files.certificate.display().to_string();
        let certificates = pair.chain_len();
        let validity = certificate_times(pair.certificate());
        tracing::info!(
            %path, certificates, valid_until = format_end(validity),
            "the certificate of --tls-cert was read"
        );
        let state = TlsState {
            config: Arc::new(server_config(pair)?),
            content: texts.digest(),
            validity,
            told: CertificateStanding::Valid,
            refused: None,
        };
        let this = Self {
            files,
            state: RwLock::new(state),
        };
        this.tell_standing(now);
        Ok(this)
    }

    /// Reads the files for the first time, beside other work.
    pub async fn open_beside(files: TlsFiles) -> Result<Self, ServerTlsError> {
        let opened = spawn_blocking(move || Self::open(files, SystemClock.now())).await;
        opened.map_err(|error| ServerTlsError::Read(io::Error::other(error)))?
    }

    /// The settings of a handshake that begins now.
    pub(super) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.state.read().config)
    }

    /// Starts the looks at the files.
    pub(super) fn spawn(self: &Arc<Self>, tasks: &mut JoinSet<()>, stop: &CancellationToken) {
        let this = Arc::clone(self);
        let stop = stop.clone();
        tasks.spawn(run_every("tls", LOOK_PERIOD, SystemClock, stop, move || {
            let this = Arc::clone(&this);
            // A mount that hangs holds this look up, and nothing else.
            async move {
                let looked = spawn_blocking(move || this.check_files(SystemClock.now())).await;
                if let Err(error) = looked {
                    tracing::error!(%error, "the files of --tls-cert and --tls-key were not looked at");
                }
            }
        }));
    }

    /// Takes what the files hold, if it is new and right. Blocks.
    pub(super) fn check_files(&self, now: Timestamp) {
        let known = self.state.read().content;
        match self.take_new(known) {
            Ok(()) => self.state.write().refused = None,
            Err(error) => self.note_refusal(&error),
        }
        self.tell_standing(now);
    }

    /// Takes a certificate that is not the known one.
    fn take_new(&self, known: TlsDigest) -> Result<(), ServerTlsError> {
        let texts = self.files.read()?;
        if texts.digest() == known {
            return Ok(());
        }
        let pair = self.files.parse_pair(&texts)?;
        let certificates = pair.chain_len();
        let validity = certificate_times(pair.certificate());
        // Sessions of the certificate of before end with its settings, so that each client sees the
        // new one at its next connection.
        let config = Arc::new(server_config(pair)?);
        tracing::info!(
            path = %self.files.certificate.display(),
            certificates,
            valid_until = format_end(validity),
            "a new certificate of --tls-cert is in use; open connections go on with the one before"
        );
        let mut state = self.state.write();
        state.config = config;
        state.content = texts.digest();
        state.validity = validity;
        state.told = CertificateStanding::Valid;
        Ok(())
    }

    /// Says once that the files hold nothing to use. It is said at the second look that finds the
    /// same: between the two files of a renewal, one is of before.
    fn note_refusal(&self, error: &ServerTlsError) {
        let message = with_causes(error);
        let mut state = self.state.write();
        match &mut state.refused {
            Some(refused) if refused.message == message => {
                if !refused.is_told {
                    refused.is_told = true;
                    tracing::warn!(
                        error = error as &dyn std::error::Error,
                        "the files of --tls-cert and --tls-key cannot be used, the certificate of before goes on"
                    );
                }
            }
            refused => {
                *refused = Some(TlsRefusal {
                    message,
                    is_told: false,
                });
            }
        }
    }

    /// Says once that clients refuse the certificate in use for its time.
    fn tell_standing(&self, now: Timestamp) {
        let mut state = self.state.write();
        let Some(validity) = state.validity else {
            return;
        };
        let standing = CertificateStanding::at_time(now, &validity);
        if standing == state.told {
            return;
        }
        state.told = standing;
        let path = self.files.certificate.display();
        match standing {
            CertificateStanding::Valid => {}
            CertificateStanding::Expired => tracing::warn!(
                %path, valid_until = validity.until.to_event_grid(),
                "the certificate of --tls-cert has expired, clients refuse it"
            ),
            CertificateStanding::NotYet => tracing::warn!(
                %path, valid_from = validity.from.to_event_grid(),
                "the certificate of --tls-cert is not valid yet, clients refuse it"
            ),
        }
    }
}

fn server_config(pair: CertificatePair) -> Result<ServerConfig, ServerTlsError> {
    let key = CertifiedKey::from(pair);
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(key)));
    config.alpn_protocols = vec![ALPN_HTTP_1_1.to_vec()];
    Ok(config)
}

#[cfg(test)]
mod tests;
