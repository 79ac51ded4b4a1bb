//! The one door to standard output and standard error. What goes out was written by strangers too:
//! producers, endpoints, servers, and whoever wrote a command line. Here every character that
//! nobody sees, or that steers a terminal, is made visible, and escaped in JSON. A lint
//! (`clippy.toml`) keeps all other files from these streams.

use std::fmt;
use std::io::{self, IsTerminal, Write};

use posthaste_core::model::visible::{escaped_json, visible_line, visible_text};

/// Clears a terminal's line and goes to its beginning.
const CLEAR: &str = "\r\x1b[K";

/// A text that may go to a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalText(String);

impl TerminalText {
    /// A text for people, which keeps its lines.
    pub fn from_text(text: &str) -> Self {
        Self(visible_text(text).into_owned())
    }

    /// A text of JSON, whose value stays as it is.
    pub fn from_json(json: impl fmt::Display) -> Self {
        Self(escaped_json(&json.to_string()).into_owned())
    }

    /// The text as it goes out.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text as it goes out.
    pub fn into_string(self) -> String {
        self.0
    }
}

/// A standard stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StandardStream {
    Output,
    Error,
}

impl StandardStream {
    /// Whether a person looks at it.
    pub fn is_terminal(self) -> bool {
        match self {
            Self::Output => stdout().is_terminal(),
            Self::Error => stderr().is_terminal(),
        }
    }

    /// Writes a text at once, also into a pipe.
    pub fn write(self, shown: &TerminalText) -> io::Result<()> {
        self.write_bytes(shown.0.as_bytes())
    }

    /// Writes a text and a line break at once, also into a pipe.
    pub fn write_line(self, shown: &TerminalText) -> io::Result<()> {
        self.write_bytes(format!("{}\n", shown.0).as_bytes())
    }

    /// Writes bytes as they are, for a program that reads them. A terminal must not get them.
    pub fn write_exactly(self, bytes: &[u8]) -> io::Result<()> {
        if self.is_terminal() {
            return self.write(&TerminalText::from_text(&String::from_utf8_lossy(bytes)));
        }
        self.write_bytes(bytes)
    }

    fn write_bytes(self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Output => {
                let mut stdout = stdout().lock();
                stdout.write_all(bytes).and_then(|()| stdout.flush())
            }
            Self::Error => stderr().write_all(bytes),
        }
    }
}

/// Writes a line for people on standard error. With it closed, the line has no reader.
pub fn tell_user(text: &str) {
    let _ = StandardStream::Error.write_line(&TerminalText::from_text(text));
}

/// Puts a text in the place of the line that a terminal shows on standard error, or clears it.
pub fn change_line(text: &str) {
    let line = format!("{CLEAR}{}", visible_line(text));
    // The work goes on without a reader.
    let _ = StandardStream::Error.write_bytes(line.as_bytes());
}

/// Asks on standard error, and reads the answer from standard input. False where it is not `y` or
/// `yes`, in any case.
pub fn ask_yes_or_no(question: &str) -> io::Result<bool> {
    let question = format!("{} [y/N] ", visible_line(question));
    StandardStream::Error.write_bytes(question.as_bytes())?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    let answer = answer.trim();
    Ok(["y", "yes"]
        .iter()
        .any(|yes| answer.eq_ignore_ascii_case(yes)))
}

/// Whether a person can be asked: standard input and standard error are a terminal.
pub fn can_ask_user() -> bool {
    io::stdin().is_terminal() && StandardStream::Error.is_terminal()
}

/// Prints the help or the version, which a command line asked for. Help shows the values of
/// variables: if one of them hides something, the help is printed without colours.
pub fn print_help(help: &clap::Error) {
    let plain = help.render().to_string();
    let shown = TerminalText::from_text(&plain);
    if shown.as_str() == plain {
        // It knows its stream, and the colours of a terminal.
        print_in_colours(help);
    } else if help.use_stderr() {
        let _ = StandardStream::Error.write(&shown);
    } else {
        let _ = StandardStream::Output.write(&shown);
    }
}

/// The stream of the log, whose formats make texts of strangers visible in each line.
pub fn log_stream() -> io::Stderr {
    stderr()
}

#[expect(clippy::disallowed_methods, reason = "this file is the door")]
fn print_in_colours(help: &clap::Error) {
    let _ = help.print();
}

#[expect(clippy::disallowed_methods, reason = "this file is the door")]
fn stdout() -> io::Stdout {
    io::stdout()
}

#[expect(clippy::disallowed_methods, reason = "this file is the door")]
fn stderr() -> io::Stderr {
    io::stderr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_steer_a_terminal_are_made_visible() {
        let text = "a\u{1b}[2J\u{9b}2J\u{202e}b\nc\u{7f}";
        let expected = "a⟦U+001B⟧[2J⟦U+009B⟧2J⟦U+202E⟧b\nc⟦U+007F⟧";
        assert_eq!(TerminalText::from_text(text).as_str(), expected);
    }

    #[test]
    fn json_passes_the_door_with_its_value() {
        let json = serde_json::json!({ "a\u{85}": ["\u{202e}\u{7f}\n"] });
        let shown = TerminalText::from_json(&json);
        assert_eq!(shown.as_str(), r#"{"a\u0085":["\u202e\u007f\n"]}"#);
        let back: serde_json::Value = serde_json::from_str(shown.as_str()).unwrap();
        assert_eq!(back, json);
    }
}
