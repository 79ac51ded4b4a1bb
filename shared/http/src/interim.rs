//! Interim answers (`1xx`), of which an endpoint may send any number before its answer (RFC 9110,
//! section 15.2). hyper skips them without a bound.

use crate::settings::{INTERIM_ANSWERS_MAX, INTERIM_BYTES_MAX};

/// The place of the three digits of the status in `HTTP/1.1 103 Early Hints`.
const STATUS_AT: usize = 9;

const STATUS_DIGITS: usize = 3;

/// The interim answers to one request, as far as they were read.
#[derive(Debug, Default)]
pub(crate) struct InterimAnswers {
    place: Place,
    answers: usize,
    bytes: usize,
}

/// The place of the next byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In a status line, before its status has been read.
    StatusLine { bytes: usize, status: u16 },
    /// In the rest of an interim answer.
    Interim { is_line_empty: bool },
    /// Past the status of the answer itself.
    Answer,
}

impl Default for Place {
    fn default() -> Self {
        Self::StatusLine {
            bytes: 0,
            status: 0,
        }
    }
}

impl InterimAnswers {
    /// Whether all interim answers up to the end of this piece are within their bounds.
    pub(crate) fn are_within(&mut self, piece: &[u8]) -> bool {
        for byte in piece {
            let was_interim = self.place.is_interim();
            self.place = self.place.after(*byte);
            if self.place == Place::Answer {
                break;
            }
            self.bytes += 1;
            self.answers += usize::from(self.place.is_interim() && !was_interim);
        }
        self.answers <= INTERIM_ANSWERS_MAX && self.bytes <= INTERIM_BYTES_MAX
    }
}

impl Place {
    fn is_interim(self) -> bool {
        matches!(self, Self::Interim { .. })
    }

    fn after(self, byte: u8) -> Self {
        match (self, byte) {
            (Self::StatusLine { bytes: 0, .. }, b'\r' | b'\n')
            | (Self::Answer, _)
            | (Self::Interim { .. }, b'\r') => self,
            (Self::StatusLine { bytes, status }, _) => after_status_byte(bytes, status, byte),
            (
                Self::Interim {
                    is_line_empty: true,
                },
                b'\n',
            ) => Self::default(),
            (Self::Interim { .. }, _) => Self::Interim {
                is_line_empty: byte == b'\n',
            },
        }
    }
}

/// The place after one more byte of a status line. What is no digit makes a status that hyper
/// refuses.
fn after_status_byte(bytes: usize, status: u16, byte: u8) -> Place {
    let status = if bytes < STATUS_AT {
        0
    } else {
        status * 10 + u16::from(byte.wrapping_sub(b'0'))
    };
    let bytes = bytes + 1;
    if bytes < STATUS_AT + STATUS_DIGITS {
        Place::StatusLine { bytes, status }
    } else if is_interim(status) {
        Place::Interim {
            is_line_empty: false,
        }
    } else {
        Place::Answer
    }
}

/// `101` ends the exchange: the endpoint speaks another protocol from there on.
fn is_interim(status: u16) -> bool {
    (100..200).contains(&status) && status != 101
}

#[cfg(test)]
mod tests {
    use super::*;

    const HINT: &str = "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n";
    const OK: &str = "HTTP/1.1 200 OK\r\n\r\n";

    /// The interim answers that are counted in `text`, whatever its pieces.
    fn check(text: &str, answers: usize, bytes: usize, place: Place) {
        for piece in [1, 2, 7, text.len()] {
            let mut interim = InterimAnswers::default();
            for piece in text.as_bytes().chunks(piece) {
                assert!(interim.are_within(piece), "{text}");
            }
            assert_eq!(
                (interim.answers, interim.bytes, interim.place),
                (answers, bytes, place),
                "{text}"
            );
        }
    }

    #[test]
    fn interim_answers_are_counted_up_to_the_answer() {
        // Of the answer itself, the eleven bytes up to its status' last digit.
        check(OK, 0, 11, Place::Answer);
        check(&format!("{HINT}{OK}"), 1, HINT.len() + 11, Place::Answer);
        let bare = "HTTP/1.0 100 \n\n";
        check(
            &format!("{HINT}\r\n{bare}{OK}{HINT}"),
            2,
            HINT.len() + 2 + bare.len() + 11,
            Place::Answer,
        );
        check("HTTP/1.1 101 Switching", 0, 11, Place::Answer);
        check(HINT, 1, HINT.len(), Place::default());
        check("no HTTP at all", 0, 11, Place::Answer);
    }

    #[test]
    fn one_interim_answer_too_many_is_not_within_the_bound() {
        let mut interim = InterimAnswers::default();
        assert!(interim.are_within(HINT.repeat(INTERIM_ANSWERS_MAX).as_bytes()));
        assert!(!interim.are_within(&HINT.as_bytes()[..STATUS_AT + STATUS_DIGITS]));
    }

    #[test]
    fn one_byte_too_many_of_interim_answers_is_not_within_the_bound() {
        let mut interim = InterimAnswers::default();
        let head = "HTTP/1.1 103 Early Hints\r\nlink: ";
        let long = format!("{head}{}", "x".repeat(INTERIM_BYTES_MAX - head.len()));
        assert!(interim.are_within(long.as_bytes()));
        assert!(!interim.are_within(b"x"));
    }
}
