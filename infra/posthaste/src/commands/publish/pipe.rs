//! Events from a pipe. A pause of the writer does not hold up what was read. The number of events
//! that were taken is known at every end, because they cannot be read again.

use std::io::{self, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::batches::{EventSource, SourceItem};
use super::events::{EventReader, EventsError, InputEvent};

/// Pause after which the events that were read are published without waiting for more.
pub(super) const PAUSE: Duration = Duration::from_secs(1);

/// Events that were taken from the pipe.
type PipeItem = Result<Option<InputEvent>, EventsError>;

/// The events of a pipe. A thread of its own reads them, one ahead: the pipe may be silent for
/// ever.
#[derive(Debug)]
pub(super) struct PipeEvents {
    events: Receiver<PipeItem>,
    tap: Arc<PipeState>,
    is_over: bool,
}

/// A handle that closes a pipe, and knows what was taken from it.
#[derive(Debug)]
pub(super) struct PipeHandle {
    tap: Arc<PipeState>,
    /// No message is ever sent here: the channel ends with the thread that reads.
    reader: Receiver<()>,
}

#[derive(Debug, Default)]
struct PipeState {
    closed: CancellationToken,
    events: AtomicU64,
}

/// The pipe as it is read: closed, it has ended.
#[derive(Debug)]
struct ClosableInput<R> {
    input: R,
    tap: Arc<PipeState>,
}

impl PipeHandle {
    /// Begins to read.
    pub(super) fn open<R: Read + Send + 'static>(input: R) -> io::Result<(Self, PipeEvents)> {
        let tap = Arc::new(PipeState::default());
        let (say, events) = sync_channel(0);
        let (alive, reader) = sync_channel(0);
        let source = EventReader::new(BufReader::new(ClosableInput {
            input,
            tap: Arc::clone(&tap),
        }));
        let reading = Arc::clone(&tap);
        thread::Builder::new().spawn(move || read_events(source, &reading, &say, alive))?;
        Ok((
            Self {
                tap: Arc::clone(&tap),
                reader,
            },
            PipeEvents {
                events,
                tap,
                is_over: false,
            },
        ))
    }

    /// Takes no more from the pipe. Events that were taken still come out.
    pub(super) fn close(&self) {
        self.tap.closed.cancel();
    }

    /// Number of events that were taken from a closed pipe. Events that were taken and never asked
    /// for count too.
    pub(super) fn taken_count(self) -> u64 {
        // Either it ends at once, or it waits for a pipe that is silent, and everything that came
        // is counted.
        let _ = self.reader.recv_timeout(PAUSE);
        self.tap.events.load(Ordering::SeqCst)
    }
}

fn read_events<R: Read>(
    mut events: EventReader<BufReader<ClosableInput<R>>>,
    tap: &PipeState,
    say: &SyncSender<PipeItem>,
    alive: SyncSender<()>,
) {
    loop {
        let next = events.next();
        let is_last = !matches!(next, Ok(Some(_)));
        tap.events.store(events.count(), Ordering::SeqCst);
        let is_heard = say.send(next).is_ok();
        if is_last || !(is_heard || tap.closed.is_cancelled()) {
            break;
        }
    }
    drop(alive);
}

impl EventSource for PipeEvents {
    fn next(&mut self) -> Result<SourceItem, EventsError> {
        if self.is_over {
            return Ok(SourceItem::End);
        }
        let next = self.events.recv_timeout(PAUSE);
        // Checked afterwards: an event that is cut off is no fault of a pipe that was closed here.
        let is_closed = self.tap.closed.is_cancelled();
        self.is_over = !matches!(next, Ok(Ok(Some(_))) | Err(RecvTimeoutError::Timeout))
            || is_closed && next.is_err();
        match next {
            Ok(Ok(Some(event))) => Ok(SourceItem::Event(event)),
            // Closed, it ends where the same input does not: a cut, as a pause is.
            _ if is_closed => Ok(SourceItem::Pause),
            Ok(Ok(None)) => Ok(SourceItem::End),
            Ok(Err(error)) => Err(error),
            Err(RecvTimeoutError::Timeout) => Ok(SourceItem::Pause),
            Err(RecvTimeoutError::Disconnected) => Err(EventsError::Reader),
        }
    }
}

impl<R: Read> Read for ClosableInput<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.tap.closed.is_cancelled() {
            Ok(0)
        } else {
            self.input.read(into)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn shown(next: &Result<SourceItem, EventsError>) -> String {
        match next {
            Ok(SourceItem::Event(event)) => event.json.clone(),
            Ok(SourceItem::Pause) => "pause".to_owned(),
            Ok(SourceItem::End) => "end".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    fn check(events: &mut PipeEvents, expected: &[&str]) {
        for expected in expected {
            assert_eq!(shown(&events.next()), *expected);
        }
    }

    #[test]
    fn a_silent_pipe_pauses_and_its_end_is_its_end() {
        let (input, mut output) = io::pipe().unwrap();
        let (pipe, mut events) = PipeHandle::open(input).unwrap();
        output.write_all(b"{}{\"a\":1}{").unwrap();
        check(&mut events, &["{}", "{\"a\":1}", "pause", "pause"]);
        output.write_all(b"}").unwrap();
        drop(output);
        check(&mut events, &["{}", "end", "end"]);
        pipe.close();
        assert_eq!(pipe.taken_count(), 3);
    }

    #[test]
    fn a_closed_pipe_hands_out_what_was_taken_and_no_more() {
        let (input, mut output) = io::pipe().unwrap();
        let (pipe, mut events) = PipeHandle::open(input).unwrap();
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
        let (pipe, mut events) = PipeHandle::open(input).unwrap();
        output.write_all(b"{}\n{}\n{}\n{}\n").unwrap();
        check(&mut events, &["{}"]);
        pipe.close();
        drop(events);
        assert_eq!(pipe.taken_count(), 4);
        drop(output);
    }
}
