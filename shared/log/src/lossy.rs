//! A stream of lines that outlives its reader and its disk.

use std::io::{self, Write};

/// Metric: lines that are lost because their stream is closed, its disk is full, or it has no
/// reader.
const FAIL_COUNT: &str = "LogWriteFailCount";

pub(crate) fn count_lost_line() {
    metrics::counter!(FAIL_COUNT).increment(1);
}

/// A stream of log lines, with one call of `write` per line. A line that cannot be written is lost
/// and counted as `LogWriteFailCount`: the program must outlive the reader of its log, and a full
/// disk.
#[derive(Debug)]
pub struct LossyWriter<W>(
    /// The stream.
    pub W,
);

impl<W: Write> Write for LossyWriter<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.0.write_all(line).is_err() {
            count_lost_line();
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        // Lines that a flush cannot write are lost too; their number is unknown, so they count as
        // one.
        if self.0.flush().is_err() {
            count_lost_line();
        }
        Ok(())
    }
}
