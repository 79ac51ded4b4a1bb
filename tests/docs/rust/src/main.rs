//! One Rust example of the documents. `build.rs` takes its text from where `tests/docs` has put it.

include!(concat!(env!("OUT_DIR"), "/example.rs"));
