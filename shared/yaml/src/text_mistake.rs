//! A mistake, with its place.

use crate::place::TextPlace;

/// A mistake in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextMistake {
    /// The place in the text, if the mistake has one.
    pub place: Option<TextPlace>,
    /// The member at fault; empty for the whole text.
    pub member: String,
    /// The fault and the remedy.
    pub text: String,
}
