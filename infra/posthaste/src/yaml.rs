//! YAML files: read with errors that say file, line and column.

mod file;
mod mistakes;

pub use file::{FileError, parse, refused};
pub use mistakes::{FileMistake, Mistakes, read};
