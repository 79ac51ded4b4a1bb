//! The events that a server accepted, and the subscriptions that matched them, as its answers count
//! them.

use posthaste_core::api::PublishResponse;

use super::number::count_with_noun;
use crate::client::ClientResponse;

/// The counts of one answer, or of all answers of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct PublishReport {
    /// Answers that were counted.
    pub(super) answers: u64,
    /// Events that were accepted.
    pub(super) accepted: u64,
    /// Events that no subscription matched.
    pub(super) unmatched: u64,
    /// Most subscriptions that one request matched.
    pub(super) subscriptions_max: u64,
}

impl PublishReport {
    /// The counts of an answer. An older release answers without them, or without a part of them.
    pub(super) fn from_response(answer: &ClientResponse) -> Option<Self> {
        let answer: PublishResponse = serde_json::from_slice(&answer.body).ok()?;
        let (subscriptions, unmatched) =
            answer.matched_subscriptions.zip(answer.unmatched_events)?;
        Some(Self {
            answers: 1,
            accepted: answer.accepted_events as u64,
            unmatched: unmatched as u64,
            subscriptions_max: subscriptions as u64,
        })
    }

    /// Adds the counts of another answer.
    pub(super) fn add_counts(&mut self, other: Self) {
        self.answers += other.answers;
        self.accepted += other.accepted;
        self.unmatched += other.unmatched;
        self.subscriptions_max = self.subscriptions_max.max(other.subscriptions_max);
    }

    /// The counts for people, with advice where nothing matched.
    pub(super) fn render_text(&self, topic: &str) -> String {
        let accepted = format!("accepted {}", count_with_noun(self.accepted, "event"));
        if self.accepted > 0 && self.unmatched == self.accepted {
            return format!(
                "{accepted}; no subscription of {topic} matched, so nothing will be delivered\n  \
                 try: `posthaste topics show {topic}` for its subscriptions, and `posthaste subscriptions \
                 show {topic} NAME` for the filter and state of one"
            );
        }
        let subscriptions = count_with_noun(self.subscriptions_max, "subscription");
        let matched = match self.answers {
            ..=1 => format!("{subscriptions} of {topic} matched"),
            _ => format!("a request matched at most {subscriptions} of {topic}"),
        };
        match self.unmatched {
            0 => format!("{accepted}; {matched}"),
            unmatched => format!(
                "{accepted}; {matched}, and {} matched none",
                count_with_noun(unmatched, "event")
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ureq::http::HeaderMap;

    fn report(body: &str) -> Option<PublishReport> {
        PublishReport::from_response(&ClientResponse {
            status: 200,
            headers: HeaderMap::new(),
            body: body.as_bytes().to_vec(),
        })
    }

    fn answer(accepted: u64, subscriptions: u64, unmatched: u64) -> PublishReport {
        let body = format!(
            r#"{{"acceptedEvents":{accepted},"matchedSubscriptions":{subscriptions},"unmatchedEvents":{unmatched}}}"#
        );
        report(&body).unwrap()
    }

    #[test]
    fn an_answer_without_all_counts_has_no_report() {
        for body in [
            "",
            "OK",
            "{}",
            r#"{"acceptedEvents":1}"#,
            r#"{"matchedSubscriptions":1}"#,
        ] {
            assert_eq!(report(body), None, "{body}");
        }
    }

    #[test]
    fn report_counts_accepted_events_and_matched_subscriptions() {
        let check = |report: PublishReport, expected: &str| {
            assert_eq!(report.render_text("orders"), expected)
        };
        check(
            answer(3, 2, 0),
            "accepted 3 events; 2 subscriptions of orders matched",
        );
        check(
            answer(1, 1, 0),
            "accepted 1 event; 1 subscription of orders matched",
        );
        check(
            answer(2000, 1, 1),
            "accepted 2,000 events; 1 subscription of orders matched, and 1 event matched none",
        );
        check(
            answer(0, 0, 0),
            "accepted 0 events; 0 subscriptions of orders matched",
        );
    }

    #[test]
    fn report_without_matches_names_the_next_step() {
        let expected = "accepted 2 events; no subscription of orders matched, so nothing will be \
            delivered\n  try: `posthaste topics show orders` for its subscriptions, and `posthaste \
            subscriptions show orders NAME` for the filter and state of one";
        assert_eq!(answer(2, 0, 2).render_text("orders"), expected);
    }

    #[test]
    fn answers_of_a_run_are_added_up() {
        let check = |answers: &[PublishReport], expected: &str| {
            let mut all = PublishReport::default();
            for answer in answers {
                all.add_counts(*answer);
            }
            assert_eq!(all.render_text("orders"), expected);
        };
        check(
            &[answer(100, 2, 0)],
            "accepted 100 events; 2 subscriptions of orders matched",
        );
        check(
            &[answer(100, 2, 0), answer(50, 3, 7), answer(50, 0, 50)],
            "accepted 200 events; a request matched at most 3 subscriptions of orders, and 57 events matched \
             none",
        );
    }
}
