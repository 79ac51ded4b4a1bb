//! `health`: whether a server takes requests, for whoever starts it and watches it.

use std::time::Duration;

use serde_json::{Value, json};
use ureq::http::Method;

use crate::cli::GlobalOptions;
use crate::client::{ApiCall, ClientError, ServerClient};
use crate::error::CommandError;
use crate::output::CommandReply;

/// Longest wait for the answer: a server that is well answers at once.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Asks without a key.
pub fn run(global: &GlobalOptions) -> Result<CommandReply, CommandError> {
    let client = ServerClient::with_authorities(&global.url, global.ca_cert.as_deref())?;
    match request_state(&client, "readyz") {
        // Releases before 0.2, and AWS, have `/health` alone.
        Err(ClientError::Refused(refusal)) if refusal.status == 404 => {
            request_state(&client, "health")?
        }
        answer => answer?,
    };
    Ok(CommandReply::new(json!({ "status": "ok" })).line("ready"))
}

fn request_state(client: &ServerClient, path: &str) -> Result<Value, ClientError> {
    client.send_for_json(ApiCall::new(Method::GET, &[path]).timeout(TIMEOUT))
}
