//! The request of an operator to send all that is parked for a subscription, under the prefix
//! [`layout::FORCING`](super::layout::FORCING). manage writes it, with the creation of the
//! subscription that is meant; wake adds how far it came, and deletes it at the end. It has no
//! version: an object that cannot be read asks for all. Fixture: `force-request.json`.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::model::Identity;

/// A request as it is stored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ForceRequest {
    /// The last key that was looked at. `None` before the first run.
    #[serde(default)]
    pub after: Option<String>,
    /// The creation of the subscription that was forced. `None` from an older program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
}

impl ForceRequest {
    /// Reads a request.
    pub fn parse(bytes: &[u8]) -> Self {
        serde_json::from_slice(bytes).unwrap_or_default()
    }

    /// Writes the request.
    pub fn render(&self) -> Bytes {
        // Texts: serialising them cannot fail.
        Bytes::from(serde_json::to_vec(self).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIXTURE: &str = include_str!("fixtures/force-request.json");

    #[test]
    fn a_request_is_written_as_it_always_was_and_read_back() {
        let request = ForceRequest::parse(FIXTURE.as_bytes());
        assert_eq!(request.render(), FIXTURE.trim_end());
        assert_eq!(
            request.after.as_deref(),
            Some("parked/20231114T2213Z/orders.billing/x.json")
        );
        assert_eq!(
            request.identity.map(|it| it.to_string()).as_deref(),
            Some("0102030405060708090a0b0c")
        );
    }

    #[test]
    fn one_that_says_nothing_asks_for_all() {
        for text in ["", "{}", "?", r#"{"after":5}"#] {
            assert_eq!(
                ForceRequest::parse(text.as_bytes()),
                ForceRequest::default(),
                "{text}"
            );
        }
    }
}
