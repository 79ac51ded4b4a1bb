//! The meaning of an answer for the events of its request.

use std::time::Duration;

use posthaste_core::api::PublishResponse;

use crate::pressure_header::PressureHeader;

/// Result of a request; `E` is the error of one that was not acknowledged.
#[derive(Debug)]
pub enum PublishOutcome<E> {
    /// Every delivery of its events is durable.
    Acknowledged {
        pressure: Option<PressureHeader>,
        report: Option<PublishReport>,
    },
    /// Not acknowledged, and to be sent again under the same name.
    Again { reason: RetryReason, error: E },
    /// Refused for good, for this event of it if the server names one.
    Final { index: Option<u64>, error: E },
}

/// The reason to send a request again.
#[derive(Debug)]
pub enum RetryReason {
    /// Back pressure: nothing of it was accepted, come again after the wait.
    Refused {
        wait: Duration,
        pressure: Option<PressureHeader>,
        /// True if the tarpit refused, instead of holding an acknowledgement.
        is_delay: bool,
    },
    /// The same request is still being published; its own wait, and no sign of pressure.
    InUse(Duration),
    /// The server is not able to publish now, and may name a wait; or it took the request and then
    /// fell silent.
    Unclear(Option<Duration>),
    /// No server answered.
    Unanswered,
}

/// The events that a server accepted, and the subscriptions that matched them: the counts of one
/// answer, or of all answers of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PublishReport {
    /// Answers that were counted.
    pub answers: u64,
    /// Events that were accepted.
    pub accepted: u64,
    /// Events that no subscription matched.
    pub unmatched: u64,
    /// Most subscriptions that one request matched.
    pub subscriptions_max: u64,
}

impl PublishReport {
    /// The counts of an answer's body. An older release answers without them, or without a part of
    /// them.
    pub fn parse(body: &[u8]) -> Option<Self> {
        let answer: PublishResponse = serde_json::from_slice(body).ok()?;
        Some(Self {
            answers: 1,
            accepted: answer.accepted_events as u64,
            unmatched: answer.unmatched_events? as u64,
            subscriptions_max: answer.matched_subscriptions? as u64,
        })
    }

    /// Adds the counts of another answer.
    pub fn add_counts(&mut self, other: Self) {
        self.answers += other.answers;
        self.accepted += other.accepted;
        self.unmatched += other.unmatched;
        self.subscriptions_max = self.subscriptions_max.max(other.subscriptions_max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_without_all_counts_has_no_report() {
        for body in [
            "",
            "OK",
            "{}",
            r#"{"acceptedEvents":1}"#,
            r#"{"matchedSubscriptions":1}"#,
        ] {
            assert_eq!(PublishReport::parse(body.as_bytes()), None, "{body}");
        }
    }
}
