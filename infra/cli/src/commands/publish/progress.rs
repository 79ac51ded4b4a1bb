//! The process as the host of a run: its signals, its pipe, and the progress on standard error: one
//! line that changes on a terminal, else a line from time to time.

use std::fmt::{self, Write as _};
use std::time::Duration;

use posthaste_ports::Clock;
use posthaste_publisher::{PipeHandle, PressureHeader, PublishRun, RunCounts, RunHost};
use posthaste_system::SystemClock;

use super::number::group_thousands;
use crate::client::ClientError;
use crate::signals::SignalListener;
use crate::terminal::{StandardStream, change_line, tell_user};

/// Time between two changes of the line on a terminal.
const TERMINAL_PERIOD: Duration = Duration::from_millis(200);

/// Time between two lines elsewhere.
const LINE_PERIOD: Duration = Duration::from_secs(10);

/// Most characters of a reason that are shown.
const REASON_CHARS_MAX: usize = 60;

/// The host of a run, with the place and time at which progress is shown.
#[derive(Debug)]
pub(super) struct ProcessHost {
    signals: SignalListener,
    pub(super) pipe: Option<PipeHandle>,
    is_terminal: bool,
    period: Duration,
    next_at: Option<Duration>,
}

impl ProcessHost {
    /// A host that shows progress. With JSON there is some on a terminal alone.
    pub(super) fn new(signals: SignalListener, pipe: Option<PipeHandle>, is_json: bool) -> Self {
        let is_terminal = StandardStream::Error.is_terminal();
        let period = if is_terminal {
            TERMINAL_PERIOD
        } else {
            LINE_PERIOD
        };
        Self {
            signals,
            pipe,
            is_terminal,
            period,
            next_at: (is_terminal || !is_json).then(|| SystemClock.monotonic() + period),
        }
    }

    /// Ends the terminal's line.
    pub(super) fn end_line(&self) {
        if self.is_terminal {
            change_line("");
        }
    }
}

impl RunHost<ClientError> for ProcessHost {
    async fn next_signal(&mut self) -> u8 {
        let exit_code = self.signals.next().await;
        if let Some(pipe) = &self.pipe {
            pipe.close();
        }
        u8::try_from(exit_code).unwrap_or(u8::MAX)
    }

    fn show_progress(&mut self, run: &PublishRun<ClientError>, now: Duration) -> Option<Duration> {
        let at = self.next_at?;
        if at > now {
            return Some(at);
        }
        let counts = counts_summary(run.counts(), run.per_second(now));
        let text = progress_text(counts, run.pressure(), run.idle_reason(now));
        if self.is_terminal {
            change_line(&text);
        } else {
            tell_user(&text);
        }
        self.next_at = Some(now + self.period);
        self.next_at
    }

    fn tell(&mut self, text: &str) {
        if self.next_at.is_some() {
            self.end_line();
            tell_user(text);
        }
    }
}

/// `12,300 sent · 400/s · 2 delayed · 1 refused · 3 retried · medium submission-queue, 15 s`, and
/// why and for how long nothing is sent, where that is a second or more.
fn progress_text<E: fmt::Display>(
    mut text: String,
    pressure: Option<&PressureHeader>,
    pause: Option<(E, Duration)>,
) -> String {
    if let Some(pressure) = pressure {
        let _ = write!(text, " · {pressure}");
    }
    if let Some((trouble, wait)) = pause.filter(|(_, wait)| *wait >= Duration::from_secs(1)) {
        let trouble = trouble.to_string();
        let line = trouble.lines().next().unwrap_or_default();
        let reason: String = line.chars().take(REASON_CHARS_MAX).collect();
        let _ = write!(text, " · {reason}, again in {} s", wait.as_secs());
    }
    text
}

/// The counts, and the speed. Counts of zero are left out.
pub(super) fn counts_summary(counts: RunCounts, per_second: f64) -> String {
    let events = group_thousands(counts.events);
    let mut text = format!("{events} sent · {per_second:.0}/s");
    let unmatched = counts.report.map_or(0, |report| report.unmatched);
    for (count, what) in [
        (counts.delayed, "delayed"),
        (counts.refused, "refused"),
        (counts.retried, "retried"),
        (unmatched, "unmatched"),
    ] {
        if count > 0 {
            let _ = write!(text, " · {} {what}", group_thousands(count));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use posthaste_publisher::PublishReport;

    #[test]
    fn summary_leaves_out_counts_of_zero() {
        let check = |counts, expected: &str| assert_eq!(counts_summary(counts, 399.6), expected);
        check(
            RunCounts {
                events: 12_300,
                requests: 123,
                ..RunCounts::default()
            },
            "12,300 sent · 400/s",
        );
        let report = PublishReport {
            unmatched: 1400,
            ..PublishReport::default()
        };
        check(
            RunCounts {
                events: 12_300,
                requests: 123,
                delayed: 2,
                refused: 1,
                retried: 3,
                report: Some(report),
            },
            "12,300 sent · 400/s · 2 delayed · 1 refused · 3 retried · 1,400 unmatched",
        );
    }

    #[test]
    fn a_line_says_what_is_scarce_and_why_nothing_is_sent() {
        let check = |pressure: Option<&str>, pause: Option<(&str, u64)>, expected: &str| {
            let pause = pause.map(|(trouble, ms)| (trouble.to_owned(), Duration::from_millis(ms)));
            assert_eq!(
                progress_text(
                    "5 sent".to_owned(),
                    pressure.map(PressureHeader::parse).as_ref(),
                    pause
                ),
                expected
            );
        };
        let queue = "medium; resource=submission-queue; delay=15";
        check(None, None, "5 sent");
        check(Some(queue), None, "5 sent · medium submission-queue, 15 s");
        check(
            None,
            Some(("failed to reach http://h/", 4200)),
            "5 sent · failed to reach http://h/, again in 4 s",
        );
        check(None, Some(("failed to reach http://h/", 999)), "5 sent");
        check(
            Some(queue),
            Some(("Back pressure (429)\n  reason: later", 15_000)),
            "5 sent · medium submission-queue, 15 s · Back pressure (429), again in 15 s",
        );
    }
}
