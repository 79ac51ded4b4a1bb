//! Panics as lines of the log.

use std::panic;

/// Writes panics to the log from now on, instead of as text that no reader of JSON lines understands.
pub fn log_panics() {
    panic::set_hook(Box::new(|panic| {
        let location = panic.location().map(ToString::to_string);
        let said = panic.payload_as_str().unwrap_or("something that is not text");
        tracing::error!(location, "panicked: {said}");
    }));
}
