//! A reader of bytes from outside, the inputs that are known of it, and what holds for all others.

use std::fs;
use std::path::{Path, PathBuf};

/// A reader of bytes from outside.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// The name by which it is run alone.
    pub name: &'static str,
    /// The known inputs: files of the repository, or all files whose path begins so. Each line of a
    /// file `.lines` is one.
    pub corpus: &'static [&'static str],
    /// Reads an input, and returns a word for what came of it. An input with a word that is new is
    /// changed further.
    ///
    /// # Panics
    /// Something does not hold that must hold for every input.
    pub check: fn(&[u8]) -> String,
    /// The time of an input, as a multiple of that of a plain parser.
    pub weight: usize,
}

impl Target {
    /// The inputs that are known, and those that once failed.
    ///
    /// # Panics
    /// A file of the corpus is missing.
    pub fn known(&self) -> Vec<Vec<u8>> {
        let mut inputs = Vec::new();
        for prefix in self.corpus {
            let files = files_of(&repository().join(prefix));
            assert!(!files.is_empty(), "{}: no file {prefix}", self.name);
            inputs.extend(files.iter().flat_map(|file| inputs_of(file)));
        }
        if self.found().is_dir() {
            let files = files_of(&self.found().join(""));
            inputs.extend(files.iter().flat_map(|file| inputs_of(file)));
        }
        inputs
    }

    /// The folder in which inputs that failed are kept.
    pub fn found(&self) -> PathBuf {
        repository()
            .join("tests/parsers/corpus/found")
            .join(self.name)
    }
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files whose path begins so, in the order of their names.
fn files_of(prefix: &Path) -> Vec<PathBuf> {
    let text = prefix.to_string_lossy();
    let (folder, start) = text.rsplit_once('/').unwrap_or((".", &text));
    let entries = fs::read_dir(folder).into_iter().flatten();
    let paths = entries.filter_map(Result::ok).map(|entry| entry.path());
    let mut files: Vec<_> = paths
        .filter(|path| path.is_file())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default();
            name.to_string_lossy().starts_with(start)
        })
        .collect();
    files.sort();
    files
}

fn inputs_of(file: &Path) -> Vec<Vec<u8>> {
    let bytes = fs::read(file).unwrap_or_default();
    if file
        .extension()
        .is_some_and(|extension| extension == "lines")
    {
        return bytes
            .split(|byte| *byte == b'\n')
            .map(<[u8]>::to_vec)
            .collect();
    }
    vec![bytes]
}
