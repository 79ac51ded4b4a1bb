//! The publish function.
