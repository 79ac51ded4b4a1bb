//! HTTP/1.1 messages over one connection. They are read into one buffer that is made once: a test
//! that counts the server's allocations has the endpoint and the publisher in the same process.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::ops::DerefMut;

/// Largest message that is read, in bytes.
pub(crate) const MESSAGE_BYTES_MAX: usize = 64 * 1024;

const HEAD_END: &[u8] = b"\r\n\r\n";
const LENGTH: &[u8] = b"content-length:";

/// One connection.
pub(crate) struct Connection<B> {
    stream: TcpStream,
    buffer: B,
    /// Bytes of the buffer that were read.
    filled: usize,
    /// Bytes of the buffer that belong to messages that were handed out.
    used: usize,
}

impl<B: DerefMut<Target = [u8]>> Connection<B> {
    pub(crate) fn new(stream: TcpStream, buffer: B) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer,
            filled: 0,
            used: 0,
        })
    }

    pub(crate) fn write(&mut self, message: &[u8]) -> io::Result<()> {
        self.stream.write_all(message)
    }

    /// Reads the next message to its end and returns its head; `None` where the other side closed
    /// the connection between two.
    pub(crate) fn read(&mut self) -> io::Result<Option<&[u8]>> {
        self.buffer.copy_within(self.used..self.filled, 0);
        self.filled -= self.used;
        self.used = 0;
        let head = loop {
            if let Some(at) = find(&self.buffer[..self.filled], HEAD_END) {
                break at + HEAD_END.len();
            }
            if !self.fill()? {
                return if self.filled == 0 {
                    Ok(None)
                } else {
                    Err(io::ErrorKind::UnexpectedEof.into())
                };
            }
        };
        let end = head + content_length(&self.buffer[..head]);
        while self.filled < end {
            if !self.fill()? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        self.used = end;
        Ok(Some(&self.buffer[..head]))
    }

    fn fill(&mut self) -> io::Result<bool> {
        assert!(
            self.filled < self.buffer.len(),
            "a message has more than {MESSAGE_BYTES_MAX} bytes"
        );
        let read = self.stream.read(&mut self.buffer[self.filled..])?;
        self.filled += read;
        Ok(read > 0)
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack
        .windows(needle.len())
        .position(|window| window.eq_ignore_ascii_case(needle))
}

fn content_length(head: &[u8]) -> usize {
    let Some(at) = find(head, LENGTH) else {
        return 0;
    };
    let digits = head[at + LENGTH.len()..]
        .iter()
        .skip_while(|byte| **byte == b' ');
    let digits = digits.take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |sum, digit| sum * 10 + usize::from(digit - b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_is_found_however_it_is_written() {
        let check = |head: &[u8], expected| assert_eq!(content_length(head), expected);
        check(b"POST / HTTP/1.1\r\nContent-Length: 12\r\n\r\n", 12);
        check(b"POST / HTTP/1.1\r\ncontent-length:7\r\na: b\r\n\r\n", 7);
        check(b"HTTP/1.1 204 No Content\r\n\r\n", 0);
    }
}
