//! Events out of a file or a pipe, one after the other: an array of them, or one after the other
//! with white space between (JSON lines are that), whatever the size of the whole. Each keeps its
//! bytes.

use std::io::{self, BufRead};

use serde_json::value::RawValue;

/// Longest text of one event. No request may carry as much, so that the server gives the exact
/// reason.
const EVENT_TEXT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The byte order mark of UTF-8, with which some programs begin a file (PowerShell, Excel).
const MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// An event of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InputEvent {
    /// The text: one JSON object.
    pub(super) json: String,
    /// The line in which it begins, from 1.
    pub(super) line: u64,
}

/// Error of a source of events.
#[derive(Debug, thiserror::Error)]
pub(super) enum EventsError {
    /// The file cannot be read.
    #[error("failed to read on after event {index} (the first is 0), in line {line}")]
    Read {
        /// The next event's number, from 0.
        index: u64,
        line: u64,
        #[source]
        source: io::Error,
    },
    /// The thread that reads the file is gone.
    #[error("the thread that reads the events has ended")]
    Reader,
    /// The text at the place of an event is something else.
    #[error("line {line}: expected {expected}")]
    Unexpected { line: u64, expected: &'static str },
    /// An event is no JSON.
    #[error("event {index} (the first is 0), which begins in line {line}, is no JSON object")]
    Syntax {
        /// The event's number, from 0.
        index: u64,
        /// The line in which it begins, from 1.
        line: u64,
        /// The error; its line and column count from the beginning of the event.
        #[source]
        source: serde_json::Error,
    },
    /// An event is not text.
    #[error("event {index} (the first is 0), which begins in line {line}, is not UTF-8")]
    Utf8 {
        /// The event's number, from 0.
        index: u64,
        /// The line in which it begins, from 1.
        line: u64,
    },
    /// An event is larger than anything a server takes.
    #[error(
        "event {index} (the first is 0), which begins in line {line}, has no end within \
            {EVENT_TEXT_BYTES_MAX} bytes"
    )]
    TooLarge {
        /// The event's number, from 0.
        index: u64,
        /// The line in which it begins, from 1.
        line: u64,
    },
    /// The file has fewer events than should be skipped.
    #[error("--from {from}: there are only {events} events")]
    TooFew {
        /// Events to skip.
        from: u64,
        /// Events in the file.
        events: u64,
    },
}

/// The events of an input.
#[derive(Debug)]
pub(super) struct EventReader<R> {
    input: R,
    form: ReaderState,
    /// The current line, from 1.
    line: u64,
    /// Number of events that were read.
    count: u64,
    /// True once the input has ended. A terminal that is read again would ask for more.
    is_over: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReaderState {
    /// At the beginning.
    Unknown,
    /// Before the first event, after a byte order mark.
    Begun,
    /// In an array, before its first event.
    ArrayBegun,
    /// In an array, after an event.
    Array,
    /// In an array, after a comma.
    ArrayComma,
    /// After the array.
    ArrayOver,
    /// One event after the other.
    Loose,
}

impl<R: BufRead> EventReader<R> {
    /// The events of `input`. Nothing is read yet.
    pub(super) fn new(input: R) -> Self {
        Self {
            input,
            form: ReaderState::Unknown,
            line: 1,
            count: 0,
            is_over: false,
        }
    }

    /// Number of events that were read.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The next event; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<InputEvent>, EventsError> {
        if !self.seek_event()? {
            return Ok(None);
        }
        let index = self.count;
        let line = self.line;
        let (text, is_whole) = self.read_object()?;
        // Checked first: the text may have been cut inside a character.
        if !is_whole && text.len() >= EVENT_TEXT_BYTES_MAX {
            return Err(EventsError::TooLarge { index, line });
        }
        let text = String::from_utf8(text).map_err(|_| EventsError::Utf8 { index, line })?;
        let checked = serde_json::from_str::<&RawValue>(&text);
        checked.map_err(|source| EventsError::Syntax {
            index,
            line,
            source,
        })?;
        self.count += 1;
        Ok(Some(InputEvent { json: text, line }))
    }

    /// Goes to the beginning of the next event; false if there is none.
    fn seek_event(&mut self) -> Result<bool, EventsError> {
        loop {
            let byte = self.peek_byte()?;
            let (form, is_event) = match (self.form, byte) {
                (_, Some(b' ' | b'\t' | b'\r' | b'\n')) => (self.form, false),
                (ReaderState::Unknown, byte) if byte == Some(MARK[0]) => {
                    self.skip_mark()?;
                    continue;
                }
                (ReaderState::Unknown | ReaderState::Begun, Some(b'[')) => {
                    (ReaderState::ArrayBegun, false)
                }
                (ReaderState::Unknown | ReaderState::Begun | ReaderState::Loose, Some(b'{')) => {
                    (ReaderState::Loose, true)
                }
                (ReaderState::ArrayBegun | ReaderState::ArrayComma, Some(b'{')) => {
                    (ReaderState::Array, true)
                }
                (ReaderState::ArrayBegun | ReaderState::Array, Some(b']')) => {
                    (ReaderState::ArrayOver, false)
                }
                (ReaderState::Array, Some(b',')) => (ReaderState::ArrayComma, false),
                (
                    ReaderState::Unknown
                    | ReaderState::Begun
                    | ReaderState::Loose
                    | ReaderState::ArrayOver,
                    None,
                ) => {
                    return Ok(false);
                }
                (form, _) => {
                    return Err(EventsError::Unexpected {
                        line: self.line,
                        expected: expected_text(form),
                    });
                }
            };
            self.form = form;
            if is_event {
                return Ok(true);
            }
            self.line += u64::from(byte == Some(b'\n'));
            self.input.consume(1);
        }
    }

    /// Goes past a byte order mark.
    fn skip_mark(&mut self) -> Result<(), EventsError> {
        for byte in MARK {
            if self.peek_byte()? != Some(byte) {
                return Err(EventsError::Unexpected {
                    line: self.line,
                    expected: expected_text(self.form),
                });
            }
            self.input.consume(1);
        }
        self.form = ReaderState::Begun;
        Ok(())
    }

    /// Reads an object up to the brace that closes it, the end of the input or the longest text.
    /// Returns its text, still unchecked, and whether it is closed.
    fn read_object(&mut self) -> Result<(Vec<u8>, bool), EventsError> {
        let mut text = Vec::new();
        let mut nesting = NestingDepth::default();
        loop {
            let piece = self.fill_buffer()?;
            let piece = &piece[..piece.len().min(EVENT_TEXT_BYTES_MAX - text.len())];
            let mut lines = 0;
            let end = piece.iter().position(|byte| {
                lines += u64::from(*byte == b'\n');
                nesting.is_closed_by(*byte)
            });
            let piece = &piece[..end.map_or(piece.len(), |end| end + 1)];
            let length = piece.len();
            text.extend_from_slice(piece);
            self.input.consume(length);
            self.line += lines;
            if end.is_some() || length == 0 {
                return Ok((text, end.is_some()));
            }
        }
    }

    fn peek_byte(&mut self) -> Result<Option<u8>, EventsError> {
        self.fill_buffer().map(|piece| piece.first().copied())
    }

    /// The buffered bytes, or the next piece of the input; empty at its end.
    fn fill_buffer(&mut self) -> Result<&[u8], EventsError> {
        let index = self.count;
        let line = self.line;
        // Asked twice, because a borrow that one arm of a loop returns lasts through all of them.
        while !self.is_over {
            match self.input.fill_buf() {
                Ok(piece) => {
                    self.is_over = piece.is_empty();
                    break;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => {
                    return Err(EventsError::Read {
                        index,
                        line,
                        source,
                    });
                }
            }
        }
        if self.is_over {
            return Ok(&[]);
        }
        self.input.fill_buf().map_err(|source| EventsError::Read {
            index,
            line,
            source,
        })
    }
}

fn expected_text(form: ReaderState) -> &'static str {
    match form {
        ReaderState::Unknown | ReaderState::Begun => {
            "an event (a JSON object) or an array of events"
        }
        ReaderState::ArrayBegun => "an event (a JSON object), or the end of the array",
        ReaderState::Array => "a comma and the next event, or the end of the array",
        ReaderState::ArrayOver => "nothing more after the array",
        ReaderState::ArrayComma | ReaderState::Loose => "the next event (a JSON object)",
    }
}

/// Depth inside objects and arrays.
#[derive(Debug, Default)]
struct NestingDepth {
    depth: u64,
    in_string: bool,
    is_escaped: bool,
}

impl NestingDepth {
    /// Takes the next byte; true if it closes what the first one opened.
    fn is_closed_by(&mut self, byte: u8) -> bool {
        if self.in_string {
            self.in_string = self.is_escaped || byte != b'"';
            self.is_escaped = byte == b'\\' && !self.is_escaped;
            return false;
        }
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                return self.depth == 0;
            }
            _ => {}
        }
        false
    }
}

#[cfg(test)]
mod tests;
