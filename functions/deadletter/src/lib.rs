//! The deadletter function.
