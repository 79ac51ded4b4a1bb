//! Members of settings that are not accepted, and the checks against ranges.

use std::time::Duration;

use crate::model::filter::{FilterKeyError, FilterOperator};
use crate::model::time::format_duration;
use crate::model::{
    ACKNOWLEDGED_EVENTS_MAX, ADVANCED_FILTER_DECIMAL_DIGITS_MAX, ADVANCED_FILTER_VALUE_CHARS_MAX,
    ADVANCED_FILTER_VALUES_MAX, DeliveryHeaderError, EndpointUrlError, EventSchema,
    MAPPED_VALUE_BYTES_MAX, PUBLISH_KEY_CHARS_MAX, PUBLISH_KEY_CHARS_MIN, PrefixError,
    REQUESTS_PER_SECOND_MAX, REQUESTS_PER_SECOND_MIN, SigningSecretError, SourceFieldError,
};

/// A member that cannot be accepted.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{member}: {problem}")]
pub struct SettingsError {
    /// The path of the member, such as `retryPolicy.schedule[2]`.
    pub member: String,
    /// The fault.
    #[source]
    pub problem: SettingsProblem,
}

/// The fault of a member.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SettingsProblem {
    /// A rate outside its range.
    #[error("expected {REQUESTS_PER_SECOND_MIN} to {REQUESTS_PER_SECOND_MAX} requests a second")]
    RequestsPerSecond,
    /// A number outside its range.
    #[error("expected {min} to {max}, found {value}")]
    OutOfRange {
        /// The written value.
        value: u64,
        /// The least.
        min: u64,
        /// The greatest.
        max: u64,
    },
    /// A length of time outside its range.
    #[error("expected {} to {}, found {}", format_duration(*min), format_duration(*max), format_duration(*value))]
    DurationOutOfRange {
        /// The written value.
        value: Duration,
        /// The least.
        min: Duration,
        /// The greatest.
        max: Duration,
    },
    /// A length of time below the least, where there is no greatest.
    #[error("expected {} or more, found {}", format_duration(*min), format_duration(*value))]
    DurationTooShort {
        /// The written value.
        value: Duration,
        /// The least.
        min: Duration,
    },
    /// Too many items, or none where one is needed.
    #[error("{}", item_count_text(*count, *min, *max))]
    Count {
        /// The number of items.
        count: usize,
        /// The least.
        min: usize,
        /// The most.
        max: usize,
    },
    /// Not an endpoint URL.
    #[error("{0}")]
    Url(EndpointUrlError),
    /// A second endpoint that fails with the first.
    #[error("is on the scheme, host and port of endpoint.url, and would be left alone with it")]
    SameLink,
    /// A second endpoint that would get events to which only the first consented.
    #[error(
        "is on another host than endpoint.url, and that one has not consented; \
         only another port of the same host can be used where endpoint.validation is not none"
    )]
    NoConsent,
    /// Not an advanced filter.
    #[error("{0}")]
    Filter(FilterProblem),
    /// Not a signing secret.
    #[error("{0}")]
    Secret(SigningSecretError),
    /// Not a beginning of header names.
    #[error("{0}")]
    HeaderPrefix(PrefixError),
    /// A header that already has its value.
    #[error("the topic's senderHeaders send a header of this name")]
    HeaderOfSender,
    /// Not a header that can be added.
    #[error("{0}")]
    Header(DeliveryHeaderError),
    /// A header with two values, or with none.
    #[error("expected either value or fromEvent")]
    OneValue,
    /// The same header twice without regard to case.
    #[error("there is another header of this name")]
    HeaderTwice,
    /// A secret that every producer knows.
    #[error("a value of the event is no secret")]
    SecretFromEvent,
    /// A value of the event, where a request carries several.
    #[error(
        "a request of several events has no one value: leave batching out, or set maxEventsPerBatch to 1"
    )]
    BatchedFromEvent,
    /// Recovery of a subscription that keeps no dead letters.
    #[error("needs dead letters, and deadLetter.enabled is false")]
    NothingToRecover,
    /// Partial acknowledgement without batching.
    #[error("needs batching: set maxEventsPerBatch or preferredBatchSizeInKilobytes")]
    NotBatched,
    /// Partial acknowledgement of batches whose report might not be read to its end.
    #[error(
        "expected 1 to {ACKNOWLEDGED_EVENTS_MAX}, the most with partialAcknowledgement, found {0}"
    )]
    AcknowledgedEvents(u32),
    /// A masked secret where there is none to keep.
    #[error("a masked secret keeps the one that is there, and there is none")]
    NothingMasked,
    /// Neither an HTTP status nor `default`.
    #[error("expected an HTTP status, 100 to 599, or \"default\"")]
    NotAStatus,
    /// A schema the topic's events cannot be sent in.
    #[error("events accepted as {input:?} cannot be sent as {output:?}")]
    Conversion {
        /// The topic's schema.
        input: EventSchema,
        /// The one asked for.
        output: EventSchema,
    },
    /// An input mapping on a topic whose events say themselves where everything is.
    #[error("a topic of {0:?} events maps nothing, only one of Custom events does")]
    Unmapped(EventSchema),
    /// Not the name of an extension that can have a time.
    #[error(
        "expected the name of an extension of CloudEvents, of lower-case letters and digits, that \
         says nothing else already"
    )]
    ExtensionName,
    /// An extension of events that have none.
    #[error("events of the schema {0:?} have no extensions, only CloudEvents do")]
    NoExtensions(EventSchema),
    /// A mapping of a member that names nothing.
    #[error("expected sourceField, defaultValue or both")]
    NothingMapped,
    /// Not the name of a member, nor a way to one.
    #[error("{0}")]
    SourceField(SourceFieldError),
    /// A constant that is too long, or empty where something is needed.
    #[error("expected {} {MAPPED_VALUE_BYTES_MAX} bytes", if *may_be_empty { "at most" } else { "1 to" })]
    DefaultValue {
        /// Whether nothing would do.
        may_be_empty: bool,
    },
    /// Binary mode is CloudEvents' own, for one event at a time.
    #[error(
        "binary content mode is for one CloudEvent a request: it needs deliverySchema CloudEvents and no \
            batching"
    )]
    BinaryMode,
    /// Not a publish key.
    #[error(
        "expected a publish key of {PUBLISH_KEY_CHARS_MIN} to {PUBLISH_KEY_CHARS_MAX} visible \
         characters of ASCII; leave it out to keep the one that is there, or to have one made"
    )]
    PublishKey,
    /// One key in two places: it would have two tiers, and could not be replaced alone.
    #[error("is the same key as {0}")]
    SameKey(&'static str),
    /// The name differs from the path's.
    #[error("differs from the name in the path, {0:?}")]
    Name(String),
    /// The same name twice without regard to case.
    #[error("there is another of this name in another case")]
    Duplicate,
}

/// The fault of an advanced filter.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum FilterProblem {
    /// The key is none.
    #[error("{0}")]
    Key(FilterKeyError),
    /// A member that the operator does not take.
    #[error("{0:?} does not take this member")]
    Surplus(FilterOperator),
    /// Something else was expected.
    #[error("expected {0}")]
    Expected(&'static str),
    /// Not the number that was written.
    #[error(
        "expected an integer of 64 bits, \
         or a decimal below 2^63 of at most {ADVANCED_FILTER_DECIMAL_DIGITS_MAX} significant digits"
    )]
    Inexact,
    /// A range whose end lies before its beginning.
    #[error("expected the range's end not before its beginning")]
    Backwards,
    /// A string that is too long.
    #[error("expected at most {ADVANCED_FILTER_VALUE_CHARS_MAX} characters")]
    TooLong,
    /// Too many values in all.
    #[error(
        "expected at most {ADVANCED_FILTER_VALUES_MAX} values in all advanced filters together"
    )]
    TooMany,
}

/// Checks a number against its range.
pub(super) fn number_in<N: Into<u64>>(
    member: impl Into<String>,
    value: N,
    min: N,
    max: N,
) -> Result<(), SettingsError> {
    let value = value.into();
    let min = min.into();
    let max = max.into();
    require(
        (min..=max).contains(&value),
        member,
        SettingsProblem::OutOfRange { value, min, max },
    )
}

/// The sentence of a wrong number of items, with the way out.
fn item_count_text(count: usize, min: usize, max: usize) -> String {
    if count > max {
        let more = count - max;
        format!("expected at most {max} items, found {count}; leave {more} out")
    } else {
        format!("expected {min} to {max} items, found {count}")
    }
}

/// Checks a number of items against its range.
pub(super) fn count_in(
    member: impl Into<String>,
    count: usize,
    min: usize,
    max: usize,
) -> Result<(), SettingsError> {
    require(
        (min..=max).contains(&count),
        member,
        SettingsProblem::Count { count, min, max },
    )
}

/// Checks a length of time against its range.
pub(super) fn duration_in(
    member: impl Into<String>,
    value: Duration,
    min: Duration,
    max: Duration,
) -> Result<(), SettingsError> {
    require(
        (min..=max).contains(&value),
        member,
        SettingsProblem::DurationOutOfRange { value, min, max },
    )
}

/// Checks a length of time against its least.
pub(super) fn duration_from(
    member: &str,
    value: Duration,
    min: Duration,
) -> Result<(), SettingsError> {
    require(
        value >= min,
        member,
        SettingsProblem::DurationTooShort { value, min },
    )
}

fn require(
    holds: bool,
    member: impl Into<String>,
    problem: SettingsProblem,
) -> Result<(), SettingsError> {
    if holds {
        Ok(())
    } else {
        Err(settings_error(member, problem))
    }
}

/// The error of a member.
pub(super) fn settings_error(member: impl Into<String>, problem: SettingsProblem) -> SettingsError {
    SettingsError {
        member: member.into(),
        problem,
    }
}
