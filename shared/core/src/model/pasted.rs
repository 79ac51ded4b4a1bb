//! Texts that people paste: URLs, keys and secrets. Characters that a page or an editor put around
//! the text are left out. Invisible characters within it are refused by their names, because the
//! text is not what it looks like.

use super::made_key::is_broken;
use super::secret::ADMIN_KEY_CHARS_MIN;
use super::visible::is_format;

/// Why a pasted text is refused.
#[derive(Debug, thiserror::Error, Clone, Copy, PartialEq, Eq)]
pub enum PastedError {
    /// A character that is not seen.
    #[error("its character {place} is {} (U+{:04X}), which is not seen; remove it", name(*.character), u32::from(*.character))]
    Hidden {
        /// The character.
        character: char,
        /// The place in the text without its surroundings, from 1.
        place: usize,
    },
    /// A key that is too short to be an admin key.
    #[error("it has {chars} characters, and an admin key has {ADMIN_KEY_CHARS_MIN} or more")]
    Short {
        /// Number of its characters.
        chars: usize,
    },
    /// The key begins like one that posthaste made, and its check characters do not fit.
    #[error("it is not whole: posthaste made it, and a part of it is missing or was changed")]
    Cut,
    /// A character that no key has.
    #[error("its character {place} is no visible ASCII character and no space (U+{:04X})", u32::from(*.character))]
    NoKey {
        /// The character.
        character: char,
        /// The place of the character, from 1.
        place: usize,
    },
}

/// The names of characters that are often pasted along, as Unicode has them.
const NAMES: [(char, &str); 36] = [
    ('\0', "NULL"),
    ('\t', "TAB"),
    ('\n', "LINE FEED"),
    ('\r', "CARRIAGE RETURN"),
    ('\u{8}', "BACKSPACE"),
    ('\u{b}', "LINE TABULATION"),
    ('\u{c}', "FORM FEED"),
    ('\u{1b}', "ESCAPE"),
    ('\u{7f}', "DELETE"),
    ('\u{85}', "NEXT LINE"),
    ('\u{9b}', "CONTROL SEQUENCE INTRODUCER"),
    ('\u{a0}', "NO-BREAK SPACE"),
    ('\u{ad}', "SOFT HYPHEN"),
    ('\u{34f}', "COMBINING GRAPHEME JOINER"),
    ('\u{61c}', "ARABIC LETTER MARK"),
    ('\u{180e}', "MONGOLIAN VOWEL SEPARATOR"),
    ('\u{2007}', "FIGURE SPACE"),
    ('\u{200b}', "ZERO WIDTH SPACE"),
    ('\u{200c}', "ZERO WIDTH NON-JOINER"),
    ('\u{200d}', "ZERO WIDTH JOINER"),
    ('\u{200e}', "LEFT-TO-RIGHT MARK"),
    ('\u{200f}', "RIGHT-TO-LEFT MARK"),
    ('\u{2028}', "LINE SEPARATOR"),
    ('\u{2029}', "PARAGRAPH SEPARATOR"),
    ('\u{202a}', "LEFT-TO-RIGHT EMBEDDING"),
    ('\u{202b}', "RIGHT-TO-LEFT EMBEDDING"),
    ('\u{202c}', "POP DIRECTIONAL FORMATTING"),
    ('\u{202d}', "LEFT-TO-RIGHT OVERRIDE"),
    ('\u{202e}', "RIGHT-TO-LEFT OVERRIDE"),
    ('\u{202f}', "NARROW NO-BREAK SPACE"),
    ('\u{2060}', "WORD JOINER"),
    ('\u{2066}', "LEFT-TO-RIGHT ISOLATE"),
    ('\u{2067}', "RIGHT-TO-LEFT ISOLATE"),
    ('\u{2068}', "FIRST STRONG ISOLATE"),
    ('\u{2069}', "POP DIRECTIONAL ISOLATE"),
    ('\u{feff}', "ZERO WIDTH NO-BREAK SPACE"),
];

/// The text without white space, line ends, marks and other characters around it that are not seen.
pub fn trim_unseen(text: &str) -> &str {
    text.trim_matches(|character: char| character.is_whitespace() || is_format(character))
}

/// A pasted text, without what is around it and with nothing in it that is not seen. A space in it
/// is for its own reader to judge.
pub fn read_pasted(text: &str) -> Result<&str, PastedError> {
    let text = trim_unseen(text);
    match find_character(text, is_unseen_within) {
        Some((place, character)) => Err(PastedError::Hidden { character, place }),
        None => Ok(text),
    }
}

/// Whether nobody sees this character within a text. A space is seen.
fn is_unseen_within(character: char) -> bool {
    character.is_control()
        || is_format(character)
        || (character.is_whitespace() && character != ' ')
}

/// A pasted key: visible ASCII characters, with spaces between them where it is made of words. One
/// that posthaste made must be whole.
pub fn read_key(text: &str) -> Result<&str, PastedError> {
    let text = read_pasted(text)?;
    match find_character(text, |character| {
        !character.is_ascii_graphic() && character != ' '
    }) {
        Some((place, character)) => Err(PastedError::NoKey { character, place }),
        None if is_broken(text) => Err(PastedError::Cut),
        None => Ok(text),
    }
}

/// A pasted admin key: a key that is long enough.
pub fn read_admin_key(text: &str) -> Result<&str, PastedError> {
    let key = read_key(text)?;
    if key.len() < ADMIN_KEY_CHARS_MIN {
        return Err(PastedError::Short { chars: key.len() });
    }
    Ok(key)
}

fn find_character(text: &str, is_it: impl Fn(char) -> bool) -> Option<(usize, char)> {
    let found = text.chars().enumerate().find(|(_, found)| is_it(*found))?;
    Some((found.0 + 1, found.1))
}

fn name(character: char) -> &'static str {
    match NAMES.iter().find(|(named, _)| *named == character) {
        Some((_, name)) => name,
        None if character.is_control() => "a control character",
        None if character.is_whitespace() => "a space of another kind",
        None => "a format character",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The characters that pages, mail programs and editors put around a text.
    const AROUND: [&str; 14] = [
        " ", "\n", "\r\n", "\t", "\u{a0}", "\u{ad}", "\u{200b}", "\u{200d}", "\u{200e}",
        "\u{202e}", "\u{2060}", "\u{2066}", "\u{3000}", "\u{feff}",
    ];

    #[test]
    fn unseen_characters_around_a_text_are_left_out() {
        for before in AROUND {
            for after in AROUND {
                let text = format!("{before}{after}a b{after}{before}");
                assert_eq!(read_pasted(&text), Ok("a b"), "{text:?}");
            }
        }
        assert_eq!(read_key("\u{feff}\n "), Ok(""));
    }

    #[test]
    fn hidden_characters_within_a_text_are_refused_by_name() {
        let check = |hidden: char, name: &str| {
            let code = u32::from(hidden);
            let expected =
                format!("its character 3 is {name} (U+{code:04X}), which is not seen; remove it");
            for read in [read_pasted, read_key] {
                let error = read(&format!(" ab{hidden}c\n")).unwrap_err();
                assert_eq!(error.to_string(), expected);
            }
        };
        for (hidden, name) in NAMES {
            check(hidden, name);
        }
        check('\u{1}', "a control character");
        check('\u{9f}', "a control character");
        check('\u{e0041}', "a format character");
        check('\u{fe0f}', "a format character");
        check('\u{2003}', "a space of another kind");
    }

    #[test]
    fn admin_key_has_a_least_length() {
        assert_eq!(
            read_admin_key(" exactly-16-chars\r\n"),
            Ok("exactly-16-chars")
        );
        for (short, chars) in [("", 0), (" \n", 0), ("only-15-chars..", 15)] {
            assert_eq!(read_admin_key(short), Err(PastedError::Short { chars }));
        }
    }

    #[test]
    fn key_has_visible_ascii_characters_and_spaces_between() {
        assert_eq!(read_key("\"-k~!\""), Ok("\"-k~!\""));
        assert_eq!(
            read_key(" correct horse  battery \n"),
            Ok("correct horse  battery")
        );
        let check = |text: &str, expected: &str| {
            assert_eq!(read_key(text).unwrap_err().to_string(), expected);
        };
        check(
            "añ",
            "its character 2 is no visible ASCII character and no space (U+00F1)",
        );
        check(
            "a b\u{2003}c",
            "its character 4 is a space of another kind (U+2003), which is not seen; remove it",
        );
        assert_eq!(read_pasted("a bñ"), Ok("a bñ"));
    }
}
