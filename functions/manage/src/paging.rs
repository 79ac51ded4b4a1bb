//! Pages of lists: the number of items, and the place where a page begins. Cursors are opaque to
//! clients.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::model::{NAME_BYTES_MAX, is_object_key};

/// Most items on one page, when the client does not say.
const PAGE_ITEMS_DEFAULT: usize = 100;

/// Most items on one page.
const PAGE_ITEMS_MAX: usize = 1000;

/// The time after which a list answers what it has found, and where to go on.
pub(crate) const LIST_TIME_MAX: Duration = Duration::from_secs(5);

/// The page that a client asks for.
pub(crate) struct PageRequest {
    /// Most items on the page.
    pub(crate) items: usize,
    /// The key after which it begins; none for the first page.
    pub(crate) after: Option<String>,
}

impl PageRequest {
    /// Reads the parameters of a list.
    pub(crate) fn parse(limit: Option<usize>, cursor: Option<&str>) -> Result<Self, ApiProblem> {
        let items = limit.unwrap_or(PAGE_ITEMS_DEFAULT);
        if !(1..=PAGE_ITEMS_MAX).contains(&items) {
            let detail = format!("expected 1 to {PAGE_ITEMS_MAX}, found {items}");
            return Err(ApiProblem::new(ProblemKind::BadRequest)
                .member("limit")
                .detail(detail));
        }
        Ok(Self {
            items,
            after: cursor.map(decode_cursor).transpose()?,
        })
    }
}

/// The key after which a page of the objects under `prefix` begins, if a page of them gave it.
pub(crate) fn after_in(prefix: &str, after: Option<String>) -> Result<Option<String>, ApiProblem> {
    match after {
        Some(after) if !after.starts_with(prefix) || !is_object_key(&after) => Err(bad_cursor()),
        after => Ok(after),
    }
}

/// The cursor of a page that begins after `key`.
pub(crate) fn encode_cursor(key: &str) -> String {
    URL_SAFE_NO_PAD.encode(key)
}

/// The beginning of names of topics or subscriptions, in lower case.
pub(crate) fn folded_prefix(prefix: &str) -> Result<String, ApiProblem> {
    let is_of_names = prefix
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if is_of_names && prefix.len() <= NAME_BYTES_MAX {
        return Ok(prefix.to_ascii_lowercase());
    }
    let detail = format!(
        "expected at most {NAME_BYTES_MAX} letters, digits and hyphens, as in the names of topics and \
         subscriptions"
    );
    Err(ApiProblem::new(ProblemKind::BadRequest)
        .member("prefix")
        .detail(detail))
}

/// The problem of a cursor that no page of this list gave.
pub(crate) fn bad_cursor() -> ApiProblem {
    ApiProblem::new(ProblemKind::BadRequest)
        .member("cursor")
        .detail("not a cursor of this list")
}

fn decode_cursor(cursor: &str) -> Result<String, ApiProblem> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok();
    bytes
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .ok_or_else(bad_cursor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_key_survives_its_cursor(key in ".{0,64}") {
            prop_assert_eq!(decode_cursor(&encode_cursor(&key)), Ok(key));
        }

        #[test]
        fn no_text_breaks_a_cursor(text in ".{0,64}") {
            if let Err(problem) = decode_cursor(&text) {
                prop_assert_eq!(problem.member.as_deref(), Some("cursor"));
            }
        }
    }
}
