//! An answer that is no success, read as RFC 9457 says, for people and for exit codes.

use std::fmt;

use posthaste_core::api::problem::ProblemKind;
use posthaste_publish::PRESSURE_HEADER;
use serde_json::Value;
use ureq::http::HeaderMap;
use ureq::http::header::RETRY_AFTER;

/// Most characters that are shown of an answer that is no problem+json.
const DETAIL_CHARS_MAX: usize = 300;

/// A refusal of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerRefusal {
    /// The status.
    pub status: u16,
    /// The kind of problem, a URI; `about:blank` where the status says it all.
    pub type_uri: String,
    /// The meaning of this kind.
    pub title: String,
    /// The reason, this time.
    pub detail: Option<String>,
    /// The member at fault.
    pub member: Option<String>,
    /// The event at fault, from 0.
    pub index: Option<u64>,
    /// The resource under pressure.
    pub resource: Option<String>,
    /// The level of that resource.
    pub level: Option<String>,
    /// The other mistakes of the body, each as its member and its reason.
    pub more: Vec<String>,
    /// The text of `Retry-After`.
    pub retry_after: Option<String>,
    /// The text of `Posthaste-Pressure`.
    pub pressure: Option<String>,
    /// Whether the same request was sent before and answered with 503: it may have been carried out
    /// then, and be refused for its own effect.
    pub follows_doubt: bool,
}

impl ServerRefusal {
    /// Reads an answer. Of one that is not problem+json, from a proxy for example, the text is
    /// kept.
    pub fn from_response(status: u16, headers: &HeaderMap, body: &[u8]) -> Self {
        let problem: Value = serde_json::from_slice(body).unwrap_or_default();
        Self {
            status,
            type_uri: text_member(&problem, "type").unwrap_or_else(|| "about:blank".to_owned()),
            title: text_member(&problem, "title")
                .unwrap_or_else(|| format!("HTTP status {status}")),
            detail: text_member(&problem, "detail").or_else(|| raw_detail(&problem, body)),
            member: text_member(&problem, "member"),
            index: problem.get("index").and_then(Value::as_u64),
            resource: text_member(&problem, "resource"),
            level: text_member(&problem, "level"),
            more: other_mistakes(&problem),
            retry_after: header_text(headers, RETRY_AFTER.as_str()),
            pressure: header_text(headers, PRESSURE_HEADER),
            follows_doubt: false,
        }
    }

    /// True if the reason is back pressure: producers are being slowed or refused.
    pub fn is_back_pressure(&self) -> bool {
        self.type_uri == ProblemKind::BackPressure.type_uri() || self.status == 429
    }

    /// True if the tarpit refused: the client has to wait for as long as another answer would have
    /// been held. The server counts it as delayed, and every other refusal for back pressure as
    /// refused.
    pub fn is_delay(&self) -> bool {
        self.status == 429
    }
}

/// The mistakes after the first one, which is the member at fault.
fn other_mistakes(problem: &Value) -> Vec<String> {
    let errors = problem
        .get("errors")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    errors.skip(1).filter_map(mistake_line).collect()
}

/// A mistake as `member: detail`.
fn mistake_line(error: &Value) -> Option<String> {
    let member = text_member(error, "member")?;
    let detail = text_member(error, "detail")?;
    Some(format!("{member}: {detail}"))
}

fn text_member(object: &Value, member: &str) -> Option<String> {
    object.get(member)?.as_str().map(str::to_owned)
}

fn header_text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

/// The beginning of a body that is no problem document.
fn raw_detail(problem: &Value, body: &[u8]) -> Option<String> {
    let raw: String = String::from_utf8_lossy(body)
        .trim()
        .chars()
        .take(DETAIL_CHARS_MAX)
        .collect();
    (!raw.is_empty() && !problem.is_object()).then_some(raw)
}

impl std::error::Error for ServerRefusal {}

impl fmt::Display for ServerRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.title, self.status)?;
        if let Some(index) = self.index {
            write!(f, "\n  event: {index} (the first is 0)")?;
        }
        if let Some(member) = &self.member {
            write!(f, "\n  member: {member}")?;
        }
        if let Some(detail) = &self.detail {
            write!(f, "\n  reason: {detail}")?;
        }
        self.more
            .iter()
            .try_for_each(|mistake| write!(f, "\n  and {mistake}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_problem_says_what_and_which_member() {
        let body = json!({
            "type": "urn:posthaste:problem:bad-event", "title": "An event is not as its schema says",
            "status": 400, "detail": "expected a text", "member": "type", "index": 2,
        });
        let refusal =
            ServerRefusal::from_response(400, &HeaderMap::new(), body.to_string().as_bytes());
        let expected = "An event is not as its schema says (400)\n  event: 2 (the first is 0)\n  member: \
            type\n  reason: expected a text";
        assert_eq!(refusal.to_string(), expected);
    }

    #[test]
    fn every_mistake_of_a_body_is_shown() {
        let errors = json!([
            { "member": "a", "detail": "first" }, { "member": "b[1]", "detail": "second" }, { "member": 3 },
        ]);
        let body = json!({ "title": "No", "detail": "first", "member": "a", "errors": errors })
            .to_string();
        let refusal = ServerRefusal::from_response(400, &HeaderMap::new(), body.as_bytes());
        assert_eq!(
            refusal.to_string(),
            "No (400)\n  member: a\n  reason: first\n  and b[1]: second"
        );
    }

    #[test]
    fn an_answer_that_is_no_problem_is_shown_as_far_as_it_is_text() {
        let check = |body: &[u8], expected: &str| {
            assert_eq!(
                ServerRefusal::from_response(502, &HeaderMap::new(), body).to_string(),
                expected
            );
        };
        check(
            b"Bad gateway\n",
            "HTTP status 502 (502)\n  reason: Bad gateway",
        );
        check(b"", "HTTP status 502 (502)");
        check(b"{}", "HTTP status 502 (502)");
        check(b"\xff", "HTTP status 502 (502)\n  reason: \u{fffd}");
    }
}
