//! `health`: whether a server takes requests, for whoever starts it and watches it.

use std::time::Duration;

use serde_json::{Value, json};
use ureq::http::Method;

use crate::cli::Global;
use crate::client::{Call, Client, ClientError};
use crate::error::CommandError;
use crate::output::Reply;

/// Longest wait for the answer: a server that is well answers at once.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Asks without a key.
pub(crate) fn run(global: &Global) -> Result<Reply, CommandError> {
    let client = Client::with_authorities(&global.url, global.ca_cert.as_deref())?;
    let ask = |path| -> Result<Value, ClientError> {
        client.json(Call::new(Method::GET, &[path]).timeout(TIMEOUT))
    };
    match ask("readyz") {
        // Releases before 0.2, and AWS, have `/health` alone.
        Err(ClientError::Refused(refusal)) if refusal.status == 404 => ask("health")?,
        answer => answer?,
    };
    Ok(Reply::new(json!({ "status": "ok" })).line("ready"))
}
