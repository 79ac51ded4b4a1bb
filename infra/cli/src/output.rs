//! Replies of commands, and how they are shown: a table on a terminal, aligned text in a pipe, or
//! JSON.

use std::fmt::Write as _;

use comfy_table::{ContentArrangement, Table, presets};
use posthaste_core::model::visible::{escaped_json, visible_line};
use serde::Serialize;
use serde_json::{Value, json};

use crate::terminal::{StandardStream, TerminalText};

/// The style of replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputStyle {
    /// Tables with lines, for people.
    Terminal,
    /// Aligned columns without lines, for `grep` and `awk`.
    Plain,
    Json,
}

impl OutputStyle {
    /// The style for standard output.
    pub fn for_stdout(json: bool) -> Self {
        match (json, StandardStream::Output.is_terminal()) {
            (true, _) => Self::Json,
            (false, true) => Self::Terminal,
            (false, false) => Self::Plain,
        }
    }
}

/// The reply of a command: as JSON, and the same for people.
#[derive(Debug)]
pub struct CommandReply {
    json: Value,
    /// The text to print as JSON, where that of `json` would not be the same.
    exact: Option<String>,
    parts: Vec<ReplyPart>,
    notes: Vec<String>,
}

#[derive(Debug)]
enum ReplyPart {
    Rows {
        header: Vec<&'static str>,
        rows: Vec<Vec<String>>,
    },
    Line(String),
}

impl CommandReply {
    /// A reply that is `json`, still without text for people.
    pub fn new(json: Value) -> Self {
        Self {
            json,
            exact: None,
            parts: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// A reply that is shown as JSON in every style, because JSON was asked for.
    pub fn always_json(json: Value) -> Self {
        let text = escaped_json(&pretty_json(&json)).into_owned();
        Self::new(json).line(text)
    }

    /// A reply that is this JSON text, whose members and numbers stay as they are written.
    pub fn from_json_text(json: &str) -> Self {
        Self {
            exact: Some(indent_json(json)),
            ..Self::without_json()
        }
    }

    /// A reply without JSON: in every style, only its lines are shown.
    pub fn without_json() -> Self {
        Self::new(Value::Null)
    }

    /// The same with another member in its JSON, which is an object.
    pub fn with_member(mut self, name: &str, value: Value) -> Self {
        self.json[name] = value;
        self
    }

    /// Adds a line.
    pub fn line(mut self, text: impl Into<String>) -> Self {
        self.parts.push(ReplyPart::Line(text.into()));
        self
    }

    /// Adds a table. Each row has as many cells as the header.
    pub fn table<const N: usize>(
        mut self,
        header: [&'static str; N],
        rows: Vec<[String; N]>,
    ) -> Self {
        let rows = rows.into_iter().map(Vec::from).collect();
        self.parts.push(ReplyPart::Rows {
            header: header.into(),
            rows,
        });
        self
    }

    /// Adds a list as a table. One without rows is a note that says `none`.
    pub fn list<const N: usize>(
        self,
        header: [&'static str; N],
        rows: Vec<[String; N]>,
        none: impl Into<String>,
    ) -> Self {
        if rows.is_empty() {
            self.note(none)
        } else {
            self.table(header, rows)
        }
    }

    /// Adds a note for people. It goes to standard error, so that a pipe gets the answer alone.
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }

    /// The notes to print in this style.
    pub fn notes(&self, style: OutputStyle) -> impl Iterator<Item = &str> {
        let shown = if style == OutputStyle::Json {
            &[]
        } else {
            self.notes.as_slice()
        };
        shown.iter().map(String::as_str)
    }

    /// The text to print.
    pub fn render(&self, style: OutputStyle) -> TerminalText {
        if style == OutputStyle::Json
            && let Some(json) = &self.exact
        {
            return TerminalText::from_json(format_args!("{json}\n"));
        }
        if style == OutputStyle::Json && !self.json.is_null() {
            return TerminalText::from_json(format_args!("{}\n", pretty_json(&self.json)));
        }
        let mut text = String::new();
        for part in &self.parts {
            match part {
                ReplyPart::Line(line) => text += line,
                // A header without rows would say nothing.
                ReplyPart::Rows { rows, .. } if rows.is_empty() => continue,
                ReplyPart::Rows { header, rows } => text += &format_columns(header, rows, style),
            }
            text.push('\n');
        }
        TerminalText::from_text(&text)
    }
}

/// Rows under a header, without a final line break.
pub fn format_columns(header: &[&str], rows: &[Vec<String>], style: OutputStyle) -> String {
    let mut table = Table::new();
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.load_style(if style == OutputStyle::Terminal {
        presets::UTF8_FULL_CONDENSED
    } else {
        presets::NOTHING
    });
    table.set_header(header.iter().map(|title| title.to_uppercase()));
    table.add_rows(rows.iter().map(|row| {
        row.iter()
            .map(|cell| visible_line(cell).into_owned())
            .collect::<Vec<_>>()
    }));
    if style != OutputStyle::Terminal {
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
    }
    let mut text = String::new();
    for line in table.lines() {
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text.truncate(text.trim_end().len());
    text
}

/// A JSON text with a line for every member and item. Only the white space between them changes,
/// and hidden characters are escaped: members keep their order, and numbers their form.
pub fn indent_json(json: &str) -> String {
    let json = escaped_json(json);
    let mut text = String::with_capacity(json.len() * 2);
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut is_escaped = false;
    let mut characters = json.trim().chars().peekable();
    while let Some(character) = characters.next() {
        if in_string {
            text.push(character);
            in_string = is_escaped || character != '"';
            is_escaped = character == '\\' && !is_escaped;
            continue;
        }
        match character {
            '{' | '[' => {
                text.push(character);
                while characters.next_if(char::is_ascii_whitespace).is_some() {}
                if let Some(end) = characters.next_if(|next| matches!(next, '}' | ']')) {
                    text.push(end);
                } else {
                    depth += 1;
                    new_line(&mut text, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut text, depth);
                text.push(character);
            }
            ',' => {
                text.push(character);
                new_line(&mut text, depth);
            }
            ':' => text += ": ",
            _ if character.is_ascii_whitespace() => {}
            _ => {
                in_string = character == '"';
                text.push(character);
            }
        }
    }
    text
}

/// A value that the API writes as one word, in that word.
pub fn api_word(value: &impl Serialize) -> String {
    json!(value).as_str().unwrap_or_default().to_owned()
}

fn new_line(text: &mut String, depth: usize) {
    text.push('\n');
    text.extend(std::iter::repeat_n("  ", depth));
}

fn pretty_json(json: &Value) -> String {
    // A `Value` has text keys only: writing it cannot fail.
    serde_json::to_string_pretty(json).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply() -> CommandReply {
        let rows = vec![
            ["orders".to_owned(), "2".to_owned()],
            ["ops\u{1b}[2J".to_owned(), "10".to_owned()],
        ];
        CommandReply::new(json!({ "topics": [] }))
            .table(["topic", "subscriptions"], rows)
            .line("2 topics")
    }

    /// Pipe gets aligned columns, without drawn lines and without control characters.
    #[test]
    fn plain_table_is_aligned_without_rules_or_control_chars() {
        let expected =
            "TOPIC           SUBSCRIPTIONS\norders          2\nops⟦U+001B⟧[2J  10\n2 topics\n";
        assert_eq!(reply().render(OutputStyle::Plain).into_string(), expected);
    }

    #[test]
    fn an_empty_list_is_a_note_and_no_header() {
        let header = ["topic", "schema"];
        let reply = CommandReply::new(json!({ "topics": [] })).list(header, vec![], "no topics");
        assert_eq!(reply.render(OutputStyle::Plain).into_string(), "");
        assert_eq!(
            reply.notes(OutputStyle::Terminal).collect::<Vec<_>>(),
            ["no topics"]
        );
        assert_eq!(reply.notes(OutputStyle::Json).count(), 0);
        assert_eq!(
            CommandReply::without_json()
                .table(header, vec![])
                .line("end")
                .render(OutputStyle::Plain)
                .into_string(),
            "end\n"
        );
    }

    #[test]
    fn json_is_the_same_whatever_people_see() {
        assert_eq!(
            reply().render(OutputStyle::Json).into_string(),
            "{\n  \"topics\": []\n}\n"
        );
    }

    #[test]
    fn indented_json_keeps_member_order_and_number_form() {
        let text = r#"[{"b": 129.90,"a":"x\\\"{,:}[]",  "c":[ ],"d":{},"e":[1,null]}]"#;
        let expected = r#"[
  {
    "b": 129.90,
    "a": "x\\\"{,:}[]",
    "c": [],
    "d": {},
    "e": [
      1,
      null
    ]
  }
]"#;
        assert_eq!(indent_json(text), expected);
        assert_eq!(indent_json(expected), expected);
    }

    #[test]
    fn an_exact_reply_keeps_the_numbers_of_its_json() {
        let reply =
            CommandReply::from_json_text(r#"{"b":1.00,"a":18446744073709551616}"#).line("b and a");
        assert_eq!(
            reply.render(OutputStyle::Json).into_string(),
            "{\n  \"b\": 1.00,\n  \"a\": 18446744073709551616\n}\n"
        );
        assert_eq!(reply.render(OutputStyle::Plain).into_string(), "b and a\n");
    }

    #[test]
    fn a_terminal_gets_a_table() {
        assert!(
            reply()
                .render(OutputStyle::Terminal)
                .into_string()
                .contains("│ orders")
        );
    }
}
