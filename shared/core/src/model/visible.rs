//! Texts of strangers on terminals and pages: producers, endpoints and files write them. Invisible
//! characters, and those that steer a terminal or turn other characters round, are shown as their
//! code points in texts for people, and escaped in JSON, whose value stays the same.

use std::borrow::Cow;
use std::fmt::Write;

/// A text for people that keeps its lines: every other character that is not seen is written as its
/// code point, `⟦U+202E⟧`. Line ends and tabs stay.
pub fn visible_text(text: &str) -> Cow<'_, str> {
    replace_chars(text, is_hidden, write_code_point)
}

/// The same for one line, such as a cell of a table: a line end and a tab are written as their code
/// points too, so that no text looks like a line of its own.
pub fn visible_line(text: &str) -> Cow<'_, str> {
    replace_chars(
        text,
        |character| is_hidden(character) || matches!(character, '\n' | '\t'),
        write_code_point,
    )
}

/// A text of JSON whose hidden characters are escaped. JSON itself asks that only of the first 32
/// characters. Its value, the white space around its tokens and all other characters stay.
pub fn escaped_json(json: &str) -> Cow<'_, str> {
    replace_chars(json, is_hidden, |escaped, character| {
        for unit in character.encode_utf16(&mut [0; 2]) {
            // Writing to a text cannot fail.
            let _ = write!(escaped, "\\u{unit:04x}");
        }
    })
}

/// Whether a character is shown as its code point: a control character other than a line end or a
/// tab, one that ends a line where that is not seen, and one without a look of its own. The two
/// that only choose the look of the sign before them, as in ❤️, stay.
pub fn is_hidden(character: char) -> bool {
    if character.is_ascii() {
        return character.is_ascii_control() && !matches!(character, '\n' | '\t');
    }
    character.is_control()
        || matches!(character, '\u{2028}' | '\u{2029}')
        || is_format(character) && !matches!(character, '\u{fe0e}' | '\u{fe0f}')
}

/// Whether a character has no look of its own: the general category `Cf`, and what is drawn as
/// nothing (`Default_Ignorable_Code_Point`).
/// <https://www.unicode.org/Public/17.0.0/ucd/DerivedCoreProperties.txt>
pub(super) fn is_format(character: char) -> bool {
    matches!(
        character,
        '\u{ad}'
            | '\u{34f}'
            | '\u{600}'..='\u{605}'
            | '\u{61c}'
            | '\u{6dd}'
            | '\u{70f}'
            | '\u{890}'..='\u{891}'
            | '\u{8e2}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{110bd}'
            | '\u{110cd}'
            | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

fn write_code_point(shown: &mut String, character: char) {
    // Writing to a text cannot fail.
    let _ = write!(shown, "⟦U+{:04X}⟧", u32::from(character));
}

/// The text with what `write` makes of each character that `is_it` names.
fn replace_chars(
    text: &str,
    is_it: impl Fn(char) -> bool,
    write: impl Fn(&mut String, char),
) -> Cow<'_, str> {
    if !text.contains(&is_it) {
        return Cow::Borrowed(text);
    }
    let mut replaced = String::with_capacity(text.len() * 2);
    for character in text.chars() {
        if is_it(character) {
            write(&mut replaced, character);
        } else {
            replaced.push(character);
        }
    }
    Cow::Owned(replaced)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hidden_characters_of_every_kind_are_shown_as_code_points() {
        let kinds = [
            0x0, 0x7, 0x8, 0xb, 0xc, 0xd, 0x1b, 0x7f, 0x80, 0x85, 0x90, 0x9b, 0x9d, 0x9f, 0xad,
            0x34f, 0x61c, 0x115f, 0x1160, 0x180e, 0x200b, 0x200e, 0x200f, 0x2028, 0x2029, 0x202a,
            0x202e, 0x2060, 0x2066, 0x2069, 0x206a, 0x206f, 0x3164, 0xfeff, 0xffa0, 0xfff9, 0xfffb,
            0xe0041,
        ];
        for code in kinds {
            let hidden = char::from_u32(code).unwrap();
            let text = format!("a{hidden}b");
            let expected = format!("a⟦U+{code:04X}⟧b");
            assert_eq!(visible_text(&text), expected);
            assert_eq!(visible_line(&text), expected);
        }
    }

    #[test]
    fn text_that_hides_nothing_stays_as_it_is() {
        for text in ["", "orders → ❤️ é 語 🙂", "⟦U+202E⟧"] {
            assert!(matches!(visible_line(text), Cow::Borrowed(same) if same == text));
        }
    }

    #[test]
    fn lines_stay_but_where_one_line_is_meant() {
        assert_eq!(visible_text("a\n\tb\r\n"), "a\n\tb⟦U+000D⟧\n");
        assert_eq!(visible_line("a\n\tb"), "a⟦U+000A⟧⟦U+0009⟧b");
    }

    #[test]
    fn json_has_its_hidden_characters_escaped() {
        let json = "{\"a\u{9b}\": \"\u{202e}\u{7f}\u{e0041}é\"}";
        let expected = r#"{"a\u009b": "\u202e\u007f\udb40\udc41é"}"#;
        assert_eq!(escaped_json(json), expected);
    }

    proptest! {
        #[test]
        fn no_hidden_character_is_left_and_json_means_the_same(text: String) {
            prop_assert!(!visible_text(&text).contains(is_hidden));
            let shown = visible_line(&text);
            prop_assert!(!shown.contains(|it| is_hidden(it) || it == '\n' || it == '\t'));
            let json = serde_json::to_string(&text).unwrap();
            let escaped = escaped_json(&json);
            prop_assert!(!escaped.contains(is_hidden));
            prop_assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), text);
        }
    }
}
