//! Every form of an input, in pieces of every size, and what is said of one that is none.

use std::error::Error;
use std::io::BufReader;

use super::*;
use crate::batches::{EventBatches, PackingSettings};

/// All events as line and text, then the error, if there is one.
fn read(input: &[u8], piece: usize) -> Vec<String> {
    let mut events = EventReader::new(BufReader::with_capacity(piece, input));
    let mut found = Vec::new();
    loop {
        match events.read_event() {
            Ok(Some(event)) => found.push(format!("{} {}", event.line, event.json)),
            Ok(None) => return found,
            Err(error) => {
                let source = error
                    .source()
                    .map(|source| format!(": {source}"))
                    .unwrap_or_default();
                found.push(format!("{error}{source}"));
                return found;
            }
        }
    }
}

fn check(input: &str, expected: &[&str]) {
    for piece in [1, 2, 3, 7, 8192] {
        assert_eq!(
            read(input.as_bytes(), piece),
            expected,
            "{input:?} in pieces of {piece}"
        );
    }
}

#[test]
fn json_lines_arrays_and_multi_line_events_are_read() {
    check("", &[]);
    check(" \n\n", &[]);
    check("{\"a\":1}", &["1 {\"a\":1}"]);
    check(
        "{\"a\":1}\n\r\n{\"b\":[{}]}\n",
        &["1 {\"a\":1}", "3 {\"b\":[{}]}"],
    );
    check("{}{}", &["1 {}", "1 {}"]);
    check("{\n \"a\": 1\n}\n{}", &["1 {\n \"a\": 1\n}", "4 {}"]);
    check("[]", &[]);
    check(" [ ] \n", &[]);
    check(
        "[{\"a\":1},\n{\"b\":2}\n ,{}]\n",
        &["1 {\"a\":1}", "2 {\"b\":2}", "3 {}"],
    );
}

#[test]
fn braces_quotes_and_line_breaks_inside_an_event_do_not_end_it() {
    check(
        r#"{"a":"}\"{\\"}{"b":"]"}"#,
        &[r#"1 {"a":"}\"{\\"}"#, r#"1 {"b":"]"}"#],
    );
    check("{\"ä\":\"€\"}", &["1 {\"ä\":\"€\"}"]);
}

#[test]
fn text_that_is_no_event_is_refused_with_its_line() {
    check(
        "x",
        &["line 1: expected an event (a JSON object) or an array of events"],
    );
    check(
        "{}\n7\n",
        &["1 {}", "line 2: expected the next event (a JSON object)"],
    );
    check(
        "[{}\n{}]",
        &[
            "1 {}",
            "line 2: expected a comma and the next event, or the end of the array",
        ],
    );
    check(
        "[{},]",
        &["1 {}", "line 1: expected the next event (a JSON object)"],
    );
    check(
        "[1]",
        &["line 1: expected an event (a JSON object), or the end of the array"],
    );
    check(
        "[{}",
        &[
            "1 {}",
            "line 1: expected a comma and the next event, or the end of the array",
        ],
    );
    check(
        "[{}]\n\n[]",
        &["1 {}", "line 3: expected nothing more after the array"],
    );
}

/// Error has the event's number, the line in which it begins, and the place within it.
#[test]
fn broken_event_is_refused_with_number_line_and_place() {
    let begins = "event 1 (the first is 0), which begins in line 2, is no JSON object";
    check(
        "{}\n{\"a\":}\n",
        &[
            "1 {}",
            &format!("{begins}: expected value at line 1 column 6"),
        ],
    );
    // A line that was cut off takes the next one in; what is said of it is where it was cut.
    check(
        "{}\n{\"a\":1\n{\"b\":2}\n",
        &[
            "1 {}",
            &format!("{begins}: expected `,` or `}}` at line 2 column 1"),
        ],
    );
    check(
        "{}\n{\"a\":1",
        &[
            "1 {}",
            &format!("{begins}: EOF while parsing an object at line 1 column 6"),
        ],
    );
    let not_text = read(b"{}\n{\"a\":\"\xff\"}", 4);
    assert_eq!(
        not_text[1],
        "event 1 (the first is 0), which begins in line 2, is not UTF-8"
    );
}

#[test]
fn a_byte_order_mark_is_passed_over_at_the_beginning_only() {
    check("\u{feff}{}", &["1 {}"]);
    check("\u{feff}\n[{}]", &["2 {}"]);
    check("\u{feff}", &[]);
    let begin = "line 1: expected an event (a JSON object) or an array of events";
    check("\u{feff}\u{feff}{}", &[begin]);
    check("\u{fec0}{}", &[begin]);
    assert_eq!(read(b"\xEF \xBB\xBF{}", 8192), [begin]);
    check(
        "{}\u{feff}{}",
        &["1 {}", "line 1: expected the next event (a JSON object)"],
    );
}

/// An input that has more to read after its end, as a terminal has after Ctrl-D.
struct Terminal(Vec<&'static [u8]>);

impl Read for Terminal {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let line = self.0.remove(0);
        into[..line.len()].copy_from_slice(line);
        Ok(line.len())
    }
}

#[test]
fn the_end_of_a_terminal_s_input_is_asked_for_once() {
    let terminal = BufReader::new(Terminal(vec![b"{}\n", b"", b"{}\n"]));
    let packing = PackingSettings {
        events_max: 2,
        from: 0,
        content_type: None,
    };
    let mut batches = EventBatches::new(EventReader::new(terminal), packing);
    assert_eq!(batches.next_batch().unwrap().unwrap().lines, [1]);
    assert!(matches!(batches.next_batch(), Ok(None)));
}

#[test]
fn an_event_too_long_that_is_cut_inside_a_character_is_too_long() {
    let endless = Read::chain(&b"{\"a\":\""[..], Repeated("€".as_bytes()));
    let found = EventReader::new(BufReader::new(endless)).read_event();
    assert!(
        matches!(
            found,
            Err(EventsError::TooLarge(EventPlace { index: 0, line: 1 }))
        ),
        "{found:?}"
    );
}

/// A text without end.
struct Repeated(&'static [u8]);

impl Read for Repeated {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let whole = into.len() / self.0.len() * self.0.len();
        into[..whole]
            .chunks_mut(self.0.len())
            .for_each(|chunk| chunk.copy_from_slice(self.0));
        Ok(whole)
    }
}

#[test]
fn an_event_without_an_end_is_given_up() {
    let endless = BufReader::new(Read::chain(&b"{\"a\":\""[..], io::repeat(b'x')));
    assert!(matches!(
        EventReader::new(endless).read_event(),
        Err(EventsError::TooLarge(EventPlace { index: 0, line: 1 }))
    ));
}
