//! The time back to which a list has searched.

use maud::{Markup, html};
use posthaste_core::api::IsoTimestamp;

use crate::display::{number, time_tag};

/// The time back to which was searched, and how many were found on the page; nothing where all was
/// searched. The address of the next page has the place to go on, so a search can be left and found
/// again.
pub(crate) fn searched_back_note(found: usize, back_to: Option<IsoTimestamp>) -> Markup {
    let found = u64::try_from(found).unwrap_or(u64::MAX);
    html! {
        @if let Some(IsoTimestamp(back_to)) = back_to {
            p.hint {
                "Searched back to " (time_tag(back_to)) ": " (number(found)) " found on this page. The next \
                 page searches further back."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use posthaste_core::model::Timestamp;

    use super::*;

    #[test]
    fn search_that_goes_on_says_how_far_it_came() {
        let back_to = Some(IsoTimestamp(Timestamp::from_millis(1_700_000_000_000)));
        let note = searched_back_note(1_041, back_to).into_string();
        for text in ["2023-11-14 22:13:20 UTC", ": 1,041 found on this page"] {
            assert!(note.contains(text), "{text}: {note}");
        }
        assert_eq!(searched_back_note(3, None).into_string(), "");
    }
}
