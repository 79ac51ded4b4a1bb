//! Hops: how many deliveries of posthaste an event came through. A delivery says one more than its
//! events have, and a publish request that says [`HOPS_MAX`] or more is refused, so that endpoints
//! that form a loop end it by themselves. A receiver that drops the header is not protected.

use http::HeaderMap;
use serde::{Deserialize, Serialize};

use crate::model::limits::HOPS_MAX;

/// The header, of deliveries and of publish requests.
pub const HOPS_HEADER: &str = "posthaste-hops";

/// The number of deliveries of posthaste that an event came through.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Hops(u8);

/// Why a request's hops are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HopsError {
    /// Not a number.
    #[error("{HOPS_HEADER}: expected a number")]
    NotANumber,
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
    pub fn of_request(headers: &HeaderMap) -> Result<Self, HopsError> {
        let mut most = Self::default();
        for value in headers.get_all(HOPS_HEADER) {
            let text = value.to_str().map_err(|_| HopsError::NotANumber)?.trim();
            if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(HopsError::NotANumber);
            }
            // More digits than fit are more hops than are taken.
            most = most.max(Self(text.parse().unwrap_or(u8::MAX)));
        }
        if most.0 >= HOPS_MAX {
            Err(HopsError::Loop)
        } else {
            Ok(most)
        }
    }

    /// Whether these are the events of a producer.
    pub fn is_none(&self) -> bool {
        self.0 == 0
    }

    /// The hops of what an endpoint receives.
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
        Hops::of_request(&headers).map(Hops::get)
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
            assert_eq!(of(&[bad]), Err(HopsError::NotANumber), "{bad}");
        }
    }

    #[test]
    fn a_delivery_is_one_more() {
        assert_eq!(
            [0, 7, 255].map(|hops| Hops::new(hops).next().get()),
            [1, 8, 255]
        );
    }
}
