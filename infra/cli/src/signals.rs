//! SIGTERM and SIGINT, and SIGHUP for commands that ask for it: the first signal asks for an
//! orderly end, the second ends the process at once.

use std::fs;
use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Exit code of a process ended by a signal is this plus the signal's number, as shells have it.
const EXIT_CODE_BASE: i32 = 128;

/// The file in which Linux lists, as `SigIgn`, the signals that the process ignores
/// (`proc_pid_status(5)`).
const STATUS_FILE: &str = "/proc/self/status";

/// A listener for signals.
#[derive(Debug)]
pub struct SignalListener {
    interrupt: Signal,
    terminate: Signal,
    hangup: Option<Signal>,
}

impl SignalListener {
    /// Begins to listen for SIGINT and SIGTERM: from now on they do not end the process by
    /// themselves.
    pub fn listen() -> io::Result<Self> {
        let interrupt = signal(SignalKind::interrupt())?;
        let terminate = signal(SignalKind::terminate())?;
        Ok(Self {
            interrupt,
            terminate,
            hangup: None,
        })
    }

    /// The same, and for SIGHUP, which comes when the terminal is closed or its connection is lost.
    /// If SIGHUP is ignored already, as under `nohup`, it stays ignored.
    pub fn listen_with_hangup() -> io::Result<Self> {
        // Without that file the signal counts as not ignored.
        let is_ignored =
            fs::read_to_string(STATUS_FILE).is_ok_and(|status| ignores_hangup(&status));
        let hangup = (!is_ignored)
            .then(|| signal(SignalKind::hangup()))
            .transpose()?;
        Ok(Self {
            hangup,
            ..Self::listen()?
        })
    }

    /// The next signal's exit code: 129 for SIGHUP, 130 for SIGINT, 143 for SIGTERM.
    pub async fn next(&mut self) -> i32 {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        let kind = tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
            _ = hangup => SignalKind::hangup(),
        };
        EXIT_CODE_BASE + kind.as_raw_value()
    }
}

/// True if a process with this status ignores SIGHUP: the lowest bit of the set is the first
/// signal's.
fn ignores_hangup(status: &str) -> bool {
    let set = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let set = set.and_then(|set| u128::from_str_radix(set.trim(), 16).ok());
    set.is_some_and(|set| set >> (SignalKind::hangup().as_raw_value() - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_says_whether_hangups_are_ignored() {
        let check = |set: &str, expected| {
            let status = format!(
                "Name:\tposthaste\nSigBlk:\t0000000000000001\nSigIgn:\t{set}\nSigCgt:\t00\n"
            );
            assert_eq!(ignores_hangup(&status), expected, "{set}");
        };
        check("0000000000000000", false);
        check("0000000000001001", true);
        check("0000000000001000", false);
        check("?", false);
        assert!(!ignores_hangup(""));
    }
}
