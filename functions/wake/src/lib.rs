//! The wake function.
