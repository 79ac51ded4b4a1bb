//! The table, traces and properties of back pressure as a whole.
