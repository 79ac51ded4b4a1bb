//! Topics on the server: read with their version, and put in the place of that version.

use posthaste_core::api::TopicSettings;
use posthaste_core::model::TopicName;
use serde_json::Value;
use ureq::http::Method;

use crate::client::{Call, ClientError};
use crate::commands::session::Session;

/// A topic as the server shows it, with the version of that.
pub(super) struct View {
    pub(super) topic: Value,
    /// Its version: the text of `ETag`.
    pub(super) version: Option<String>,
}

/// The topic as it is now; `None` if it does not exist.
pub(super) fn current(session: &Session, name: &TopicName) -> Result<Option<View>, ClientError> {
    match view(session, session.call(Method::GET, &["topics", name.as_str()])) {
        Ok(topic) => Ok(Some(topic)),
        Err(ClientError::Refused(refusal)) if refusal.status == 404 => Ok(None),
        Err(error) => Err(error),
    }
}

/// Puts a topic if `before` is still what is there.
pub(super) fn replace(
    session: &Session,
    name: &TopicName,
    settings: &TopicSettings,
    before: Option<&View>,
) -> Result<View, ClientError> {
    let url = || session.client.base().clone();
    let body = serde_json::to_vec(settings).map_err(|source| ClientError::Answer { url: url(), source })?;
    let path = ["topics", name.as_str()];
    let call = session.call(Method::PUT, &path).body("application/json", body);
    view(
        session,
        match before {
            Some(before) => call.header("if-match", before.version.as_ref()),
            None => call.header("if-none-match", Some("*")),
        },
    )
}

fn view(session: &Session, call: Call<'_>) -> Result<View, ClientError> {
    let answer = session.client.send(call)?;
    let unreadable = |source| ClientError::Answer { url: session.client.base().clone(), source };
    let topic = serde_json::from_slice(&answer.body).map_err(unreadable)?;
    let version = answer.headers.get("etag").and_then(|etag| etag.to_str().ok()).map(str::to_owned);
    Ok(View { topic, version })
}
