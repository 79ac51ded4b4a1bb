//! States of links in words.

use maud::Markup;
use posthaste_core::api::LinkState;

use crate::words::link_word;

/// The state in a word.
pub(crate) fn state_badge(state: LinkState) -> Markup {
    link_word(state).badge()
}

/// The meaning of the state.
pub(crate) fn state_meaning(state: LinkState) -> &'static str {
    link_word(state).meaning
}
