//! `serve --config`: the files of `apply`, put to the server itself through the same code and HTTP
//! API.

use posthaste_cli::client::{ServerClient, ServerTrust};
use posthaste_cli::commands::{AdminSession, ApplyResult, CheckedFile, apply_file};
use posthaste_cli::output::api_word;
use posthaste_core::model::Secret;
use tokio::task::spawn_blocking;
use tracing::field::display;

use super::error::ServeError;

/// Applies checked files to the server that runs at `url`.
pub(super) async fn apply_files(
    url: &str,
    key: Secret,
    files: Vec<CheckedFile>,
) -> Result<(), ServeError> {
    let url = url.to_owned();
    let applied = spawn_blocking(move || {
        // The server is this process, which holds the port. Its certificate is of the name by
        // which others ask, and need not be of this address.
        let client = ServerClient::with_trust(&url, ServerTrust::Anyone)?;
        // What it would tell a person is no line of the log.
        let session = AdminSession::new(client, key).without_retries();
        let mut applied = ApplyResult::default();
        files
            .iter()
            .try_for_each(|file| apply_file(&session, file, &mut applied))?;
        Ok(applied)
    });
    let applied = applied
        .await
        .map_err(ServeError::Task)?
        .map_err(ServeError::Config)?;
    for entity in &applied.entities {
        let state = entity.status.as_ref().map(|status| display(status.state));
        tracing::info!(
            topic = entity.topic, subscription = entity.subscription, change = %api_word(&entity.change), state,
            "configuration applied"
        );
    }
    if !applied.secrets.is_empty() {
        // Secrets are never logged. Keys can be asked for, and a file can hold its own signing
        // secrets.
        tracing::info!(
            "keys were made: `posthaste topics keys TOPIC` shows them; signing secrets that are not in the \
                file stay unseen"
        );
    }
    Ok(())
}
