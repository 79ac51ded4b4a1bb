//! The rules that hold for readers of one kind.

use std::fmt::Debug;

use bytes::Bytes;

/// Most bytes of the text of an error that is a word for what came of an input.
const WORD_BYTES_MAX: usize = 400;

/// Reads a text. What was read is written as a text that reads the same. Bytes that are no text are
/// no input.
///
/// # Panics
/// It is not the same.
pub(crate) fn text<T: Debug, E: Debug, W: AsRef<str>>(
    bytes: &[u8],
    parse: impl Fn(&str) -> Result<T, E>,
    write: impl Fn(&T) -> W,
) -> String {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return "no text".to_owned();
    };
    match parse(text) {
        Ok(value) => {
            let written = write(&value);
            let again = parse(written.as_ref());
            let again = again.unwrap_or_else(|error| {
                panic!(
                    "{text:?} was read, and {:?} was not: {error:?}",
                    written.as_ref()
                )
            });
            assert_eq!(
                debug(&again),
                debug(&value),
                "{text:?}, {:?}",
                written.as_ref()
            );
            "read".to_owned()
        }
        Err(error) => word(&error),
    }
}

/// Reads a text that is not written.
pub(crate) fn only_text<T, E: Debug>(bytes: &[u8], parse: impl Fn(&str) -> Result<T, E>) -> String {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return "no text".to_owned();
    };
    parse(text).map_or_else(|error| word(&error), |_| "read".to_owned())
}

/// Reads an object. What was read is written as an object that reads the same, and is written the
/// same.
///
/// # Panics
/// It is not the same.
pub(crate) fn object<T: Debug, E: Debug, W: AsRef<[u8]>>(
    bytes: &[u8],
    parse: impl Fn(&Bytes) -> Result<T, E>,
    render: impl Fn(&T) -> W,
) -> String {
    match parse(&Bytes::copy_from_slice(bytes)) {
        Ok(value) => {
            let written = Bytes::copy_from_slice(render(&value).as_ref());
            let again = parse(&written);
            let again = again.unwrap_or_else(|error| {
                panic!("written as {written:?}, which was not read: {error:?}")
            });
            assert_eq!(debug(&again), debug(&value), "written as {written:?}");
            assert_eq!(render(&again).as_ref(), &*written);
            "read".to_owned()
        }
        Err(error) => word(&error),
    }
}

/// Reads an object that is written in another form than it may have been read: with names in lower
/// case, say. What was written once is written the same again.
///
/// # Panics
/// It is not the same.
pub(crate) fn settled<T, E: Debug, W: AsRef<[u8]>>(
    bytes: &[u8],
    parse: impl Fn(&Bytes) -> Result<T, E>,
    render: impl Fn(&T) -> W,
) -> String {
    let render = |value: T| Bytes::copy_from_slice(render(&value).as_ref());
    object(bytes, |bytes| parse(bytes).map(&render), Bytes::clone)
}

/// A word for a fault.
pub(crate) fn word(error: &impl Debug) -> String {
    let mut word = debug(error);
    let end = (0..=WORD_BYTES_MAX.min(word.len())).rev();
    let end = end.into_iter().find(|at| word.is_char_boundary(*at));
    word.truncate(end.unwrap_or_default());
    word
}

/// The whole of a value.
pub(crate) fn debug(value: &impl Debug) -> String {
    format!("{value:?}")
}

/// The error of what has none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Nothing;
