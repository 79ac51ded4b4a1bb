//! JSON as it was written, with its members on lines of their own.

/// Deepest indent, in steps, so that a text of brackets stays readable.
const DEPTH_SHOWN_MAX: usize = 24;

/// A JSON text with line breaks and indents between its tokens, which stay as they were written.
/// Ends after `chars_max` characters. Any text may be given: one that is not JSON only has odd
/// breaks.
pub(crate) fn indent_json(json: &str, chars_max: usize) -> String {
    let mut lines = IndentedJson::default();
    for character in json.chars() {
        if lines.chars > chars_max {
            break;
        }
        lines.add_char(character);
    }
    lines.text
}

#[derive(Default)]
struct IndentedJson {
    text: String,
    chars: usize,
    depth: usize,
    is_in_string: bool,
    is_escaped: bool,
    /// Whether the last token opened an object or an array.
    has_opened: bool,
}

impl IndentedJson {
    fn add_char(&mut self, character: char) {
        if self.is_in_string {
            return self.add_of_string(character);
        }
        if matches!(character, ' ' | '\n' | '\t' | '\r') {
            return;
        }
        let has_opened = std::mem::take(&mut self.has_opened);
        match character {
            '}' | ']' => {
                self.depth = self.depth.saturating_sub(1);
                if !has_opened {
                    self.break_line();
                }
            }
            _ if has_opened => self.break_line(),
            _ => {}
        }
        self.push(character);
        self.handle_token(character);
    }

    fn handle_token(&mut self, character: char) {
        match character {
            '"' => self.is_in_string = true,
            '{' | '[' => {
                self.depth += 1;
                self.has_opened = true;
            }
            ',' => self.break_line(),
            ':' => self.push(' '),
            _ => {}
        }
    }

    fn add_of_string(&mut self, character: char) {
        self.push(character);
        if std::mem::take(&mut self.is_escaped) {
            return;
        }
        self.is_escaped = character == '\\';
        self.is_in_string = character != '"';
    }

    fn break_line(&mut self) {
        self.push('\n');
        for _ in 0..self.depth.min(DEPTH_SHOWN_MAX) {
            self.push(' ');
            self.push(' ');
        }
    }

    fn push(&mut self, character: char) {
        self.text.push(character);
        self.chars += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_stand_on_lines_and_tokens_stay() {
        let check = |json: &str, expected: &str| assert_eq!(indent_json(json, 1_000), expected);
        check(
            r#"{"a":1.10,"b":[],"c":{ }}"#,
            "{\n  \"a\": 1.10,\n  \"b\": [],\n  \"c\": {}\n}",
        );
        check(
            r#"[1, {"a":"b, {\"c\\"}]"#,
            "[\n  1,\n  {\n    \"a\": \"b, {\\\"c\\\\\"\n  }\n]",
        );
        check("12345678901234567890.0", "12345678901234567890.0");
    }

    #[test]
    fn a_text_of_brackets_ends_and_stays_narrow() {
        let text = indent_json(&"[".repeat(1_000_000), 10_000);
        assert!(text.chars().count() < 10_100);
        assert!(
            text.lines()
                .all(|line| line.len() <= 2 * DEPTH_SHOWN_MAX + 1)
        );
    }
}
