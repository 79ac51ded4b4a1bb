//! Text without regard to case.

use std::borrow::Cow;

/// The text in lower case, character by character, so that what begins with, ends with or contains a part
/// still does. Text that is in lower case already, nearly all there is, is not copied.
pub(super) fn fold(text: &str) -> Cow<'_, str> {
    let is_folded = |b: u8| b.is_ascii() && !b.is_ascii_uppercase();
    if text.bytes().all(is_folded) {
        return Cow::Borrowed(text);
    }
    if text.is_ascii() {
        return Cow::Owned(text.to_ascii_lowercase());
    }
    Cow::Owned(text.chars().flat_map(char::to_lowercase).collect())
}

/// The same of text that may be owned already.
pub(super) fn fold_cow(text: Cow<'_, str>) -> Cow<'_, str> {
    match text {
        Cow::Borrowed(text) => fold(text),
        Cow::Owned(text) => Cow::Owned(fold(&text).into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_is_folded_by_itself() {
        let check = |text: &str, expected: &str| assert_eq!(fold(text), expected);
        check("", "");
        check("Abc-9", "abc-9");
        check("ÄΣΑΣ", "äσασ");
        check("İß", "i\u{307}ß");
    }

    #[test]
    fn text_in_lower_case_is_not_copied() {
        assert!(matches!(fold("order-17"), Cow::Borrowed(_)));
        assert!(matches!(fold_cow(Cow::Borrowed("order-17")), Cow::Borrowed(_)));
    }
}
