//! `kill -9` in the middle of what the process does.

mod changes;
mod publishes;
