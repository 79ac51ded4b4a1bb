//! The answer to a request that was published.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::model::MatchCounts;

/// The events that were accepted, and the subscriptions that matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PublishAnswer)]
pub struct PublishResponse {
    /// The number of events that were accepted: all of the request.
    #[schema(example = 3)]
    pub accepted_events: usize,
    /// The number of subscriptions that receive at least one of the events. Left out, like
    /// `unmatchedEvents`, in the answer to a repeated `Idempotency-Key` whose first request an
    /// older release published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = 2)]
    pub matched_subscriptions: Option<usize>,
    /// The number of events that no subscription receives. They go nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = 0)]
    pub unmatched_events: Option<usize>,
}

impl PublishResponse {
    /// The answer to a request with this number of events; `matched` is `None` where it is not
    /// known.
    pub fn new(events: usize, matched: Option<MatchCounts>) -> Self {
        Self {
            accepted_events: events,
            matched_subscriptions: matched.map(|matched| matched.subscriptions),
            unmatched_events: matched.map(|matched| events.saturating_sub(matched.events)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(events: usize, matched: Option<MatchCounts>, expected: &str) {
        let answer = PublishResponse::new(events, matched);
        assert_eq!(serde_json::to_string(&answer).unwrap(), expected);
        assert_eq!(
            serde_json::from_str::<PublishResponse>(expected).unwrap(),
            answer
        );
    }

    #[test]
    fn an_answer_counts_events_and_subscriptions() {
        let matched = |events, subscriptions| {
            Some(MatchCounts {
                events,
                subscriptions,
            })
        };
        let json = r#"{"acceptedEvents":3,"matchedSubscriptions":5,"unmatchedEvents":1}"#;
        check(3, matched(2, 5), json);
        check(
            1,
            matched(0, 0),
            r#"{"acceptedEvents":1,"matchedSubscriptions":0,"unmatchedEvents":1}"#,
        );
        check(
            0,
            matched(0, 0),
            r#"{"acceptedEvents":0,"matchedSubscriptions":0,"unmatchedEvents":0}"#,
        );
    }

    /// Response leaves out the counts of matches where they are not known.
    #[test]
    fn unknown_counts_are_left_out() {
        check(3, None, r#"{"acceptedEvents":3}"#);
    }
}
