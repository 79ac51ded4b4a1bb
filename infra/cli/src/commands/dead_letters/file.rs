//! Files of exported dead letters: their lines become objects again, one at a time.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use posthaste_core::model::DEAD_LETTER_IMPORT_BYTES_MAX;
use posthaste_core::stored::ResolvedLetters;
use posthaste_core::stored::dead_letter::{LetterLine, MovedObject, MovedObjectError};

use crate::error::CommandFailure;

/// Longest line, in bytes: as a text, a dead letter takes up to twice its bytes.
const LINE_BYTES_MAX: usize = 2 * DEAD_LETTER_IMPORT_BYTES_MAX;

/// The byte order mark of UTF-8, with which some programs begin a file.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Error of a file of dead letters.
#[derive(Debug, thiserror::Error)]
pub(super) enum FileError {
    /// The file cannot be read.
    #[error("failed to read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    /// A line is none.
    #[error("{}:{line}: not a line of `posthaste dead-letters export`", path.display())]
    Line {
        path: PathBuf,
        line: u64,
        source: serde_json::Error,
    },
    /// A line is longer than any dead letter.
    #[error("{}:{line}: longer than {LINE_BYTES_MAX} bytes", path.display())]
    TooLong { path: PathBuf, line: u64 },
    /// A line does not hold a dead letter, or none that follows the one before.
    #[error("{}:{line}: {source}", path.display())]
    Letter {
        path: PathBuf,
        line: u64,
        source: MovedObjectError,
    },
    /// The file ends inside of an object.
    #[error("{}:{line}: the file ends after {found} of the {count} dead letters of {object}",
        path.display())]
    CutOff {
        path: PathBuf,
        line: u64,
        object: String,
        found: usize,
        count: usize,
    },
}

impl CommandFailure for FileError {
    fn exit_code(&self) -> Option<u8> {
        (!matches!(self, Self::Read { .. })).then_some(3)
    }

    fn hint(&self) -> Option<String> {
        (!matches!(self, Self::Read { .. })).then(|| {
            "export again, or take the object of this line out of the file; see what was put in \
             before with `posthaste dead-letters list`"
                .to_owned()
        })
    }
}

/// The objects of a file, in order.
pub(super) struct ExportedObjects<'a> {
    path: &'a Path,
    input: BufReader<File>,
    line: u64,
}

impl<'a> ExportedObjects<'a> {
    pub(super) fn open(path: &'a Path) -> Result<Self, FileError> {
        let file = File::open(path).map_err(|source| FileError::Read {
            path: path.to_owned(),
            source,
        })?;
        Ok(Self {
            path,
            input: BufReader::new(file),
            line: 0,
        })
    }

    /// The next object, with what is resolved in it. `None` at the end of the file.
    pub(super) fn next(&mut self) -> Result<Option<(MovedObject, ResolvedLetters)>, FileError> {
        let Some(first) = self.next_line()? else {
            return Ok(None);
        };
        let count = first.letters;
        let (mut object, mut states) = MovedObject::begin_from_line(&first);
        let mut line = first;
        loop {
            let added = object.add_line(&line, &mut states, count);
            if added.map_err(|source| self.letter_error(source))? {
                return Ok(Some((object, states)));
            }
            line = self.next_line()?.ok_or_else(|| FileError::CutOff {
                path: self.path.to_owned(),
                line: self.line,
                object: object.object.clone(),
                found: object.letters.len(),
                count,
            })?;
        }
    }

    fn letter_error(&self, source: MovedObjectError) -> FileError {
        FileError::Letter {
            path: self.path.to_owned(),
            line: self.line,
            source,
        }
    }

    /// The next line that is not empty.
    fn next_line(&mut self) -> Result<Option<LetterLine>, FileError> {
        loop {
            let mut bytes = Vec::new();
            let read = (&mut self.input)
                .take(LINE_BYTES_MAX as u64 + 1)
                .read_until(b'\n', &mut bytes);
            let path = self.path.to_owned();
            if read.map_err(|source| FileError::Read { path, source })? == 0 {
                return Ok(None);
            }
            self.line += 1;
            let path = self.path.to_owned();
            let line = self.line;
            if bytes.len() > LINE_BYTES_MAX {
                return Err(FileError::TooLong { path, line });
            }
            let text = match bytes.strip_prefix(BYTE_ORDER_MARK) {
                Some(rest) if line == 1 => rest,
                _ => &bytes,
            };
            if text.trim_ascii().is_empty() {
                continue;
            }
            let letter = serde_json::from_slice(text);
            return letter
                .map(Some)
                .map_err(|source| FileError::Line { path, line, source });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "ORDERS/BILLING/2026/3/7/4/x.json";

    fn line(index: usize, letters: usize) -> String {
        format!(
            "{{\"object\":\"{KEY}\",\"index\":{index},\"letters\":{letters},\"resolved\":false,\
             \"letter\":{{\"deadletterreason\":\"x\"}},\"later\":true}}"
        )
    }

    /// The numbers of letters of the objects of a file, or why it is refused.
    fn read(text: &str) -> Result<Vec<usize>, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, text).unwrap();
        let mut objects = ExportedObjects::open(file.path()).unwrap();
        let mut counts = Vec::new();
        loop {
            match objects.next() {
                Ok(Some((object, _))) => counts.push(object.letters.len()),
                Ok(None) => return Ok(counts),
                Err(error) => {
                    let name = file.path().display().to_string();
                    return Err(error.to_string().replace(&name, "f"));
                }
            }
        }
    }

    #[test]
    fn lines_become_objects_and_a_bad_one_is_named() {
        let [first, second, alone] = [line(0, 2), line(1, 2), line(0, 1)];
        let whole = format!("\u{feff}{first}\n{second}\r\n\n{alone}");
        assert_eq!(read(&whole), Ok(vec![2, 1]));
        assert_eq!(read(""), Ok(vec![]));
        let check = |text: &str, expected: &str| {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(expected), "{expected}: {error}");
        };
        check(&format!("{alone}\n{{\n"), "f:2: not a line of");
        check(&format!("{alone}\n[]\n"), "f:2: not a line of");
        let cut = format!("{alone}\n{first}");
        check(&cut, "f:2: the file ends after 1 of the 2 dead letters");
        let no_letter = alone.replace("deadletterreason", "reason");
        check(&format!("{alone}\n\n{no_letter}"), "f:3: not a dead letter");
        check(&second, "f:1: expected the dead letter 1 of 2");
        check(&"x".repeat(LINE_BYTES_MAX + 1), "f:1: longer than");
    }
}
