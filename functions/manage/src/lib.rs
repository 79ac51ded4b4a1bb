//! The manage function.
