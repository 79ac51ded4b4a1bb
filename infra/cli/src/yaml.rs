//! YAML files: read with errors that say file, line and column.

mod mistakes;

pub use mistakes::{FileMistake, FileMistakes, parse, read_file, read_part, rule_violation};
