//! The time to live that a producer gives all events of a request, whatever their schema.

use std::time::Duration;

use http::HeaderMap;
use posthaste_core::model::time::parse_duration;

use crate::headers::TIME_TO_LIVE_HEADER;

/// A header that is no time to live.
#[derive(Debug, Clone, Copy, thiserror::Error, PartialEq, Eq)]
#[error("expected one duration of at least a millisecond, such as 10m or PT10M")]
pub struct TimeToLiveError;

/// The time to live in the headers, if there is one.
pub(crate) fn time_to_live(headers: &HeaderMap) -> Result<Option<Duration>, TimeToLiveError> {
    let mut values = headers.get_all(TIME_TO_LIVE_HEADER).iter();
    let value = match (values.next(), values.next()) {
        (None, _) => return Ok(None),
        (Some(value), None) => value,
        (Some(_), Some(_)) => return Err(TimeToLiveError),
    };
    let length = value
        .to_str()
        .ok()
        .and_then(|text| parse_duration(text).ok())
        .ok_or(TimeToLiveError)?;
    if length.as_millis() == 0 {
        Err(TimeToLiveError)
    } else {
        Ok(Some(length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn check(values: &[&str], expected: Result<Option<Duration>, TimeToLiveError>) {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(TIME_TO_LIVE_HEADER, HeaderValue::from_str(value).unwrap());
        }
        assert_eq!(time_to_live(&headers), expected, "{values:?}");
    }

    #[test]
    fn header_takes_one_duration_longer_than_zero() {
        check(&[], Ok(None));
        check(&["PT10M"], Ok(Some(Duration::from_mins(10))));
        check(&["10m"], Ok(Some(Duration::from_mins(10))));
        check(&["P1D"], Ok(Some(Duration::from_hours(24))));
        check(&["PT0.001S"], Ok(Some(Duration::from_millis(1))));
        for wrong in [
            "",
            "60",
            "PT0S",
            "PT0.0001S",
            "-PT1M",
            "P1M",
            "soon",
            "PT1M PT2M",
        ] {
            check(&[wrong], Err(TimeToLiveError));
        }
        check(&["PT1M", "PT1M"], Err(TimeToLiveError));
    }
}
