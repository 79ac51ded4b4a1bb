//! The note of an answer from the log: what it may lack, and why.

use std::time::Duration;

use crate::delivery_log::{GapCause, LogGap};
use crate::model::{ACCEPTANCE_WAIT_MIN, Timestamp};

/// Most times without records that a note names.
const GAPS_NAMED_MAX: usize = 3;

/// Most damaged files that a note names.
const FILES_NAMED_MAX: usize = 3;

/// The known gaps of a response.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogNote<'a> {
    /// Whether an event was asked for of which the log has no record.
    pub is_unknown: bool,
    /// The time after which a record is in the log.
    pub delay: Duration,
    /// Whether the topic's delivery log is off.
    pub is_off: bool,
    /// Whether there are more records of the id than an answer has.
    pub is_cut: bool,
    /// The time from which on all was searched, if the search ended before its end.
    pub searched_from: Option<Timestamp>,
    /// The files that are damaged.
    pub damaged: &'a [&'a str],
    /// The times within the question of which the log may lack records, the oldest first.
    pub gaps: &'a [LogGap],
}

impl LogNote<'_> {
    /// The note; `None` if there is nothing to say.
    pub fn text(self) -> Option<String> {
        let unknown = self.is_unknown.then(|| self.unknown_event_text());
        let off = self.is_off.then(|| OFF.to_owned());
        let cut = self.is_cut.then(|| CUT.to_owned());
        let sentences: Vec<_> = [
            unknown,
            self.search_end_text(),
            off,
            cut,
            self.damage_text(),
        ]
        .into_iter()
        .flatten()
        .chain(self.gap_texts())
        .collect();
        (!sentences.is_empty()).then(|| sentences.join(" "))
    }

    fn unknown_event_text(self) -> String {
        if self.searched_from.is_some() {
            return NOT_FOUND_YET.to_owned();
        }
        let within = (ACCEPTANCE_WAIT_MIN + self.delay).as_secs();
        format!(
            "The log has no record of this event. One that was accepted may be waiting for it: as a rule its first \
             record is here {within} seconds after its acceptance, or later where the deliveries before it \
             suddenly take longer. An event that matches no subscription has a record only where the topic \
             sets `recordUnmatched`. Records of old events are gone."
        )
    }

    fn search_end_text(self) -> Option<String> {
        let since = self.searched_from?;
        Some(format!(
            "The search reached its time limit: it looked back to {since}. `from` and `to` narrow it; with \
             `to={since}` it goes on from there."
        ))
    }

    /// A sentence for each of the newest gaps, and one for the others.
    fn gap_texts(self) -> impl Iterator<Item = String> {
        let (older, named) = self
            .gaps
            .split_at(self.gaps.len().saturating_sub(GAPS_NAMED_MAX));
        let earlier = older.first().map(|first| {
            let since = first.from;
            format!("`gaps` has {} more such times since {since}.", older.len())
        });
        named.iter().rev().map(gap_text).chain(earlier)
    }

    fn damage_text(self) -> Option<String> {
        let named = self
            .damaged
            .iter()
            .take(FILES_NAMED_MAX)
            .copied()
            .collect::<Vec<_>>()
            .join(", ");
        let more = match self.damaged.len().saturating_sub(FILES_NAMED_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let text =
            format!("Files of the log are damaged, and may have had more records: {named}{more}.");
        (!self.damaged.is_empty()).then_some(text)
    }
}

fn gap_text(gap: &LogGap) -> String {
    let LogGap { from, to, .. } = gap;
    match (gap.cause, gap.attempts_max) {
        (GapCause::Copy, _) => format!(
            "The log is unknown from {from} to {to}: the data folder is a copy, and what its original did in \
             that time is not in it."
        ),
        (GapCause::MissingFiles, _) => {
            format!("The log is unknown from {from} to {to}: files of it are missing.")
        }
        (GapCause::Killed, None | Some(0)) => format!(
            "The log may lack records from {from} to {to}: posthaste ended without a shutdown, or the data \
             folder is an older snapshot."
        ),
        (GapCause::Killed, Some(attempts)) => format!(
            "posthaste ended in the middle of its work, between {from} and {to}: up to {attempts} attempts of \
             before are not in the log. They are made again."
        ),
        (GapCause::Unknown, _) => format!("The log may lack records from {from} to {to}."),
    }
}

const NOT_FOUND_YET: &str = "No record of this event was found so far.";

const OFF: &str = "The delivery log of this topic is off, so what happens now is not recorded.";

const CUT: &str = "The id has more records than are shown. These are the newest; a `to` before them shows others.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_says_what_an_answer_may_lack() {
        let check = |note: LogNote<'_>, expected: Option<&str>| {
            assert_eq!(note.text().as_deref(), expected, "{note:?}");
        };
        let all = LogNote {
            delay: Duration::from_mins(4),
            ..LogNote::default()
        };
        let unknown = all.unknown_event_text();
        assert!(unknown.contains("245 seconds after its acceptance"));
        check(all, None);
        check(
            LogNote {
                is_unknown: true,
                ..all
            },
            Some(&unknown),
        );
        check(
            LogNote {
                is_unknown: true,
                is_off: true,
                ..all
            },
            Some(&format!("{unknown} {OFF}")),
        );
        check(
            LogNote {
                is_cut: true,
                ..all
            },
            Some(CUT),
        );
    }

    #[test]
    fn a_search_that_ended_early_says_how_to_go_on() {
        let searched_from = Some(Timestamp::EPOCH);
        let text = LogNote {
            searched_from,
            ..LogNote::default()
        }
        .text()
        .unwrap();
        let end = "it looked back to 1970-01-01T00:00:00.000Z. `from` and `to` narrow it; with \
                   `to=1970-01-01T00:00:00.000Z` it goes on from there.";
        assert!(text.ends_with(end), "{text}");
        let text = LogNote {
            is_unknown: true,
            searched_from,
            ..LogNote::default()
        }
        .text()
        .unwrap();
        assert!(
            text.starts_with(NOT_FOUND_YET) && text.ends_with(end),
            "{text}"
        );
    }

    #[test]
    fn damaged_files_are_named_as_far_as_there_is_room() {
        let check = |damaged: &[&str], named: &str| {
            let text = LogNote {
                damaged,
                ..LogNote::default()
            }
            .text()
            .unwrap();
            assert!(text.ends_with(&format!(": {named}.")), "{text}");
        };
        check(&["a"], "a");
        check(&["a", "b", "c"], "a, b, c");
        check(&["a", "b", "c", "d", "e"], "a, b, c and 2 more");
    }

    #[test]
    fn times_without_records_are_said_the_newest_first() {
        let gap = |second: u64, cause, attempts_max| LogGap {
            from: Timestamp::from_millis(second * 1000),
            to: Timestamp::from_millis((second + 1) * 1000),
            cause,
            attempts_max,
        };
        let note = |gaps: &[LogGap]| {
            let note = LogNote {
                gaps,
                ..LogNote::default()
            };
            note.text()
        };
        assert_eq!(note(&[]), None);
        let copy = gap(1, GapCause::Copy, None);
        let killed = gap(2, GapCause::Killed, Some(3));
        assert_eq!(
            note(&[copy.clone(), killed.clone()]).unwrap(),
            "posthaste ended in the middle of its work, between 1970-01-01T00:00:02.000Z and \
             1970-01-01T00:00:03.000Z: up to 3 attempts of before are not in the log. They are made again. The \
             log is unknown from 1970-01-01T00:00:01.000Z to 1970-01-01T00:00:02.000Z: the data folder is a copy, \
             and what its original did in that time is not in it."
        );
        let unseen = gap(3, GapCause::Killed, Some(0));
        let missing = gap(4, GapCause::MissingFiles, None);
        let text = note(&[copy, killed, unseen, missing]).unwrap();
        assert!(
            text.contains("or the data folder is an older snapshot"),
            "{text}"
        );
        assert!(text.contains("files of it are missing"), "{text}");
        let rest = "`gaps` has 1 more such times since 1970-01-01T00:00:01.000Z.";
        assert!(text.ends_with(rest), "{text}");
    }

    /// An event without a record may have been accepted all the same.
    #[test]
    fn a_note_never_says_that_an_event_was_not_accepted() {
        let unknown = LogNote::default().unknown_event_text();
        assert!(!unknown.contains("not accepted") && unknown.contains("may be waiting"));
    }
}
