//! The times before which the events of a request are not sent: of all of them in a header, or of
//! each in the extension that its topic names.

use http::HeaderMap;
use posthaste_core::events::{
    Event, EventError, EventExpectation, PublishInputError, attribute_time,
};
use posthaste_core::model::{SCHEDULED_AHEAD_MAX, Timestamp, Topic};
use posthaste_services::EventSchedule;

use crate::headers::NOT_BEFORE_HEADER;

/// A header that is no time for which an event can be scheduled.
#[derive(Debug, Clone, Copy, thiserror::Error, PartialEq, Eq)]
pub enum NotBeforeError {
    /// It is not one time.
    #[error("expected one RFC 3339 date-time such as 2026-11-21T10:00:00Z")]
    NoTime,
    /// It is too far ahead.
    #[error("expected a time at most {} days ahead", SCHEDULED_AHEAD_MAX.as_secs() / 86_400)]
    TooFar,
}

/// The time in the headers of a request that arrived at `now`, if there is one.
pub(crate) fn not_before(
    headers: &HeaderMap,
    now: Timestamp,
) -> Result<Option<Timestamp>, NotBeforeError> {
    let mut values = headers.get_all(NOT_BEFORE_HEADER).iter();
    let value = match (values.next(), values.next()) {
        (None, _) => return Ok(None),
        (Some(value), None) => value,
        (Some(_), Some(_)) => return Err(NotBeforeError::NoTime),
    };
    let time = value
        .to_str()
        .ok()
        .and_then(|text| Timestamp::parse(text).ok());
    let time = time.ok_or(NotBeforeError::NoTime)?;
    if time > now + SCHEDULED_AHEAD_MAX {
        return Err(NotBeforeError::TooFar);
    }
    Ok(Some(time))
}

/// The schedule of the events of a request that arrived at `now`. An event's own time comes before
/// the one of its request.
pub(crate) fn event_schedule(
    topic: &Topic,
    events: &[Event],
    of_request: Option<Timestamp>,
    now: Timestamp,
) -> Result<EventSchedule, PublishInputError> {
    let Some(name) = &topic.not_before_attribute else {
        return Ok(EventSchedule::new(
            of_request.map_or_else(Vec::new, |time| vec![Some(time); events.len()]),
        ));
    };
    let mut times = Vec::with_capacity(events.len());
    for (index, event) in events.iter().enumerate() {
        let own = event_time(event, name, now)
            .map_err(|error| PublishInputError::Event { index, error })?;
        times.push(own.or(of_request));
    }
    Ok(EventSchedule::new(times))
}

/// The time that an event itself names, if it does.
fn event_time(event: &Event, name: &str, now: Timestamp) -> Result<Option<Timestamp>, EventError> {
    match attribute_time(event.json(), name) {
        Ok(Some(time)) if time > now + SCHEDULED_AHEAD_MAX => Err(EventError::for_member(
            name,
            EventExpectation::NotSoFarAhead,
        )),
        own => own,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::HeaderValue;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_772_856_300_000);

    fn check(values: &[&str], expected: Result<Option<Timestamp>, NotBeforeError>) {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(NOT_BEFORE_HEADER, HeaderValue::from_str(value).unwrap());
        }
        assert_eq!(not_before(&headers, NOW), expected, "{values:?}");
    }

    #[test]
    fn header_is_one_time_within_thirty_days() {
        check(&[], Ok(None));
        let hour = NOW + Duration::from_hours(1);
        check(&[&hour.to_string()], Ok(Some(hour)));
        check(
            &["2020-01-01T00:00:00+02:00"],
            Ok(Timestamp::parse("2019-12-31T22:00:00Z").ok()),
        );
        let last = NOW + SCHEDULED_AHEAD_MAX;
        check(&[&last.to_string()], Ok(Some(last)));
        let later = last + Duration::from_millis(1);
        check(&[&later.to_string()], Err(NotBeforeError::TooFar));
        for wrong in ["", "PT1H", "tomorrow", "1772856300", "2026-11-21"] {
            check(&[wrong], Err(NotBeforeError::NoTime));
        }
        let twice = hour.to_string();
        check(&[&twice, &twice], Err(NotBeforeError::NoTime));
    }
}
