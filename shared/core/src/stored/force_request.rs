//! The request of an operator to send all that is parked for a subscription, under the prefix
//! [`layout::FORCING`](super::layout::FORCING). manage writes it, with the creation of the
//! subscription that is meant; wake ends the holds, adds how far it came, and deletes it at the end. It has no
//! version: an object that cannot be read asks for all. Fixtures: `force-request.json`,
//! `force-request-asked.json`.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::model::{Identity, Timestamp};

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
    /// The id of the request, which all who ask for it while it is open get. `None` from an older
    /// program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The time at which it was last asked for: holds that began before it end. `None` from an
    /// older program, which ended them itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_at: Option<Timestamp>,
}

impl ForceRequest {
    /// The request for the subscription of this creation, asked for once more, in the place of
    /// `open`: the walk through what is parked begins again. It has the id of an open one for the
    /// same creation, else the new one.
    #[must_use]
    pub fn asked_for(
        open: Option<Self>,
        identity: Option<Identity>,
        new_id: &str,
        now: Timestamp,
    ) -> Self {
        let same = open.filter(|open| open.identity == identity);
        let id = same.and_then(|open| open.id);
        Self {
            after: None,
            identity,
            id: Some(id.unwrap_or_else(|| new_id.to_owned())),
            asked_at: Some(now),
        }
    }

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
    fn request_that_is_asked_for_again_keeps_its_id() {
        let text = include_str!("fixtures/force-request-asked.json");
        let open = ForceRequest::parse(text.as_bytes());
        assert_eq!(open.render(), text.trim_end());
        let now = Timestamp::parse("2026-11-21T10:15:00Z").unwrap();
        let again = ForceRequest::asked_for(Some(open.clone()), open.identity, "new", now);
        assert_eq!(
            (again.id, again.after, again.asked_at),
            (open.id.clone(), None, Some(now))
        );
        let other = ForceRequest::asked_for(Some(open), None, "new", now);
        assert_eq!(other.id.as_deref(), Some("new"));
    }

    #[test]
    fn empty_request_asks_for_all() {
        for text in ["", "{}", "?", r#"{"after":5}"#] {
            assert_eq!(
                ForceRequest::parse(text.as_bytes()),
                ForceRequest::default(),
                "{text}"
            );
        }
    }
}
