//! The counts of a server's answers, for people.

use posthaste_publisher::PublishReport;

use super::number::count_with_noun;

/// The counts, with advice where nothing matched.
pub(super) fn render_report(report: PublishReport, topic: &str) -> String {
    let accepted = format!("accepted {}", count_with_noun(report.accepted, "event"));
    if report.accepted > 0 && report.unmatched == report.accepted {
        return format!(
            "{accepted}; no subscription of {topic} matched, so nothing will be delivered\n  \
             try: `posthaste topics show {topic}` for its subscriptions, and `posthaste subscriptions \
             show {topic} NAME` for the filter and state of one"
        );
    }
    let subscriptions = count_with_noun(report.subscriptions_max, "subscription");
    let matched = match report.answers {
        ..=1 => format!("{subscriptions} of {topic} matched"),
        _ => format!("a request matched at most {subscriptions} of {topic}"),
    };
    match report.unmatched {
        0 => format!("{accepted}; {matched}"),
        unmatched => format!(
            "{accepted}; {matched}, and {} matched none",
            count_with_noun(unmatched, "event")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(accepted: u64, subscriptions: u64, unmatched: u64) -> PublishReport {
        let body = format!(
            r#"{{"acceptedEvents":{accepted},"matchedSubscriptions":{subscriptions},"unmatchedEvents":{unmatched}}}"#
        );
        PublishReport::parse(body.as_bytes()).unwrap()
    }

    #[test]
    fn report_counts_accepted_events_and_matched_subscriptions() {
        let check = |report: PublishReport, expected: &str| {
            assert_eq!(render_report(report, "orders"), expected);
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
        assert_eq!(render_report(answer(2, 0, 2), "orders"), expected);
    }

    #[test]
    fn answers_of_a_run_are_added_up() {
        let check = |answers: &[PublishReport], expected: &str| {
            let mut all = PublishReport::default();
            for answer in answers {
                all.add_counts(*answer);
            }
            assert_eq!(render_report(all, "orders"), expected);
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
