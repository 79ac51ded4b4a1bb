//! Events from a pipe. A pause of the writer does not hold up what was read. The number of events
//! that were taken is known at every end, because they cannot be read again.

use std::io::{self, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use crate::batches::SourceItem;
use crate::events::{EventReader, EventsError};

/// Pause after which the events that were read are published without waiting for more.
const PAUSE: Duration = Duration::from_secs(1);

/// The events of a pipe. A thread of its own reads them, one ahead: the pipe may be silent for
/// ever.
#[derive(Debug)]
pub struct PipeEvents {
    /// Events as the reader says them; `None` at the pipe's end.
    events: Receiver<Option<Result<SourceItem, EventsError>>>,
    state: Arc<PipeState>,
    is_over: bool,
}

/// A handle that closes a pipe, and knows what was taken from it.
#[derive(Debug)]
pub struct PipeHandle {
    state: Arc<PipeState>,
    /// No message is ever sent here: the channel ends with the thread that reads.
    reader: Receiver<()>,
}

#[derive(Debug, Default)]
struct PipeState {
    is_closed: AtomicBool,
    events: AtomicU64,
}

/// The pipe as it is read: closed, it has ended.
struct ClosableInput<R> {
    input: R,
    state: Arc<PipeState>,
}

/// Begins to read a pipe.
pub fn open_pipe<R: Read + Send + 'static>(input: R) -> io::Result<(PipeHandle, PipeEvents)> {
    let state = Arc::new(PipeState::default());
    let pipe = Arc::clone(&state);
    let (say, events) = sync_channel(0);
    let (alive, reader) = sync_channel(0);
    let input = ClosableInput {
        input,
        state: Arc::clone(&state),
    };
    thread::Builder::new().spawn(move || {
        let _alive = alive;
        let mut events = EventReader::new(BufReader::new(input));
        loop {
            let next = events.next();
            let is_event = matches!(next, Some(Ok(_)));
            pipe.events.fetch_add(is_event.into(), Ordering::SeqCst);
            let is_wanted = say.send(next).is_ok() || pipe.is_closed();
            if !is_event || !is_wanted {
                return;
            }
        }
    })?;
    let events = PipeEvents {
        events,
        state: Arc::clone(&state),
        is_over: false,
    };
    Ok((PipeHandle { state, reader }, events))
}

impl PipeHandle {
    /// Takes no more from the pipe. Events that were taken still come out.
    pub fn close(&self) {
        self.state.is_closed.store(true, Ordering::SeqCst);
    }

    /// Closes the pipe, and returns the number of events that were taken from it. Events that were
    /// taken and never asked for count too.
    pub fn taken_count(self) -> u64 {
        self.close();
        // Either it ends at once, or it waits for a pipe that is silent, and everything that came
        // is counted.
        let _ = self.reader.recv_timeout(PAUSE);
        self.state.events.load(Ordering::SeqCst)
    }
}

impl PipeState {
    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }
}

impl Iterator for PipeEvents {
    type Item = Result<SourceItem, EventsError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        match self.events.recv_timeout(PAUSE) {
            Ok(Some(Ok(event))) => Some(Ok(event)),
            // Checked afterwards: an event that is cut off is no fault of a pipe that was closed
            // here. Closed, it ends where the same input does not: a cut, as a pause is.
            _ if self.state.is_closed() => {
                self.is_over = true;
                Some(Ok(SourceItem::Pause))
            }
            Ok(end) => end,
            Err(RecvTimeoutError::Timeout) => Some(Ok(SourceItem::Pause)),
            Err(RecvTimeoutError::Disconnected) => Some(Err(EventsError::Reader)),
        }
    }
}

impl Drop for PipeEvents {
    /// Closes the pipe before the channel goes: then the reader counts what it has taken.
    fn drop(&mut self) {
        self.state.is_closed.store(true, Ordering::SeqCst);
    }
}

impl<R: Read> Read for ClosableInput<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.state.is_closed() {
            return Ok(0);
        }
        self.input.read(into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn shown(next: Option<Result<SourceItem, EventsError>>) -> String {
        match next {
            Some(Ok(SourceItem::Event(event))) => event.json,
            Some(Ok(SourceItem::Pause)) => "pause".to_owned(),
            None => "end".to_owned(),
            Some(Err(error)) => error.to_string(),
        }
    }

    fn check(events: &mut PipeEvents, expected: &[&str]) {
        for expected in expected {
            assert_eq!(shown(events.next()), *expected);
        }
    }

    #[test]
    fn a_silent_pipe_pauses_and_its_end_is_its_end() {
        let (input, mut output) = io::pipe().unwrap();
        let (pipe, mut events) = open_pipe(input).unwrap();
        output.write_all(b"{}{\"a\":1}{").unwrap();
        check(&mut events, &["{}", "{\"a\":1}", "pause", "pause"]);
        output.write_all(b"}").unwrap();
        drop(output);
        check(&mut events, &["{}", "end"]);
        assert_eq!(pipe.taken_count(), 3);
    }

    #[test]
    fn a_closed_pipe_hands_out_what_was_taken_and_no_more() {
        let (input, mut output) = io::pipe().unwrap();
        let (pipe, mut events) = open_pipe(input).unwrap();
        output.write_all(b"{}{}{}{\"cut\":").unwrap();
        check(&mut events, &["{}"]);
        pipe.close();
        check(&mut events, &["{}", "{}", "pause", "end"]);
        assert_eq!(pipe.taken_count(), 3);
        drop(output);
    }

    #[test]
    fn taken_events_that_were_not_requested_are_counted() {
        let (input, mut output) = io::pipe().unwrap();
        let (pipe, mut events) = open_pipe(input).unwrap();
        output.write_all(b"{}\n{}\n{}\n{}\n").unwrap();
        check(&mut events, &["{}"]);
        drop(events);
        assert_eq!(pipe.taken_count(), 4);
        drop(output);
    }
}
