//! An entry of a part: a resource, or the words and blocks that a shape makes resources of.

use std::collections::BTreeMap;

use super::yaml::dedented_line;

/// A piece of a part.
pub(crate) enum Piece {
    /// A comment or an empty line between entries.
    Between(String),
    Entry(Entry),
}

/// An entry of a part. It has words and blocks if it names a shape.
#[derive(Debug, Clone, Default)]
pub(crate) struct Entry {
    /// The lines of the entry, as they are written.
    pub(crate) written: Vec<String>,
    /// Members with a value of one line, and the name of the entry as `Name`.
    pub(crate) words: BTreeMap<String, String>,
    /// Members with a value of several lines.
    pub(crate) blocks: BTreeMap<String, Vec<String>>,
}

/// The pieces of a part, in their order.
pub(crate) fn pieces(part: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for line in part.lines() {
        if key_of(line).is_some() {
            pieces.push(Piece::Entry(Entry::default()));
        }
        match pieces.last_mut() {
            Some(Piece::Entry(entry)) if !is_between(line) => entry.written.push(line.to_owned()),
            _ => pieces.push(Piece::Between(line.to_owned())),
        }
    }
    for piece in &mut pieces {
        if let Piece::Entry(entry) = piece {
            read_members(entry);
        }
    }
    pieces
}

fn is_between(line: &str) -> bool {
    line.is_empty() || line.starts_with('#')
}

/// The key at the beginning of a line, and what follows it.
fn key_of(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let is_key = !key.is_empty() && key.chars().all(|it| it.is_ascii_alphanumeric());
    is_key.then_some((key, value.trim()))
}

/// Reads words and blocks of an entry that names a shape.
fn read_members(entry: &mut Entry) {
    let (name, value) = key_of(&entry.written[0]).expect("a key");
    let name = name.to_owned();
    if let Some(members) = value.strip_prefix("{ ") {
        let members = members.trim_end_matches(" }").to_owned();
        for member in members.split(", ") {
            let (key, word) = key_of(member).expect("a member");
            entry.words.insert(key.to_owned(), word.to_owned());
        }
    } else if entry.written[1].starts_with("  shape: ") {
        read_lines(entry);
    }
    entry.words.insert("Name".to_owned(), name);
}

fn read_lines(entry: &mut Entry) {
    let mut open = String::new();
    for line in &entry.written[1..] {
        let line = dedented_line(line, 2);
        match key_of(line) {
            Some((key, "")) => {
                open = key.to_owned();
                entry.blocks.insert(open.clone(), Vec::new());
            }
            Some((key, word)) => {
                entry.words.insert(key.to_owned(), word.to_owned());
            }
            None => {
                let block = entry.blocks.get_mut(&open).expect("a member");
                block.push(dedented_line(line, 2).to_owned());
            }
        }
    }
}
