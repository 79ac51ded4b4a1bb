//! A shape: resources with `<word>` where a word of the entry stands, and with a line `# <block>`
//! where a block of the entry stands. A line is left out if the entry has no such word or block.

use std::collections::{BTreeMap, BTreeSet};

use super::entry::Entry;
use super::yaml::indented_line;

/// Blocks that the composition makes itself.
pub(crate) type Blocks = BTreeMap<String, Vec<String>>;

/// The lines of a shape, filled with the words and blocks of an entry.
pub(crate) fn fill(shape: &[String], entry: &Entry, made: &Blocks) -> Vec<String> {
    let mut lines = Vec::new();
    for line in shape {
        if let Some(name) = block_name(line) {
            let indent = line.len() - line.trim_start().len();
            let block = entry.blocks.get(name).or_else(|| made.get(name));
            for line in block.into_iter().flatten() {
                lines.push(indented_line(line, indent));
            }
        } else if let Some(line) = with_words(line, entry) {
            lines.push(line);
        }
    }
    lines
}

/// The words and blocks of an entry that its shape has no place for.
pub(crate) fn unused(shape: &[String], entry: &Entry) -> BTreeSet<String> {
    let mut unused: BTreeSet<_> = entry
        .words
        .keys()
        .chain(entry.blocks.keys())
        .cloned()
        .collect();
    unused.remove("shape");
    for line in shape {
        for name in names(line) {
            unused.remove(name);
        }
    }
    unused
}

/// The name of the block that stands in the place of a line.
fn block_name(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("# <")?.strip_suffix('>')
}

/// The line with its words; `None` if the entry has not all of them.
fn with_words(line: &str, entry: &Entry) -> Option<String> {
    let mut filled = line.to_owned();
    for name in names(line) {
        filled = filled.replace(&format!("<{name}>"), entry.words.get(name)?);
    }
    Some(filled)
}

/// The names in angle brackets.
fn names(line: &str) -> impl Iterator<Item = &str> {
    let parts = line
        .split('<')
        .skip(1)
        .filter_map(|part| part.split_once('>'));
    parts
        .map(|(name, _)| name)
        .filter(|name| name.chars().all(|it| it.is_ascii_alphabetic()))
}
