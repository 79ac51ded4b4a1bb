//! Loss of log lines that cannot be written: they are counted, and the program continues.

use std::io::{self, Write};

/// Counts the lines that are lost because their stream is closed or its disk is full.
const FAIL_COUNT: &str = "LogWriteFailCount";

/// A stream of log lines, with one call of `write` per line. A line that cannot be written is lost and
/// counted as `LogWriteFailCount`: the program must outlive the reader of its log, and a full disk.
#[derive(Debug)]
pub struct Lossy<W>(
    /// The stream.
    pub W,
);

impl<W: Write> Write for Lossy<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.0.write_all(line).is_err() {
            metrics::counter!(FAIL_COUNT).increment(1);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        // What a flush cannot write was lost like a line, but how many it held is not known.
        if self.0.flush().is_err() {
            metrics::counter!(FAIL_COUNT).increment(1);
        }
        Ok(())
    }
}
