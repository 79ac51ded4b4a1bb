//! The deliver function.
