//! Comparison without regard to case: Unicode's simple case folding, which maps each character to
//! one, so that a text that begins with, ends with or contains a part still does.
//! <https://www.unicode.org/versions/latest/core-spec/chapter-5/#G21790>

use std::borrow::Cow;

/// Characters that fold otherwise than [`lower_case_of_upper_case`] finds. Turkish alone takes the dotless i for
/// another case of I; the others have a partner, but both are several characters in upper case.
/// <https://www.unicode.org/Public/UCD/latest/ucd/CaseFolding.txt>
const EXCEPTIONS: [(char, char); 4] = [
    ('\u{131}', '\u{131}'),
    ('\u{1FD3}', '\u{390}'),
    ('\u{1FE3}', '\u{3B0}'),
    ('\u{FB05}', '\u{FB06}'),
];

/// The text with each character folded. Text that is folded already, nearly all there is, is not
/// copied.
pub(super) fn fold_case(text: &str) -> Cow<'_, str> {
    let is_folded = text
        .bytes()
        .all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase());
    if is_folded {
        return Cow::Borrowed(text);
    }
    if text.is_ascii() {
        return Cow::Owned(text.to_ascii_lowercase());
    }
    let mut characters = text.char_indices();
    let Some((start, _)) = characters.find(|(_, character)| fold_char(*character) != *character)
    else {
        return Cow::Borrowed(text);
    };
    let (folded_already, rest) = text.split_at(start);
    let mut folded = String::with_capacity(text.len());
    folded.push_str(folded_already);
    folded.extend(rest.chars().map(fold_char));
    Cow::Owned(folded)
}

/// Folds a text that may be owned already.
pub(super) fn fold_cow(text: Cow<'_, str>) -> Cow<'_, str> {
    match text {
        Cow::Borrowed(text) => fold_case(text),
        Cow::Owned(text) => {
            let folded = match fold_case(&text) {
                Cow::Owned(folded) => Some(folded),
                Cow::Borrowed(_) => None,
            };
            Cow::Owned(folded.unwrap_or(text))
        }
    }
}

/// Folds a character: characters that differ in case alone become the same.
pub(super) fn fold_char(character: char) -> char {
    if character.is_ascii() {
        return character.to_ascii_lowercase();
    }
    let exception = EXCEPTIONS.iter().find(|(from, _)| *from == character);
    exception.map_or_else(
        || lower_case_of_upper_case(character),
        |(_, folded)| *folded,
    )
}

/// The lower case of the upper case: final and other sigmas have one upper case, and the Kelvin
/// sign has the lower case of K. A case of several characters does not count.
fn lower_case_of_upper_case(character: char) -> char {
    let upper = single_char(character.to_uppercase()).unwrap_or(character);
    single_char(upper.to_lowercase()).unwrap_or(upper)
}

fn single_char(mut characters: impl Iterator<Item = char>) -> Option<char> {
    let first = characters.next();
    first.filter(|_| characters.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};
    use std::ops::RangeInclusive;

    #[test]
    fn every_character_is_folded_by_itself() {
        let check = |text: &str, expected: &str| assert_eq!(fold_case(text), expected, "{text}");
        check("", "");
        check("Abc-9", "abc-9");
        check("ÄΣΑΣ ας", "äσασ ασ");
        check("µ μ Μ", "μ μ μ");
        check(
            "\u{212A}elvin, \u{212B}ngström, \u{2126}, ſ",
            "kelvin, ångström, ω, s",
        );
        check("ẞ ß", "ß ß");
        check("Straße STRASSE", "straße strasse");
        // Turkish pairs fold in Turkish alone, and a ligature only where one may become several.
        check("İ ı I i", "İ ı i i");
        check("ﬃ ŉ", "ﬃ ŉ");
        check(
            "\u{1FD3} \u{390} \u{FB05} \u{FB06}",
            "\u{390} \u{390} \u{FB06} \u{FB06}",
        );
    }

    #[test]
    fn text_that_is_folded_is_not_copied() {
        for text in ["order-17", "äöü σ", "日本語"] {
            assert!(matches!(fold_case(text), Cow::Borrowed(_)), "{text}");
            assert!(
                matches!(fold_cow(Cow::Borrowed(text)), Cow::Borrowed(_)),
                "{text}"
            );
        }
        let owned = "äöü".to_owned();
        let place = owned.as_ptr();
        assert_eq!(fold_cow(Cow::Owned(owned)).as_ptr(), place);
    }

    /// The characters that Unicode's simple folding takes for one, by the tables of `regex-syntax`.
    fn equals(character: char) -> Vec<char> {
        let mut class = ClassUnicode::new([ClassUnicodeRange::new(character, character)]);
        class.try_case_fold_simple().unwrap();
        let ranges = class.ranges().iter();
        ranges
            .flat_map(|range| range.start()..=range.end())
            .collect()
    }

    /// Letters of Unicode 17, which the tables of version 16 do not have.
    /// <https://www.unicode.org/versions/Unicode17.0.0/>
    const NEWER: [RangeInclusive<char>; 2] = ['\u{A7CE}'..='\u{A7D5}', '\u{16EA0}'..='\u{16ED3}'];

    #[test]
    fn folding_agrees_with_unicode_for_every_character() {
        for character in '\0'..=char::MAX {
            if NEWER.iter().any(|range| range.contains(&character)) {
                continue;
            }
            let folded = fold_char(character);
            let equal = equals(character);
            assert!(
                equal.contains(&folded),
                "{character:?} {folded:?} {equal:?}"
            );
            for other in equal {
                assert_eq!(fold_char(other), folded, "{character:?} {other:?}");
            }
        }
    }
}
