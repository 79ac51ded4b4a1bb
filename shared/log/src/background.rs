//! A stream of log lines that never stops the program: a thread writes them, and a reader that
//! keeps its pipe open and reads nothing costs lines and no more.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

use crate::lossy::{LossyWriter, count_lost_line};

/// Most bytes of lines that wait to be written. More are dropped, and counted as lost.
const WAITING_BYTES_MAX: usize = 4 << 20;

/// Longest wait for a line of the level ERROR to be written: the process may be about to end.
const ERROR_WAIT: Duration = Duration::from_millis(200);

/// Time within which a reader that keeps up has a line.
const SOON: Duration = Duration::from_millis(10);

/// Most lines of the level ERROR in a row that wait for no reader, however slow it was.
const LEFT_OUT_MAX: u32 = 1023;

/// A stream that a thread of its own writes; clones share it.
#[derive(Debug, Clone)]
pub struct BackgroundLog(Arc<LineQueue>);

#[derive(Debug)]
struct LineQueue {
    /// Longest wait for a line of the level ERROR.
    error_wait: Duration,
    waiting: Mutex<WaitingLines>,
    /// A line was added.
    added: Condvar,
    /// A line was written.
    written: Condvar,
}

#[derive(Debug, Default)]
struct WaitingLines {
    lines: VecDeque<Vec<u8>>,
    /// Bytes of the lines that wait or are being written.
    bytes: usize,
    /// Number of lines that were ever added.
    added: u64,
    /// Number of lines that were ever written.
    written: u64,
    /// Number of lines that were dropped since the last word about it.
    dropped: u64,
    error_waits: ErrorWaits,
}

/// The rule by which lines of the level ERROR wait for the reader. After each wait that took long
/// twice as many do not, so that a reader that is slow costs those who log hardly more than one
/// that is stuck.
#[derive(Debug, Default)]
struct ErrorWaits {
    /// Lines that do not wait after the next slow wait.
    next_left_out: u32,
    /// Lines that do not wait now.
    left_out: u32,
}

impl ErrorWaits {
    /// Whether the next line waits.
    fn has_turn(&mut self) -> bool {
        let has_turn = self.left_out == 0;
        self.left_out = self.left_out.saturating_sub(1);
        has_turn
    }

    /// Notes whether the reader kept up.
    fn record_wait(&mut self, was_soon: bool) {
        self.next_left_out = if was_soon {
            0
        } else {
            (2 * self.next_left_out + 1).min(LEFT_OUT_MAX)
        };
        self.left_out = self.next_left_out;
    }
}

impl BackgroundLog {
    /// Starts the thread that writes to `stream`.
    pub fn start(stream: impl Write + Send + 'static) -> io::Result<Self> {
        Self::start_waiting(ERROR_WAIT, stream)
    }

    fn start_waiting(
        error_wait: Duration,
        stream: impl Write + Send + 'static,
    ) -> io::Result<Self> {
        let queue = Arc::new(LineQueue::new(error_wait));
        let written = Arc::clone(&queue);
        std::thread::Builder::new()
            .name("posthaste-log".to_owned())
            .spawn(move || written.write_all(LossyWriter(stream)))?;
        Ok(Self(queue))
    }

    /// Writes a line of its own format, such as the last words of a command.
    pub fn write_line(&self, text: &str) {
        self.0.add_line(format!("{text}\n").as_bytes());
    }

    /// Waits until all lines are written, or for so long. False if not all are.
    pub fn flush(&self, timeout: Duration) -> bool {
        let last = self.0.lock_waiting().added;
        self.0.wait_until_written(last, timeout)
    }
}

impl LineQueue {
    fn new(error_wait: Duration) -> Self {
        Self {
            error_wait,
            waiting: Mutex::default(),
            added: Condvar::new(),
            written: Condvar::new(),
        }
    }

    /// The state is plain data, right even if a holder panicked.
    fn lock_waiting(&self) -> MutexGuard<'_, WaitingLines> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add_line(&self, line: &[u8]) {
        let mut waiting = self.lock_waiting();
        if waiting.bytes + line.len() > WAITING_BYTES_MAX {
            waiting.dropped += 1;
            drop(waiting);
            count_lost_line();
            return;
        }
        waiting.bytes += line.len();
        waiting.added += 1;
        waiting.lines.push_back(line.to_vec());
        drop(waiting);
        self.added.notify_one();
    }

    /// Waits until so many lines are written.
    fn wait_until_written(&self, last: u64, timeout: Duration) -> bool {
        let ended = self
            .written
            .wait_timeout_while(self.lock_waiting(), timeout, |waiting| {
                waiting.written < last
            });
        let ended = ended.unwrap_or_else(PoisonError::into_inner).1;
        !ended.timed_out()
    }

    /// Waits for a line that may be the last one, unless the reader is known to be slow.
    fn wait_for_error(&self) {
        let mut waiting = self.lock_waiting();
        if !waiting.error_waits.has_turn() {
            return;
        }
        let last = waiting.added;
        drop(waiting);
        let was_soon = self.wait_until_written(last, SOON.min(self.error_wait));
        if !was_soon {
            self.wait_until_written(last, self.error_wait.saturating_sub(SOON));
        }
        self.lock_waiting().error_waits.record_wait(was_soon);
    }

    /// Writes for as long as the process lives.
    fn write_all(&self, mut stream: impl Write) {
        loop {
            let line = self.next_line();
            // A line that cannot be written is counted there.
            let _ = stream.write(&line).and_then(|_| stream.flush());
            let dropped = self.note_written(line.len());
            if dropped > 0 {
                tracing::warn!(
                    lines = dropped,
                    "log lines were dropped, because nobody read the log"
                );
            }
        }
    }

    fn next_line(&self) -> Vec<u8> {
        let mut waiting = self.lock_waiting();
        loop {
            if let Some(line) = waiting.lines.pop_front() {
                return line;
            }
            let woken = self.added.wait(waiting);
            waiting = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Notes that a line was written. Returns how many were dropped, once there is room to say it.
    fn note_written(&self, bytes: usize) -> u64 {
        let mut waiting = self.lock_waiting();
        waiting.bytes -= bytes;
        waiting.written += 1;
        let has_room = waiting.bytes < WAITING_BYTES_MAX / 2;
        let dropped = if has_room {
            std::mem::take(&mut waiting.dropped)
        } else {
            0
        };
        drop(waiting);
        self.written.notify_all();
        dropped
    }
}

/// A writer of one line.
#[derive(Debug)]
pub struct LineWriter<'a> {
    queue: &'a LineQueue,
    is_error: bool,
}

impl<'a> MakeWriter<'a> for BackgroundLog {
    type Writer = LineWriter<'a>;

    fn make_writer(&'a self) -> LineWriter<'a> {
        let queue = &*self.0;
        let is_error = false;
        LineWriter { queue, is_error }
    }

    fn make_writer_for(&'a self, metadata: &Metadata<'_>) -> LineWriter<'a> {
        let queue = &*self.0;
        let is_error = *metadata.level() == Level::ERROR;
        LineWriter { queue, is_error }
    }
}

impl Write for LineWriter<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.queue.add_line(line);
        if self.is_error {
            self.queue.wait_for_error();
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// Longest wait for what must happen. It only ends a test that fails.
    const PATIENCE: Duration = Duration::from_mins(1);

    /// A reader that takes a line whenever it is allowed to.
    struct Reader {
        allowed: Receiver<()>,
        lines: Sender<Vec<u8>>,
    }

    impl Write for Reader {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            // Once the test has dropped the other end, everything may be read.
            let _ = self.allowed.recv();
            let _ = self.lines.send(line.to_vec());
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A stream whose reader reads nothing, the way to let it read on, and the lines it has read.
    fn stuck() -> (BackgroundLog, Sender<()>, Receiver<Vec<u8>>) {
        let (allow, allowed) = channel();
        let (lines, read) = channel();
        (
            BackgroundLog::start_waiting(PATIENCE, Reader { allowed, lines }).unwrap(),
            allow,
            read,
        )
    }

    const LINE: &str = "a line of the log";

    #[test]
    fn reader_that_reads_nothing_costs_lines_and_no_time() {
        let (log, allow, read) = stuck();
        let line_bytes = LINE.len() + 1;
        let fitting = WAITING_BYTES_MAX / line_bytes;
        for _ in 0..fitting + 7 {
            log.write_line(LINE);
        }
        assert_eq!(log.0.lock_waiting().dropped, 7);
        assert!(!log.flush(Duration::ZERO));
        // Known to be stuck: even errors wait no more.
        log.0.lock_waiting().error_waits.record_wait(false);
        let mut writer = LineWriter {
            queue: &log.0,
            is_error: true,
        };
        writer.write_all(LINE.as_bytes()).unwrap();
        assert_eq!(log.0.lock_waiting().dropped, 8);
        drop(allow);
        assert!(log.flush(PATIENCE));
        assert_eq!(read.try_iter().count(), fitting);
        assert_eq!(log.0.lock_waiting().dropped, 0);
        log.write_line("again");
        assert!(log.flush(PATIENCE));
        assert_eq!(read.try_iter().collect::<Vec<_>>(), [b"again\n"]);
    }

    /// A sink that takes a line now and then: other lines wait, and the next error waits for none
    /// of them.
    #[test]
    fn slow_reader_holds_up_one_error_and_not_the_next() {
        let (log, allow, read) = stuck();
        log.0.lock_waiting().error_waits.record_wait(false);
        for _ in 0..3 {
            log.write_line(LINE);
        }
        allow.send(()).unwrap();
        read.recv().unwrap();
        while log.0.lock_waiting().written == 0 {
            std::thread::yield_now();
        }
        let (written, returned) = channel();
        let queue = Arc::clone(&log.0);
        std::thread::spawn(move || {
            let is_error = true;
            let queue = &queue;
            LineWriter { queue, is_error }
                .write_all(b"error\n")
                .unwrap();
            written.send(())
        });
        assert_eq!(returned.recv_timeout(PATIENCE / 2), Ok(()));
        drop(allow);
        assert!(log.flush(PATIENCE));
    }

    /// A sink that takes each line, five a second: nearly no error waits for it.
    #[test]
    fn reader_that_is_always_slow_holds_up_ever_fewer_errors() {
        let mut waits = ErrorWaits::default();
        let mut count = |errors, was_soon| {
            let waited = (0..errors).filter(|_| {
                let has_turn = waits.has_turn();
                if has_turn {
                    waits.record_wait(was_soon);
                }
                has_turn
            });
            waited.count()
        };
        // The lines 1, 3, 7 up to 1,023.
        assert_eq!(count(2_000, false), 10);
        // The reader is quick again, which the line 2,047 sees.
        assert_eq!(count(1_100, true), 1_100 - 46);
    }

    #[test]
    fn error_is_written_when_its_call_returns() {
        let (log, allow, read) = stuck();
        allow.send(()).unwrap();
        let mut writer = LineWriter {
            queue: &log.0,
            is_error: true,
        };
        writer.write_all(b"error\n").unwrap();
        assert_eq!(read.try_recv().unwrap(), b"error\n");
    }

    #[test]
    fn dropped_lines_are_told_once_there_is_room() {
        let queue = LineQueue::new(ERROR_WAIT);
        for _ in 0..5 {
            queue.add_line(&vec![b'x'; WAITING_BYTES_MAX / 3]);
        }
        let told = |_| queue.note_written(queue.next_line().len());
        assert_eq!([0; 3].map(told), [0, 2, 0]);
    }
}
