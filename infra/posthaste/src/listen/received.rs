//! A request as `listen` prints it.

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, Uri};
use posthaste_core::model::Timestamp;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::output::{clean, indent};
use crate::signature::SignatureError;

/// Judgement over the signature of a request.
pub(super) enum Verdict {
    Verified,
    Refused(SignatureError),
    /// There is no secret to verify with.
    NotChecked,
}

/// One request and the answer to it.
pub(super) struct Received {
    pub(super) at: Timestamp,
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) verdict: Verdict,
    pub(super) status: StatusCode,
}

impl From<Result<(), SignatureError>> for Verdict {
    fn from(verified: Result<(), SignatureError>) -> Self {
        verified.map_or_else(Self::Refused, |()| Self::Verified)
    }
}

impl Received {
    /// The text to print: for people, or one line of JSON.
    pub(super) fn render(&self, is_json: bool) -> String {
        if is_json { self.json().to_string() } else { self.text() }
    }

    fn text(&self) -> String {
        let Self { at, method, uri, status, .. } = self;
        let mut lines =
            vec![format!("\n{at}  {method} {uri} → {}  {}", status.as_u16(), self.verdict_in_words())];
        lines.extend(
            self.headers
                .iter()
                .map(|(name, value)| format!("{name}: {}", String::from_utf8_lossy(value.as_bytes()))),
        );
        if !self.body.is_empty() {
            lines.extend([String::new(), self.body_text()]);
        }
        clean(&lines.join("\n"))
    }

    fn json(&self) -> Value {
        let headers: Map<_, _> = self
            .headers
            .iter()
            .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into()))
            .collect();
        json!({
            "at": self.at, "method": self.method.as_str(), "path": self.uri.to_string(), "headers": headers,
            "body": String::from_utf8_lossy(&self.body), "signature": self.verdict_in_words(),
            "status": self.status.as_u16(),
        })
    }

    fn verdict_in_words(&self) -> String {
        match &self.verdict {
            Verdict::Verified => "signature verified".to_owned(),
            Verdict::Refused(error) => format!("SIGNATURE REFUSED: {error}"),
            Verdict::NotChecked => "signature not verified".to_owned(),
        }
    }

    /// The body, in lines of its own where it is JSON.
    fn body_text(&self) -> String {
        let json = serde_json::from_slice::<&RawValue>(&self.body);
        json.map_or_else(|_| String::from_utf8_lossy(&self.body).into_owned(), |json| indent(json.get()))
    }
}
