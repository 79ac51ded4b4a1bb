//! YAML files: read with errors that say file, line and column.

mod file;
mod locate;
mod mistakes;

pub use file::{FileError, YamlError, parse, refused};
pub use locate::Place;
pub use mistakes::{FileMistake, Mistakes, read};
