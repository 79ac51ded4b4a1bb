//! Hops: the number of deliveries of posthaste that an event came through. A delivery says one more
//! than its events have, and a publish request that says [`HOPS_MAX`] or more is refused, so that
//! endpoints that form a loop end it by themselves. A receiver that drops the header is not
//! protected.

use http::{HeaderMap, HeaderValue};
use serde::{Deserialize, Serialize};

use crate::model::limits::HOPS_MAX;

/// The header, of deliveries and of publish requests.
pub const HOPS_HEADER: &str = "posthaste-hops";

/// The same header of deliveries in a sender's own name. Publish requests may have either.
pub const NEUTRAL_HOPS_HEADER: &str = "webhook-hops";

/// The number of deliveries of posthaste that an event came through.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Hops(u8);

/// Why a request's hops are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HopsError {
    /// Not a number, in the header of this name.
    #[error("{0}: expected a number")]
    NotANumber(&'static str),
    /// The endpoints form a loop.
    #[error(
        "these events came through {HOPS_MAX} deliveries of posthaste or more: an endpoint publishes what it \
            receives, and leads back to itself"
    )]
    Loop,
}

impl Hops {
    /// The hops of this number.
    pub const fn new(hops: u8) -> Self {
        Self(hops)
    }

    /// The hops of a publish request, the most that any header says; none without a header.
    pub fn from_request(headers: &HeaderMap) -> Result<Self, HopsError> {
        let named = [HOPS_HEADER, NEUTRAL_HOPS_HEADER].into_iter();
        let named =
            named.flat_map(|name| headers.get_all(name).into_iter().map(move |it| (name, it)));
        let mut most = Self::default();
        for (name, value) in named {
            most = most.max(Self::parse(value).ok_or(HopsError::NotANumber(name))?);
        }
        if most.0 >= HOPS_MAX {
            Err(HopsError::Loop)
        } else {
            Ok(most)
        }
    }

    /// Reads a number, of any length: more digits than fit are more hops than are taken.
    fn parse(value: &HeaderValue) -> Option<Self> {
        let text = value.to_str().ok()?.trim();
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| Self(text.parse().unwrap_or(u8::MAX)))
    }

    /// Whether these are the events of a producer.
    pub fn is_none(&self) -> bool {
        self.0 == 0
    }

    /// The hops of the events that an endpoint receives.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// The number.
    pub const fn get(self) -> u8 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[&str]) -> Result<u8, HopsError> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(HOPS_HEADER, value.parse().unwrap());
        }
        Hops::from_request(&headers).map(Hops::get)
    }

    #[test]
    fn a_request_says_how_many_deliveries_it_came_through() {
        assert_eq!(of(&[]), Ok(0));
        assert_eq!(of(&["0"]), Ok(0));
        assert_eq!(of(&[" 7 "]), Ok(7));
        assert_eq!(of(&["2", "5", "1"]), Ok(5));
        for looping in ["8", "9", "255", "256", "99999999999999999999"] {
            assert_eq!(of(&[looping]), Err(HopsError::Loop), "{looping}");
        }
        for bad in ["", "-1", "+1", "1.0", "one", "1, 2", "0x1"] {
            assert_eq!(of(&[bad]), Err(HopsError::NotANumber(HOPS_HEADER)), "{bad}");
        }
    }

    #[test]
    fn both_names_count() {
        let mut headers = HeaderMap::new();
        headers.append(HOPS_HEADER, "1".parse().unwrap());
        headers.append(NEUTRAL_HOPS_HEADER, "3".parse().unwrap());
        assert_eq!(Hops::from_request(&headers), Ok(Hops::new(3)));
        headers.append(NEUTRAL_HOPS_HEADER, "8".parse().unwrap());
        assert_eq!(Hops::from_request(&headers), Err(HopsError::Loop));
        headers.append(NEUTRAL_HOPS_HEADER, "x".parse().unwrap());
        let bad = HopsError::NotANumber(NEUTRAL_HOPS_HEADER);
        assert_eq!(Hops::from_request(&headers), Err(bad));
    }

    #[test]
    fn a_delivery_is_one_more() {
        assert_eq!(
            [0, 7, 255].map(|hops| Hops::new(hops).next().get()),
            [1, 8, 255]
        );
    }
}
