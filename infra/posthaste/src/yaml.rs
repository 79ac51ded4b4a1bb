//! YAML files: read with errors that say file, line and column.

mod mistakes;

pub use mistakes::{FileMistake, Mistakes, parse, read, read_part, refused};
