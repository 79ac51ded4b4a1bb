//! A request as `listen` prints it.

use http::StatusCode;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::output::indent_json;
use crate::receiver::{ReceivedRequest, SignatureVerdict};
use crate::terminal::TerminalText;

/// The text to print of a request that gets this answer: for people, or one line of JSON.
pub(super) fn render_request(
    request: &ReceivedRequest,
    status: StatusCode,
    is_json: bool,
) -> TerminalText {
    if is_json {
        TerminalText::from_json(request_json(request, status))
    } else {
        TerminalText::from_text(&request_text(request, status))
    }
}

fn request_text(request: &ReceivedRequest, status: StatusCode) -> String {
    let ReceivedRequest {
        at, method, uri, ..
    } = request;
    let verdict = verdict_in_words(request.verdict);
    let mut lines = vec![format!(
        "\n{at}  {method} {uri} → {}  {verdict}",
        status.as_u16()
    )];
    for (name, value) in &request.headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        lines.push(format!("{name}: {value}"));
    }
    if !request.body.is_empty() {
        lines.extend([String::new(), body_text(&request.body)]);
    }
    lines.join("\n")
}

fn request_json(request: &ReceivedRequest, status: StatusCode) -> Value {
    let mut headers = Map::new();
    for (name, value) in &request.headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        headers.insert(name.to_string(), value.into());
    }
    json!({
        "at": request.at, "method": request.method.as_str(), "path": request.uri.to_string(),
        "headers": headers, "body": String::from_utf8_lossy(&request.body),
        "signature": verdict_in_words(request.verdict), "status": status.as_u16(),
    })
}

fn verdict_in_words(verdict: SignatureVerdict) -> String {
    match verdict {
        SignatureVerdict::Verified => "signature verified".to_owned(),
        SignatureVerdict::Refused(error) => format!("SIGNATURE REFUSED: {error}"),
        SignatureVerdict::NotChecked => "signature not verified".to_owned(),
    }
}

/// A body: JSON in lines of its own, any other text indented, so that no line of it looks like one
/// of the receiver's.
fn body_text(body: &[u8]) -> String {
    if let Ok(json) = serde_json::from_slice::<&RawValue>(body) {
        return indent_json(json.get());
    }
    let text = String::from_utf8_lossy(body);
    let lines: Vec<_> = text.lines().map(|line| format!("    {line}")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use http::{HeaderMap, Method, Uri};
    use posthaste_core::model::Timestamp;

    fn render(body: &'static str, is_json: bool) -> TerminalText {
        let request = ReceivedRequest {
            at: Timestamp::EPOCH,
            method: Method::POST,
            uri: Uri::from_static("/hooks"),
            headers: HeaderMap::new(),
            body: Bytes::from_static(body.as_bytes()),
            verdict: SignatureVerdict::NotChecked,
        };
        render_request(&request, StatusCode::OK, is_json)
    }

    /// Body cannot steer the terminal, and no line of it looks like one of the receiver's.
    #[test]
    fn body_text_is_escaped_and_indented() {
        let text = render("a\u{1b}[2J\nPOST /hooks → 200  signature verified", false);
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
        let line = render("\u{9b}2J\u{7f}", true);
        assert!(!line.as_str().contains(char::is_control), "{line:?}");
        assert_eq!(
            serde_json::from_str::<Value>(line.as_str()).unwrap()["body"],
            "\u{9b}2J\u{7f}"
        );
    }
}
