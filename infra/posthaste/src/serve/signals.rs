//! SIGTERM and SIGINT: the first asks for an orderly end, the second ends at once.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Exit code of a process ended by a signal is this plus the signal's number, as shells have it.
const EXIT_CODE_BASE: i32 = 128;

/// Listens for both.
#[derive(Debug)]
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Begins to listen: from now on the signals do not end the process by themselves.
    pub fn listen() -> io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// The next signal's exit code: 130 for SIGINT, 143 for SIGTERM.
    pub async fn next(&mut self) -> i32 {
        let kind = tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
        };
        EXIT_CODE_BASE + kind.as_raw_value()
    }
}
