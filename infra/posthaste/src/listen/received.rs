//! A request as `listen` prints it.

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, Uri};
use posthaste_core::model::Timestamp;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::output::indent_json;
use crate::signature::SignatureError;
use crate::terminal::TerminalText;

/// Judgement over the signature of a request.
pub(super) enum SignatureVerdict {
    Verified,
    Refused(SignatureError),
    /// There is no secret to verify with.
    NotChecked,
}

/// One request and the answer to it.
pub(super) struct ReceivedRequest {
    pub(super) at: Timestamp,
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) verdict: SignatureVerdict,
    pub(super) status: StatusCode,
}

impl From<Result<(), SignatureError>> for SignatureVerdict {
    fn from(verified: Result<(), SignatureError>) -> Self {
        verified.map_or_else(Self::Refused, |()| Self::Verified)
    }
}

impl ReceivedRequest {
    /// The text to print: for people, or one line of JSON.
    pub(super) fn render(&self, is_json: bool) -> TerminalText {
        if is_json {
            TerminalText::from_json(self.to_json())
        } else {
            TerminalText::from_text(&self.to_text())
        }
    }

    fn to_text(&self) -> String {
        let Self {
            at,
            method,
            uri,
            status,
            ..
        } = self;
        let mut lines = vec![format!(
            "\n{at}  {method} {uri} → {}  {}",
            status.as_u16(),
            self.verdict_in_words()
        )];
        lines.extend(
            self.headers.iter().map(|(name, value)| {
                format!("{name}: {}", String::from_utf8_lossy(value.as_bytes()))
            }),
        );
        if !self.body.is_empty() {
            lines.extend([String::new(), self.body_text()]);
        }
        lines.join("\n")
    }

    fn to_json(&self) -> Value {
        let headers: Map<_, _> = self
            .headers
            .iter()
            .map(|(name, value)| {
                (
                    name.to_string(),
                    String::from_utf8_lossy(value.as_bytes()).into(),
                )
            })
            .collect();
        json!({
            "at": self.at, "method": self.method.as_str(), "path": self.uri.to_string(), "headers": headers,
            "body": String::from_utf8_lossy(&self.body), "signature": self.verdict_in_words(),
            "status": self.status.as_u16(),
        })
    }

    fn verdict_in_words(&self) -> String {
        match &self.verdict {
            SignatureVerdict::Verified => "signature verified".to_owned(),
            SignatureVerdict::Refused(error) => format!("SIGNATURE REFUSED: {error}"),
            SignatureVerdict::NotChecked => "signature not verified".to_owned(),
        }
    }

    /// The body: JSON in lines of its own, any other text indented, so that no line of it looks
    /// like one of the receiver's.
    fn body_text(&self) -> String {
        if let Ok(json) = serde_json::from_slice::<&RawValue>(&self.body) {
            return indent_json(json.get());
        }
        let text = String::from_utf8_lossy(&self.body);
        text.lines()
            .map(|line| format!("    {line}"))
            .collect::<Vec<_>>()
            .join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(body: &'static str) -> ReceivedRequest {
        ReceivedRequest {
            at: Timestamp::EPOCH,
            method: Method::POST,
            uri: Uri::from_static("/hooks"),
            headers: HeaderMap::new(),
            body: Bytes::from_static(body.as_bytes()),
            verdict: SignatureVerdict::NotChecked,
            status: StatusCode::OK,
        }
    }

    /// Body cannot steer the terminal, and no line of it looks like one of the receiver's.
    #[test]
    fn body_text_is_escaped_and_indented() {
        let text = received("a\u{1b}[2J\nPOST /hooks → 200  signature verified").render(false);
        let body: Vec<_> = text.as_str().lines().skip(3).collect();
        assert_eq!(
            body,
            [
                "    a⟦U+001B⟧[2J",
                "    POST /hooks → 200  signature verified"
            ]
        );
    }

    #[test]
    fn a_line_of_json_has_no_control_characters_and_the_same_value() {
        let line = received("\u{9b}2J\u{7f}").render(true);
        assert!(!line.as_str().contains(char::is_control), "{line:?}");
        assert_eq!(
            serde_json::from_str::<Value>(line.as_str()).unwrap()["body"],
            "\u{9b}2J\u{7f}"
        );
    }
}
