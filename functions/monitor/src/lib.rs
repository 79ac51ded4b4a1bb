//! The monitor function.
