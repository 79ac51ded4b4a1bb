//! Objects and messages that posthaste wrote, maybe another release of it, and that a disk or a
//! user may have changed.

use posthaste_core::api::AuditEntry;
use posthaste_core::attempt::{RateState, SlotState};
use posthaste_core::circuit::LinkShard;
use posthaste_core::delivery_log::{MergeCheckpoint, WaitingLook, WaitingPart};
use posthaste_core::health::HealthBook;
use posthaste_core::lane::SlowTargets;
use posthaste_core::model::{EventSchema, StateOwner};
use posthaste_core::pressure::PressureState;
use posthaste_core::stored::dead_letter::{restore_all, restore_letter, shown_letters};
use posthaste_core::stored::dead_letter_message::{parse_dead_letter, render_dead_letter};
use posthaste_core::stored::delivery::{carried_by_message, parse_delivery, render_delivery};
use posthaste_core::stored::drain_report::{parse_drain_report, render_drain_report};
use posthaste_core::stored::parked::{parse_parked, render_parked};
use posthaste_core::stored::resolved_message::parse_resolved;
use posthaste_core::stored::{
    ActivityNote, ConsoleKey, ConsoleSessions, DisabledMark, EventCancellation, ForceRequest,
    GoneMark, IdempotencyRecord, LetterEnding, RecoveryMark, RefusedLetters, ReplayClaim,
    ReplayRecord, ResolvedLetters, ServeRun, StoredLease, TopicRecord, WakeCheckpoint, WakeSignal,
};

use crate::hold::{Nothing, debug, object, settled, word};
use crate::target::Target;

/// An object that is read and written by functions of its own.
macro_rules! stored {
    ($name:literal, $corpus:expr, $object:ty) => {
        stored!($name, $corpus, |bytes| <$object>::parse(bytes), |value| {
            value.render()
        })
    };
    ($name:literal, $corpus:expr, $parse:expr, $render:expr) => {
        Target {
            name: $name,
            corpus: &$corpus,
            check: |bytes| object(bytes, $parse, $render),
            weight: 1,
        }
    };
}

/// An object that is written in another form than it may have been read.
macro_rules! settled {
    ($name:literal, $corpus:expr, $object:ty) => {
        Target {
            name: $name,
            corpus: &$corpus,
            check: |bytes| {
                settled(
                    bytes,
                    |bytes| <$object>::parse(bytes),
                    |value| value.render(),
                )
            },
            weight: 1,
        }
    };
}

/// The path of fixtures.
macro_rules! fixtures {
    ($($name:literal),*) => {
        [$(concat!("shared/core/src/stored/fixtures/", $name)),*]
    };
}

/// The targets.
pub(super) const TARGETS: &[Target] = &[
    stored!(
        "delivery",
        fixtures!["delivery-"],
        |bytes| {
            let _ = carried_by_message(bytes);
            parse_delivery(bytes)
        },
        render_delivery
    ),
    stored!(
        "dead-letter-message",
        fixtures!["delivery-", "dead-letter-"],
        |bytes| { parse_dead_letter(bytes) },
        render_dead_letter
    ),
    stored!(
        "parked",
        ["tests/parsers/corpus/stored/parked-"],
        parse_parked,
        |messages| { render_parked(messages) }
    ),
    // Its version is the least that has what it says.
    settled!("topic", fixtures!["topic-"], TopicRecord),
    stored!("audit-entry", fixtures!["audit-entry-"], AuditEntry),
    stored!(
        "activity",
        ["tests/parsers/corpus/stored/activity"],
        ActivityNote
    ),
    stored!(
        "cancellation",
        fixtures!["cancellation-"],
        EventCancellation
    ),
    stored!("console-key", fixtures!["console-key-"], ConsoleKey),
    stored!(
        "console-sessions",
        fixtures!["console-sessions-"],
        ConsoleSessions
    ),
    stored!(
        "disabled-mark",
        ["tests/parsers/corpus/stored/disabled"],
        DisabledMark
    ),
    stored!(
        "drain-report",
        fixtures!["drain-report-"],
        parse_drain_report,
        render_drain_report
    ),
    stored!(
        "force-request",
        fixtures!["force-request"],
        |bytes| { Ok::<_, Nothing>(ForceRequest::parse(bytes)) },
        ForceRequest::render
    ),
    stored!("gone-mark", fixtures!["gone-mark-"], GoneMark),
    // Ends without the time of the last one are none.
    settled!("health-book", fixtures!["health-book-"], HealthBook),
    stored!(
        "idempotency",
        ["tests/parsers/corpus/stored/idempotency"],
        |bytes| { IdempotencyRecord::parse(bytes).ok_or(Nothing) },
        IdempotencyRecord::render
    ),
    // Names are written in lower case.
    settled!("lanes", fixtures!["lanes-"], SlowTargets),
    stored!("letter-ending", fixtures!["letter-ending-"], LetterEnding),
    stored!("links", ["tests/parsers/corpus/stored/links"], LinkShard),
    stored!("owner", fixtures!["owner-"], StateOwner),
    stored!(
        "pressure-state",
        ["tests/parsers/corpus/stored/pressure"],
        PressureState
    ),
    stored!("rate", ["tests/parsers/corpus/stored/rate"], RateState),
    stored!(
        "record-lease",
        fixtures!["record-lease"],
        |bytes| { StoredLease::<MergeCheckpoint>::parse(bytes).ok_or(Nothing) },
        StoredLease::render
    ),
    stored!("recovery-mark", fixtures!["recovery-mark-"], RecoveryMark),
    stored!(
        "refused-letters",
        fixtures!["refused-letters-"],
        RefusedLetters
    ),
    stored!("replay-claim", fixtures!["replay-claim-"], ReplayClaim),
    stored!(
        "replay",
        fixtures!["replay-v"],
        |bytes| {
            let replay = ReplayRecord::parse(bytes)?;
            let _ = replay.selection();
            let _ = replay.to_view();
            Ok::<_, posthaste_core::model::FormatError>(replay)
        },
        ReplayRecord::render
    ),
    stored!("resolved", fixtures!["resolved-v"], ResolvedLetters),
    stored!("serve-run", fixtures!["serve-run-"], ServeRun),
    stored!("slots", fixtures!["slots-"], SlotState),
    stored!("waiting-look", fixtures!["waiting-look-"], WaitingLook),
    stored!("waiting-part", fixtures!["waiting-part-"], WaitingPart),
    stored!(
        "wake-lease",
        fixtures!["wake-lease"],
        |bytes| { StoredLease::<WakeCheckpoint>::parse(bytes).ok_or(Nothing) },
        StoredLease::render
    ),
    stored!("wake-signal", fixtures!["wake-signal"], WakeSignal),
    Target {
        name: "resolved-message",
        corpus: &fixtures!["resolved-message-"],
        check: |bytes| {
            parse_resolved(bytes).map_or_else(|error| word(&error), |_| "read".to_owned())
        },
        weight: 1,
    },
    Target {
        name: "dead-letter",
        corpus: &[
            "shared/core/src/stored/fixtures/dead-letter-",
            "tests/parsers/corpus/stored/dead-letters-",
        ],
        check: dead_letter,
        weight: 2,
    },
];

/// Letters as a user may have changed them: what can be sent again is an event of its schema, which
/// reads the same.
fn dead_letter(bytes: &[u8]) -> String {
    let bytes = bytes::Bytes::copy_from_slice(bytes);
    let shown = shown_letters(&bytes);
    let mut words = Vec::new();
    for output in [
        EventSchema::CloudEvents,
        EventSchema::EventGrid,
        EventSchema::Custom,
    ] {
        match restore_all(&bytes, output) {
            Ok(letters) => {
                assert!(shown.is_ok(), "it has letters, which are not shown");
                words.extend(letters.iter().map(|letter| {
                    letter
                        .as_ref()
                        .map_or_else(word, |letter| letter.event.schema().to_string())
                }));
            }
            Err(error) => words.push(word(&error)),
        }
        if let Ok(letter) = restore_letter(&bytes, output)
            && letter.event.envelope().is_none()
        {
            let event = &letter.event;
            let again = posthaste_core::events::Event::parse(event.schema(), event.json().clone());
            assert_eq!(debug(&again.as_ref().ok()), debug(&Some(event)));
        }
    }
    words.join(",")
}
