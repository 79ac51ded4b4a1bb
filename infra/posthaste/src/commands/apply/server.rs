//! Topics on the server: read with their version, and put in the place of that version.

use posthaste_core::api::TopicSettings;
use posthaste_core::model::TopicName;
use serde_json::Value;
use ureq::http::header::ETAG;
use ureq::http::{HeaderMap, Method};

use crate::client::{Call, ClientError};
use crate::commands::session::Session;

/// A topic as the server shows it, with the version of that.
pub(super) struct View {
    pub(super) topic: Value,
    /// The version: the text of `ETag`. None if a proxy took that away.
    pub(super) version: Option<String>,
}

impl View {
    /// Whether both are of one version, if that of both is known.
    pub(super) fn is_same_version(&self, other: &Self) -> Option<bool> {
        Some(self.version.as_ref()? == other.version.as_ref()?)
    }
}

/// The topic as it is now; `None` if it does not exist.
pub(super) fn current(session: &Session, name: &TopicName) -> Result<Option<View>, ClientError> {
    match view(
        session,
        session.call(Method::GET, &["topics", name.as_str()]),
    ) {
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
    let body = serde_json::to_vec(settings)
        .map_err(|source| ClientError::Answer { url: url(), source })?;
    let path = ["topics", name.as_str()];
    let call = session
        .call(Method::PUT, &path)
        .body("application/json", body);
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
    Ok(View {
        topic: session.client.read(&answer.body)?,
        version: version(&answer.headers),
    })
}

/// The text of `ETag`, as the server wrote it: a proxy that compresses makes it a weak one, and
/// `If-Match` never holds for those.
fn version(headers: &HeaderMap) -> Option<String> {
    let etag = headers.get(ETAG)?.to_str().ok()?;
    Some(etag.strip_prefix("W/").unwrap_or(etag).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ureq::http::HeaderValue;

    fn of(etag: Option<&'static str>) -> View {
        let headers = etag.map(|etag| (ETAG, HeaderValue::from_static(etag)));
        View {
            topic: Value::Null,
            version: version(&headers.into_iter().collect()),
        }
    }

    #[test]
    fn a_tag_that_a_proxy_weakened_is_that_of_the_server() {
        assert_eq!(of(Some("W/\"1-a\"")).version.as_deref(), Some("\"1-a\""));
        assert_eq!(of(Some("\"W/\"")).version.as_deref(), Some("\"W/\""));
    }

    #[test]
    fn versions_are_compared_only_where_both_are_known() {
        let check =
            |one, other, expected| assert_eq!(of(one).is_same_version(&of(other)), expected);
        check(Some("\"1\""), Some("W/\"1\""), Some(true));
        check(Some("\"1\""), Some("\"2\""), Some(false));
        check(None, None, None);
        check(Some("\"1\""), None, None);
        check(None, Some("\"1\""), None);
    }
}
