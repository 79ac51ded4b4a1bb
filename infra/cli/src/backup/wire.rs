//! A backup on its way: lines of JSON that say what follows, and bytes in pieces with their
//! lengths, so that an end that was cut off never looks like one.

use std::io::{self, BufRead, Read, Write};

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

/// Longest line, in bytes. A path has at most 1,024.
const LINE_BYTES_MAX: u64 = 64 * 1024;

/// Bytes of a piece.
const PIECE_BYTES: usize = 64 * 1024;

/// In place of the length of a piece: the line follows that says why no piece does. No line begins
/// with one of these bytes, so that they are passed over where a line is expected.
const NO_PIECE: u32 = u32::MAX;

/// A byte of [`NO_PIECE`].
const NO_PIECE_BYTE: u8 = u8::MAX;

/// Error of a backup whose sender could not go on, with the reason that it gives.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub(super) struct SenderFailed {
    pub(super) reason: String,
}

/// Error of a backup that its sender ends before the end.
#[derive(Debug, thiserror::Error)]
#[error("the backup is ended")]
struct BackupStopped;

/// A line.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(super) enum WireLine {
    /// The beginning.
    Backup {
        format: u32,
        version: String,
        taken_at: String,
    },
    /// Rows of the database follow, in pieces.
    Database {},
    /// A file follows, in pieces.
    File { path: String, modified_ms: u64 },
    /// The end of a backup that cannot be read on.
    Failed { reason: String },
    /// The end.
    End { files: u64 },
}

/// Bytes that are written in pieces.
pub(super) struct PieceWriter<'w, W: Write> {
    out: &'w mut W,
    piece: Vec<u8>,
    /// Once it is cancelled, no piece more is written, and each that was begun is whole.
    stop: &'w CancellationToken,
}

/// Bytes that come in pieces.
pub(super) struct PieceReader<'r, R: Read> {
    input: &'r mut R,
    /// Bytes left of this piece.
    left: u32,
    is_over: bool,
}

impl WireLine {
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        out.write_all(&line)
    }

    /// Reads a line. Where nothing more comes, that is an error.
    pub(super) fn read(input: &mut impl BufRead) -> io::Result<Self> {
        let mut line = Vec::new();
        input.take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
        if line.last() != Some(&b'\n') {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let begins = line.iter().position(|byte| *byte != NO_PIECE_BYTE);
        Ok(serde_json::from_slice(&line[begins.unwrap_or_default()..])?)
    }
}

/// Ends a backup that cannot be read on, where a line or a piece would follow.
pub fn report_failure(out: &mut impl Write, reason: String) -> io::Result<()> {
    out.write_all(&NO_PIECE.to_le_bytes())?;
    WireLine::Failed { reason }.write(out)
}

impl<'w, W: Write> PieceWriter<'w, W> {
    pub(super) fn new(out: &'w mut W, stop: &'w CancellationToken) -> Self {
        Self {
            out,
            piece: Vec::with_capacity(PIECE_BYTES),
            stop,
        }
    }

    /// Writes the last piece and the end. Without it, what was written is cut off.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.write_piece()?;
        self.out.write_all(&0_u32.to_le_bytes())
    }

    fn write_piece(&mut self) -> io::Result<()> {
        if self.stop.is_cancelled() {
            return Err(io::Error::other(BackupStopped));
        }
        if self.piece.is_empty() {
            return Ok(());
        }
        let length = u32::try_from(self.piece.len()).map_err(io::Error::other)?;
        self.out.write_all(&length.to_le_bytes())?;
        self.out.write_all(&self.piece)?;
        self.piece.clear();
        Ok(())
    }
}

impl<W: Write> Write for PieceWriter<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(PIECE_BYTES - self.piece.len());
        self.piece.extend_from_slice(&bytes[..taken]);
        if self.piece.len() == PIECE_BYTES {
            self.write_piece()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write_piece()
    }
}

impl<'r, R: Read> PieceReader<'r, R> {
    pub(super) fn new(input: &'r mut R) -> Self {
        Self {
            input,
            left: 0,
            is_over: false,
        }
    }

    /// The error of a sender that could not go on, from the line that comes.
    fn sender_failed(&mut self) -> io::Error {
        let mut line = Vec::new();
        if let Err(error) = self.input.take(LINE_BYTES_MAX).read_to_end(&mut line) {
            return error;
        }
        match serde_json::from_slice(&line) {
            Ok(WireLine::Failed { reason }) => io::Error::other(SenderFailed { reason }),
            Ok(_) => io::ErrorKind::InvalidData.into(),
            Err(error) => error.into(),
        }
    }
}

impl<R: Read> Read for PieceReader<'_, R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && !self.is_over {
            let mut length = [0; 4];
            self.input.read_exact(&mut length)?;
            let length = u32::from_le_bytes(length);
            if length == NO_PIECE {
                return Err(self.sender_failed());
            }
            self.left = length;
            self.is_over = length == 0;
        }
        if self.is_over || out.is_empty() {
            return Ok(0);
        }
        let wanted = out.len().min(self.left as usize);
        let read = self.input.read(&mut out[..wanted])?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= u32::try_from(read).map_err(io::Error::other)?;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let stop = CancellationToken::new();
        let mut pieces = PieceWriter::new(&mut out, &stop);
        pieces.write_all(bytes).unwrap();
        pieces.finish().unwrap();
        out
    }

    #[test]
    fn pieces_are_read_as_they_were_written() {
        for length in [0, 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES] {
            let bytes: Vec<u8> = (0..length)
                .map(|n| u8::try_from(n % 251).unwrap())
                .collect();
            let mut stream = written(&bytes);
            WireLine::End { files: 7 }.write(&mut stream).unwrap();
            let mut input = &stream[..];
            let mut read = Vec::new();
            PieceReader::new(&mut input).read_to_end(&mut read).unwrap();
            assert!(read == bytes, "{length}");
            assert_eq!(
                WireLine::read(&mut input).unwrap(),
                WireLine::End { files: 7 }
            );
        }
    }

    #[test]
    fn reason_of_the_sender_is_read_after_a_piece_and_after_a_line() {
        let mut stream = Vec::new();
        let stop = CancellationToken::new();
        let mut pieces = PieceWriter::new(&mut stream, &stop);
        pieces.write_all(&vec![7; PIECE_BYTES]).unwrap();
        stop.cancel();
        // What was begun is whole, and nothing more is written.
        assert!(pieces.write_all(&vec![7; 2 * PIECE_BYTES]).is_err());
        assert_eq!(stream.len(), 4 + PIECE_BYTES);
        report_failure(&mut stream, "it ends".to_owned()).unwrap();
        let error = io::copy(&mut PieceReader::new(&mut &stream[..]), &mut io::sink());
        let error = error.unwrap_err();
        let failed = error.get_ref().unwrap().downcast_ref::<SenderFailed>();
        assert_eq!(failed.unwrap().reason, "it ends");

        let mut stream = Vec::new();
        report_failure(&mut stream, "it ends".to_owned()).unwrap();
        let reason = "it ends".to_owned();
        assert_eq!(
            WireLine::read(&mut &stream[..]).unwrap(),
            WireLine::Failed { reason }
        );
    }

    #[test]
    fn bytes_that_were_cut_off_are_an_error() {
        let whole = written(b"abc");
        for end in 0..whole.len() {
            let mut read = Vec::new();
            let error = PieceReader::new(&mut &whole[..end]).read_to_end(&mut read);
            assert_eq!(error.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        }
        for line in ["", "{\"end\":{\"files\":1}}", "{\"end\":"] {
            let error = WireLine::read(&mut line.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{line}");
        }
    }
}
