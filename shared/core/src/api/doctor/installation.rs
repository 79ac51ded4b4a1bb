//! Checks of an installation: its disk, its open files, its pressure, its clock, and its waiting
//! events.

use std::time::Duration;

use super::check::{CheckResult, CheckView};
use crate::api::{PressureFreshness, PressureView, WaitingCount};
use crate::model::{EVENT_TIME_TO_LIVE_MINUTES_MAX, LOG_DISK_FREE_MIN, Timestamp};
use crate::pressure::{ByteUsage, PressureLevel};

/// With fewer descriptors than this, slow endpoints and many producers compete for them.
pub const DESCRIPTORS_ENOUGH: u64 = 16_384;

/// The time by which the own clock may be behind what was written before: as NTP steps a clock
/// that is more than 128 ms away (RFC 5905, section 12), a second or two is no fault.
const CLOCK_STEP_MAX: Duration = Duration::from_secs(5);

/// The day of the last release, 2026-11-27. Nobody ran this program before, so a clock that shows an
/// earlier time is wrong. A test of `serve` compares it with the changelog.
pub const RELEASED: Timestamp = Timestamp::from_millis(1_795_737_600_000);

const MIB: u64 = 1024 * 1024;
const GIB: u64 = 1024 * MIB;

/// The open files of a process.
#[derive(Debug, Clone, Copy)]
pub struct OpenFiles {
    /// The most there may be; `None` without a limit.
    pub max: Option<u64>,
    /// The files that are open now, where the system tells it.
    pub now: Option<u64>,
    /// Most requests at once that the limit leaves room for.
    pub requests_max: usize,
    /// Most connections to endpoints that the limit leaves room for.
    pub connections_max: usize,
}

/// The disk of a data folder. `calm_percent` is the share in per cent from which producers are
/// slowed; `None` where they are not slowed for it.
pub fn disk_check(of: &str, disk: Option<ByteUsage>, calm_percent: Option<u64>) -> CheckView {
    let Some(disk) = disk else {
        return CheckView::passed("disk", of, "the file system tells no size").with_result(
            CheckResult::Unknown,
            "watch its room by other means: neither back pressure nor the delivery log goes by it",
        );
    };
    let used = disk.percent_used().unwrap_or_default();
    let found = format!("{used} % used, {} free", size_text(disk.free_bytes()));
    let advice = "free space, or move the data folder to a larger disk";
    let is_slowing = calm_percent.is_some_and(|calm| used >= calm);
    if disk.free_bytes() < LOG_DISK_FREE_MIN {
        CheckView::passed("disk", of, found).with_result(CheckResult::Failed, advice)
    } else if is_slowing {
        let calm = calm_percent.unwrap_or_default();
        let found = format!("{found}; producers are slowed from {calm} % on");
        CheckView::passed("disk", of, found).with_result(CheckResult::Warning, advice)
    } else {
        CheckView::passed("disk", of, found)
    }
}

/// The limit of open files, and what it leaves room for.
pub fn open_files_check(of: &str, files: &OpenFiles) -> CheckView {
    let OpenFiles {
        max,
        now,
        requests_max,
        connections_max,
    } = files;
    let open = now.map_or_else(String::new, |now| format!("{now} open, "));
    let limit = max.map_or_else(|| "no limit".to_owned(), |max| format!("at most {max}"));
    let found = format!(
        "{open}{limit}: room for {requests_max} requests and {connections_max} connections to \
         endpoints at once"
    );
    let check = CheckView::passed("open-files", of, found);
    match max {
        Some(max) if *max < DESCRIPTORS_ENOUGH => check.with_result(
            CheckResult::Warning,
            format!(
                "raise the hard limit to {DESCRIPTORS_ENOUGH} or more (`ulimit -Hn`, or \
                 `LimitNOFILE=` of a systemd unit)"
            ),
        ),
        _ => check,
    }
}

/// The pressure, and what causes it.
pub fn pressure_check(view: &PressureView) -> CheckView {
    let no_monitor = "look for errors in the log of the monitor";
    match view.freshness {
        PressureFreshness::Missing => measured_check(view, "nothing was measured yet")
            .with_result(CheckResult::Unknown, "ask again in two minutes"),
        PressureFreshness::Unreadable => {
            measured_check(view, "what the monitor wrote cannot be understood")
                .with_result(CheckResult::Failed, "run one version everywhere")
        }
        PressureFreshness::Forgotten => measured_check(view, "the monitor has stopped")
            .with_result(CheckResult::Failed, no_monitor),
        _ if !view.monitored => measured_check(view, "resources are not watched, as it is set"),
        PressureFreshness::Stale => measured_check(view, "the monitor has missed polls")
            .with_result(CheckResult::Warning, no_monitor),
        PressureFreshness::Current => {
            let found = measured_check(view, &pressure_text(view));
            let more = "`posthaste pressure` shows each resource; see \"Back pressure\"";
            if !view.refused_tiers.is_empty() {
                found.with_result(CheckResult::Failed, more)
            } else if view.level != PressureLevel::Normal || !view.topics.is_empty() {
                found.with_result(CheckResult::Warning, more)
            } else {
                found
            }
        }
    }
}

/// The check of the pressure that found this, with the time at which it was measured.
fn measured_check(view: &PressureView, found: &str) -> CheckView {
    let measured_at = view
        .polled_at
        .map_or_else(String::new, |at| format!(" (measured {})", at.0));
    let found = format!("{found}{measured_at}");
    CheckView::passed("pressure", "what the monitor measures", found)
}

/// The level, the refused tiers, and each resource and topic that is above normal.
fn pressure_text(view: &PressureView) -> String {
    let mut parts = vec![view.level.to_string()];
    if !view.refused_tiers.is_empty() {
        let tiers: Vec<_> = view.refused_tiers.iter().map(ToString::to_string).collect();
        parts.push(format!("refused producers: {}", tiers.join(", ")));
    }
    let high = view.resources.iter();
    let high = high.filter(|it| it.acts && it.level != PressureLevel::Normal);
    parts.extend(high.map(|it| {
        let normal = it.thresholds.normal;
        format!(
            "{} is {} {}, normal below {normal}",
            it.resource, it.reading, it.unit
        )
    }));
    parts.extend(view.topics.iter().map(|topic| {
        format!(
            "topic {} is slowed by its subscription {}",
            topic.topic, topic.subscription
        )
    }));
    parts.join("; ")
}

/// The check of the waiting events and their age. No event is tried for longer than a day, so an
/// older one is held, or is for later.
pub fn waiting_check(of: &str, waiting: &WaitingCount, now: Timestamp) -> CheckView {
    let count = waiting.total();
    let at_least = if waiting.is_partial { " or more" } else { "" };
    let Some(oldest) = waiting.oldest.filter(|_| count > 0) else {
        let found = format!("{count}{at_least} events");
        return CheckView::passed("waiting", of, found);
    };
    let age = now.since(oldest);
    let found = format!(
        "{count}{at_least} events, the oldest accepted {} s ago ({oldest})",
        age.as_secs()
    );
    let check = CheckView::passed("waiting", of, found);
    if age > Duration::from_mins(u64::from(EVENT_TIME_TO_LIVE_MINUTES_MAX)) {
        check.with_result(
            CheckResult::Warning,
            "no event is tried for longer than a day: `posthaste links` shows subscriptions that \
             are paused or whose endpoint has not consented; an event for later is in order",
        )
    } else {
        check
    }
}

/// The own clock against a time that has been before: of a release, of something that was written,
/// or one that it has shown.
pub fn own_clock_check(of: &str, now: Timestamp, has_been: Option<Timestamp>) -> CheckView {
    let behind = has_been.map_or(Duration::ZERO, |before| before.since(now));
    if behind <= CLOCK_STEP_MAX {
        return CheckView::passed("server-clock", of, now.to_string());
    }
    let found = format!(
        "{now}, {} s behind a time that has already been",
        behind.as_secs()
    );
    CheckView::passed("server-clock", of, found).with_result(
        CheckResult::Failed,
        "set the clock by NTP: a clock that is behind makes events and signatures old. If it was \
         ahead before and is right now, a restart ends this once newer data is written",
    )
}

/// A size with the unit that people read.
fn size_text(bytes: u64) -> String {
    if bytes >= GIB {
        let tenths = bytes / (GIB / 10);
        format!("{}.{} GiB", tenths / 10, tenths % 10)
    } else {
        format!("{} MiB", bytes / MIB)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pressure::{
        DatabaseSpace, PressureSettings, PressureState, ResourceReadings, evaluate_pressure,
    };

    const OK: CheckResult = CheckResult::Ok;
    const WARNING: CheckResult = CheckResult::Warning;
    const FAILED: CheckResult = CheckResult::Failed;
    const UNKNOWN: CheckResult = CheckResult::Unknown;

    fn said(check: CheckView) -> (CheckResult, String) {
        assert_eq!(check.advice.is_some(), check.result != OK);
        (check.result, check.found)
    }

    fn now() -> Timestamp {
        Timestamp::parse("2026-11-21T10:00:00Z").unwrap()
    }

    /// Disk fails where the log stops for lack of space and warns where producers are slowed.
    #[test]
    fn disk_check_fails_near_full_and_warns_from_slowing_level() {
        let check = |used, total, calm, expected: (CheckResult, &str)| {
            let disk = disk_check("/data", Some(ByteUsage { used, total }), calm);
            assert_eq!(said(disk), (expected.0, expected.1.to_owned()));
        };
        check(
            61 * GIB,
            100 * GIB,
            Some(90),
            (OK, "61 % used, 39.0 GiB free"),
        );
        let slowed = "90 % used, 10.0 GiB free; producers are slowed from 90 % on";
        check(90 * GIB, 100 * GIB, Some(90), (WARNING, slowed));
        check(90 * GIB, 100 * GIB, None, (OK, "90 % used, 10.0 GiB free"));
        let full = "99 % used, 127 MiB free";
        check(100 * GIB - 127 * MIB, 100 * GIB, None, (FAILED, full));
        let just_enough = "99 % used, 128 MiB free";
        check(100 * GIB - 128 * MIB, 100 * GIB, None, (OK, just_enough));
        let unknown = (UNKNOWN, "the file system tells no size".to_owned());
        assert_eq!(said(disk_check("/data", None, Some(90))), unknown);
    }

    #[test]
    fn few_open_files_are_a_warning() {
        let check = |max, expected| {
            let files = OpenFiles {
                max,
                now: Some(57),
                requests_max: 704,
                connections_max: 128,
            };
            assert_eq!(
                open_files_check("process", &files).result,
                expected,
                "{max:?}"
            );
        };
        check(Some(16_383), WARNING);
        check(Some(16_384), OK);
        check(None, OK);
        let files = OpenFiles {
            max: Some(1024),
            now: Some(57),
            requests_max: 704,
            connections_max: 128,
        };
        let expected = "57 open, at most 1024: room for 704 requests and 128 connections to \
                        endpoints at once";
        assert_eq!(
            said(open_files_check("process", &files)),
            (WARNING, expected.to_owned())
        );
    }

    /// The pressure of a disk of which so many per cent are used.
    fn pressure(used: u64, polled: Timestamp) -> PressureView {
        let disk = Some(DatabaseSpace::Disk(ByteUsage {
            used: used << 30,
            total: 100 << 30,
        }));
        let readings = ResourceReadings {
            database: disk,
            ..ResourceReadings::default()
        };
        let before = PressureState::normal(polled);
        let settings = PressureSettings::default();
        let state = evaluate_pressure(&before, &readings, &settings, polled).0;
        PressureView::new(Some(&state), now())
    }

    #[test]
    fn pressure_names_its_cause() {
        let expected = "normal (measured 2026-11-21T10:00:00.000Z)";
        assert_eq!(
            said(pressure_check(&pressure(10, now()))),
            (OK, expected.to_owned())
        );
        let (result, found) = said(pressure_check(&pressure(99, now())));
        assert_eq!(result, FAILED);
        assert!(found.starts_with("high; refused producers: "), "{found}");
        assert!(found.contains("; database-disk is 99 "), "{found}");
    }

    #[test]
    fn pressure_that_is_old_or_missing_is_not_well() {
        let check = |view: &PressureView, expected: (CheckResult, &str)| {
            let (result, found) = said(pressure_check(view));
            assert!(
                result == expected.0 && found.starts_with(expected.1),
                "{result:?} {found}"
            );
        };
        let ago = |secs: u64| Timestamp::from_millis(now().as_millis() - 1000 * secs);
        check(
            &pressure(10, ago(60)),
            (WARNING, "the monitor has missed polls"),
        );
        check(
            &pressure(10, ago(1000)),
            (FAILED, "the monitor has stopped"),
        );
        check(
            &PressureView::unreadable(),
            (FAILED, "what the monitor wrote"),
        );
        check(
            &PressureView::new(None, now()),
            (UNKNOWN, "nothing was measured yet"),
        );
        let off = PressureState::unmonitored(ago(10_000));
        let view = PressureView::new(Some(&off), now());
        check(&view, (OK, "resources are not watched"));
    }

    #[test]
    fn event_that_waits_for_more_than_a_day_is_a_warning() {
        let check = |oldest_secs_ago: u64, expected: CheckResult| {
            let waiting = WaitingCount {
                held: 7,
                oldest: Some(Timestamp::from_millis(
                    now().as_millis() - 1000 * oldest_secs_ago,
                )),
                ..WaitingCount::default()
            };
            let (result, found) = said(waiting_check("all", &waiting, now()));
            assert_eq!(result, expected);
            let begin = format!("7 events, the oldest accepted {oldest_secs_ago} s ago (2026-11-");
            assert!(found.starts_with(&begin), "{found}");
        };
        check(86_400, OK);
        check(86_401, WARNING);
        let nothing = waiting_check("all", &WaitingCount::default(), now());
        assert_eq!(said(nothing), (OK, "0 events".to_owned()));
    }

    #[test]
    fn clock_that_was_set_back_or_never_set_fails() {
        let check = |now: Timestamp, before, expected| {
            let (result, found) = said(own_clock_check("clock", now, before));
            assert_eq!(result, expected, "{found}");
        };
        let ahead = |secs| Some(now() + Duration::from_secs(secs));
        check(now(), None, OK);
        check(now(), ahead(5), OK);
        check(now(), ahead(6), FAILED);
        check(Timestamp::from_millis(0), Some(RELEASED), FAILED);
    }
}
