//! Cursors: where a list goes on, opaque to clients.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use posthaste_core::api::problem::{Problem, ProblemKind};

/// The cursor of a page that begins after `key`.
pub(crate) fn render(key: &str) -> String {
    URL_SAFE_NO_PAD.encode(key)
}

/// The key after which the page begins; none for the first page.
pub(crate) fn parse(cursor: Option<&str>) -> Result<Option<String>, Problem> {
    let Some(cursor) = cursor else { return Ok(None) };
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok();
    let key = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    let refused =
        || Problem::new(ProblemKind::BadRequest).member("cursor").detail("not a cursor of this list");
    key.map(Some).ok_or_else(refused)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_key_survives_its_cursor(key in ".{0,64}") {
            prop_assert_eq!(parse(Some(&render(&key))), Ok(Some(key)));
        }

        #[test]
        fn no_text_breaks_a_cursor(text in ".{0,64}") {
            if let Err(problem) = parse(Some(&text)) {
                prop_assert_eq!(problem.member.as_deref(), Some("cursor"));
            }
        }
    }
}
