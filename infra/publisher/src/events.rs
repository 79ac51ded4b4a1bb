//! Events out of a file or a pipe, one after the other: an array of them, or one after the other
//! with white space between (JSON lines are that), whatever the size of the whole. Each keeps its
//! bytes.

use std::fmt;
use std::io::{self, BufRead, Read};
use std::mem;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Deserializer;

/// Longest text of one event. No request may carry as much, so that the server gives the exact
/// reason.
const EVENT_TEXT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The byte order mark of UTF-8, with which some programs begin a file (PowerShell, Excel).
const MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// An event of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputEvent {
    /// The text: one JSON object.
    pub json: String,
    /// The line in which it begins, from 1.
    pub line: u64,
}

/// The place of an event in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventPlace {
    /// The event's number, from 0.
    pub index: u64,
    /// The line in which it begins, from 1.
    pub line: u64,
}

/// Error of a source of events.
#[derive(Debug, thiserror::Error)]
pub enum EventsError {
    /// The file cannot be read. The place is that of the next event.
    #[error("failed to read on after event {} (the first is 0), in line {}", .0.index, .0.line)]
    Read(EventPlace, #[source] io::Error),
    /// The thread that reads the pipe is gone.
    #[error("the thread that reads the events has ended")]
    Reader,
    /// The text at the place of an event is something else.
    #[error("line {line}: expected {expected}")]
    Unexpected { line: u64, expected: &'static str },
    /// An event is no JSON. The error's line and column count from the beginning of the event.
    #[error("{0}, is no JSON object")]
    Syntax(EventPlace, #[source] serde_json::Error),
    /// An event is not text.
    #[error("{0}, is not UTF-8")]
    Utf8(EventPlace),
    /// An event is larger than anything a server takes.
    #[error("{0}, has no end within {EVENT_TEXT_BYTES_MAX} bytes")]
    TooLarge(EventPlace),
    /// The file has fewer events than should be skipped.
    #[error("--from {from}: there are only {events} events")]
    TooFew { from: u64, events: u64 },
}

impl fmt::Display for EventPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { index, line } = self;
        write!(
            f,
            "event {index} (the first is 0), which begins in line {line}"
        )
    }
}

/// The events of an input.
#[derive(Debug)]
pub struct EventReader<R> {
    input: R,
    state: ReaderState,
    /// The next event, and the current line.
    place: EventPlace,
    /// The text of the event that is being read.
    text: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReaderState {
    /// At the beginning, after so many bytes of a byte order mark.
    Begin(usize),
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
    pub fn new(input: R) -> Self {
        Self {
            input,
            state: ReaderState::Begin(0),
            place: EventPlace { index: 0, line: 1 },
            text: Vec::new(),
        }
    }

    /// The next event; `None` at the end.
    pub(crate) fn read_event(&mut self) -> Result<Option<InputEvent>, EventsError> {
        if !self.seek_event()? {
            return Ok(None);
        }
        let place = self.place;
        self.text.clear();
        if let Err(error) = IgnoredAny::deserialize(&mut Deserializer::from_reader(&mut *self)) {
            return Err(match error {
                _ if self.text.len() >= EVENT_TEXT_BYTES_MAX => EventsError::TooLarge(place),
                error if error.is_io() => EventsError::Read(self.place, error.into()),
                error => EventsError::Syntax(place, error),
            });
        }
        let text = String::from_utf8(mem::take(&mut self.text));
        self.place.index += 1;
        Ok(Some(InputEvent {
            json: text.map_err(|_| EventsError::Utf8(place))?,
            line: place.line,
        }))
    }

    /// Goes to the beginning of the next event; false if there is none.
    fn seek_event(&mut self) -> Result<bool, EventsError> {
        use ReaderState::{Array, ArrayBegun, ArrayComma, ArrayOver, Begin, Loose};
        loop {
            let byte = self.peek_byte()?;
            self.state = match (self.state, byte) {
                (Begin(read), Some(byte)) if MARK.get(read) == Some(&byte) => Begin(read + 1),
                (Begin(1 | 2), _) => return Err(self.unexpected()),
                (state, Some(b' ' | b'\t' | b'\r' | b'\n')) => state,
                (Begin(0 | 3), Some(b'[')) => ArrayBegun,
                (ArrayBegun | Array, Some(b']')) => ArrayOver,
                (Array, Some(b',')) => ArrayComma,
                (Begin(0 | 3) | Loose, Some(b'{')) => Loose,
                (ArrayBegun | ArrayComma, Some(b'{')) => Array,
                (Begin(0 | 3) | Loose | ArrayOver, None) => return Ok(false),
                _ => return Err(self.unexpected()),
            };
            if byte == Some(b'{') {
                return Ok(true);
            }
            self.place.line += u64::from(byte == Some(b'\n'));
            self.input.consume(1);
        }
    }

    fn peek_byte(&mut self) -> Result<Option<u8>, EventsError> {
        loop {
            match self.input.fill_buf() {
                Ok(piece) => return Ok(piece.first().copied()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(EventsError::Read(self.place, error)),
            }
        }
    }

    fn unexpected(&self) -> EventsError {
        let expected = match self.state {
            ReaderState::Begin(_) => "an event (a JSON object) or an array of events",
            ReaderState::ArrayBegun => "an event (a JSON object), or the end of the array",
            ReaderState::Array => "a comma and the next event, or the end of the array",
            ReaderState::ArrayOver => "nothing more after the array",
            ReaderState::ArrayComma | ReaderState::Loose => "the next event (a JSON object)",
        };
        let line = self.place.line;
        EventsError::Unexpected { line, expected }
    }
}

/// The input as it is parsed, which keeps what is read of it, up to the longest text of an event.
impl<R: BufRead> Read for EventReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let room = EVENT_TEXT_BYTES_MAX.saturating_sub(self.text.len());
        let length = into.len().min(room);
        let count = self.input.read(&mut into[..length])?;
        self.text.extend_from_slice(&into[..count]);
        self.place.line += into[..count].split(|byte| *byte == b'\n').count() as u64 - 1;
        Ok(count)
    }
}

#[cfg(test)]
mod tests;
