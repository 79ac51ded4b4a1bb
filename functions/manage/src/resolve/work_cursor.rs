//! The cursor of work that resolves or deletes dead letters. It says which work it belongs to and
//! when that began, so that all requests for it mean the same, also with times relative to now.

use posthaste_core::api::problem::ApiProblem;
use posthaste_core::model::Timestamp;
use posthaste_core::stored::LetterEnding;
use serde::{Deserialize, Serialize};

use crate::paging::{PageRequest, bad_cursor, encode_cursor};

/// The place at which the next request goes on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WorkCursor {
    /// The key up to which all is done.
    pub(super) after: String,
    /// The id of the work. A dry run has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    /// The time of the first request. A cursor of release 0.1 has neither this nor the id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) began_at: Option<Timestamp>,
    /// The digest of the selection, so that the id stays with it. Cursors of older programs, and of
    /// dry runs, have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) selection: Option<String>,
}

impl WorkCursor {
    /// The cursor of some work, without a place.
    pub(super) fn of_work(work: &LetterEnding) -> Self {
        Self {
            after: String::new(),
            id: Some(work.id.clone()),
            began_at: Some(work.began_at),
            selection: Some(work.selection_digest()),
        }
    }

    /// The cursor of a dry run, without a place.
    pub(super) fn of_dry_run(began_at: Timestamp) -> Self {
        Self {
            began_at: Some(began_at),
            ..Self::default()
        }
    }

    /// Reads what a client sends. A cursor of release 0.1 is the key alone.
    pub(super) fn parse(cursor: &str) -> Result<Self, ApiProblem> {
        let text = PageRequest::parse(None, Some(cursor))?.after;
        let text = text.unwrap_or_default();
        if !text.starts_with('{') {
            return Ok(Self {
                after: text,
                ..Self::default()
            });
        }
        let cursor: Self = serde_json::from_str(&text).map_err(|_| bad_cursor())?;
        // The id becomes part of a key.
        match &cursor.id {
            Some(id) if !LetterEnding::is_work_id(id) => Err(bad_cursor()),
            Some(_) | None => Ok(cursor),
        }
    }

    /// The cursor as clients get it.
    pub(super) fn encode(&self) -> String {
        encode_cursor(&serde_json::json!(self).to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_key_survives_the_cursor_of_its_work(after in ".{0,64}", millis in 0_u64..1 << 50) {
            let cursor = WorkCursor {
                after,
                id: Some("0b8b9c5e-6a0c".to_owned()),
                began_at: Some(Timestamp::from_millis(millis)),
                selection: Some("0f".repeat(16)),
            };
            prop_assert_eq!(WorkCursor::parse(&cursor.encode()), Ok(cursor));
        }
    }

    #[test]
    fn cursor_of_an_older_program_is_the_key_alone() {
        let cursor = WorkCursor::parse(&encode_cursor("ORDERS/BILLING/a.json")).unwrap();
        let expected = WorkCursor {
            after: "ORDERS/BILLING/a.json".to_owned(),
            ..WorkCursor::default()
        };
        assert_eq!(cursor, expected);
    }

    #[test]
    fn cursor_with_another_id_than_ours_is_refused() {
        for text in [
            "{",
            "{}",
            r#"{"after":"a","id":"../x"}"#,
            r#"{"after":"a","id":""}"#,
        ] {
            let refused = WorkCursor::parse(&encode_cursor(text)).unwrap_err();
            assert_eq!(refused.member.as_deref(), Some("cursor"), "{text}");
        }
    }
}
