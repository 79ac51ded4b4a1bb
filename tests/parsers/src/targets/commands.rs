//! Lines that call the program.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use posthaste_cli::cli::CommandLine;

use crate::target::Target;

/// The targets.
pub(super) const TARGETS: &[Target] = &[Target {
    name: "command-line",
    corpus: &["tests/parsers/corpus/commands.lines"],
    check: command_line,
    weight: 150,
}];

/// Arguments are what blanks part.
fn command_line(bytes: &[u8]) -> String {
    let words = bytes.split(|byte| *byte == b' ');
    let words = words.map(|word| OsString::from_vec(word.to_vec()));
    let arguments = std::iter::once(OsString::from("posthaste")).chain(words);
    match CommandLine::from_arguments(arguments) {
        Ok(_) => "read".to_owned(),
        Err(error) => {
            let text = error.to_string();
            assert!(!text.trim().is_empty(), "refused for nothing");
            format!("{:?} {text}", error.kind())
        }
    }
}
