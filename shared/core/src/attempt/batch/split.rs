//! Splitting: a batch that is refused for its content is sent again in halves, down to single
//! events, so that one bad event never costs its neighbours.

use std::time::Duration;

use crate::model::{AttemptOutcome, RetryPolicy, refuses_content};

/// Single events that are refused alike, the first of a batch, before the refusal is the endpoint's
/// own: it would refuse every event.
pub const SINGLES_REFUSED_ALIKE_MAX: usize = 8;

/// One answer to a batch, or to a part of it.
#[derive(Debug, Clone, Copy)]
pub struct BatchAnswer {
    /// The outcome of the request.
    pub outcome: AttemptOutcome,
    /// The number of events in the request.
    pub events: usize,
    /// Whether the attempt before this one was refused for its content.
    pub was_refused: bool,
    /// Whether other events of the subscription arrived a moment ago: then the endpoint does not
    /// refuse every event.
    pub do_others_arrive: bool,
}

/// The step that follows an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SplitDecision {
    /// The halves of the request are sent next.
    Split,
    /// The answer decides over the events of the request.
    Judge,
    /// The answer decides over the events of the request and over those of the batch that were not
    /// sent yet.
    JudgeAll,
}

/// One attempt of a batch: the results of its parts so far.
#[derive(Debug, Default)]
pub struct SplitProgress {
    is_split: bool,
    /// A part was not refused, or two single events were refused for different reasons.
    differs: bool,
    /// The status of the single events so far, and their number.
    alike: Option<(u16, usize)>,
}

/// The number of events of a refused request that are sent next: half of them. Where fewer requests
/// are left than lead down to a single event, it is one event, so that an endpoint that is slow to
/// refuse decides over one at least.
pub fn events_of_next_request(refused: usize, requests_left: u32) -> usize {
    let halvings = refused.checked_ilog2().unwrap_or(0);
    if requests_left < halvings {
        1
    } else {
        refused / 2
    }
}

/// The number of requests that may still begin, one after the other, if each takes as long as the
/// last one `took`. `left` is the time until the last moment at which one may begin; `None` if that
/// has passed.
pub fn requests_left(left: Option<Duration>, took: Duration) -> u32 {
    let took = took.as_millis().max(1);
    let requests = left.map_or(0, |left| 1 + left.as_millis() / took);
    u32::try_from(requests).unwrap_or(u32::MAX)
}

impl SplitProgress {
    /// Decides after an answer. A permanent refusal splits a batch at once, a retried one on the
    /// second in a row; a part of a batch was refused with it before.
    pub fn decide_after(&mut self, answer: BatchAnswer, policy: &RetryPolicy) -> SplitDecision {
        let refused = answer
            .outcome
            .status()
            .filter(|status| refuses_content(*status));
        self.differs |= answer.do_others_arrive;
        if answer.events > 1 {
            if let Some(status) = refused
                && (self.is_split
                    || answer.was_refused
                    || policy.permanent_statuses.contains(&status))
            {
                self.is_split = true;
                return SplitDecision::Split;
            }
            self.differs = true;
            return SplitDecision::Judge;
        }
        if self.is_split {
            self.decide_after_single(refused)
        } else {
            SplitDecision::Judge
        }
    }

    fn decide_after_single(&mut self, refused: Option<u16>) -> SplitDecision {
        let (status, singles) = match (refused, self.alike) {
            (Some(status), None) => (status, 1),
            (Some(status), Some((same, singles))) if status == same => (status, singles + 1),
            _ => {
                self.differs = true;
                return SplitDecision::Judge;
            }
        };
        self.alike = Some((status, singles));
        if !self.differs && singles >= SINGLES_REFUSED_ALIKE_MAX {
            SplitDecision::JudgeAll
        } else {
            SplitDecision::Judge
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SendFailure;

    fn answered(status: u16, events: usize) -> BatchAnswer {
        let outcome = AttemptOutcome::Answered {
            status,
            retry_after: None,
        };
        BatchAnswer {
            outcome,
            events,
            was_refused: false,
            do_others_arrive: false,
        }
    }

    fn again(status: u16, events: usize) -> BatchAnswer {
        BatchAnswer {
            was_refused: true,
            ..answered(status, events)
        }
    }

    /// Checks the step that follows the last of these answers.
    fn check(answers: &[BatchAnswer], expected: SplitDecision) {
        let mut splitting = SplitProgress::default();
        let policy = RetryPolicy::default();
        let follows: Vec<_> = answers
            .iter()
            .map(|answer| splitting.decide_after(*answer, &policy))
            .collect();
        assert_eq!(follows.last(), Some(&expected), "{answers:?}");
    }

    #[test]
    fn client_errors_refuse_content_except_six_about_the_endpoint() {
        let refuses: Vec<_> = (100..=999)
            .filter(|status| !refuses_content(*status))
            .collect();
        let speak: Vec<_> = refuses
            .into_iter()
            .filter(|status| (400..=499).contains(status))
            .collect();
        assert_eq!(speak, [401, 403, 404, 408, 410, 429]);
        assert!(!refuses_content(399) && !refuses_content(500));
    }

    #[test]
    fn permanent_refusal_splits_at_once_retried_one_the_second_time() {
        for status in [400, 413] {
            check(&[answered(status, 2)], SplitDecision::Split);
        }
        for status in [402, 405, 409, 415, 422, 499] {
            check(&[answered(status, 2)], SplitDecision::Judge);
            check(&[again(status, 2)], SplitDecision::Split);
        }
        for status in [200, 302, 401, 403, 404, 408, 410, 429, 500, 503] {
            check(&[again(status, 2)], SplitDecision::Judge);
        }
        let silence = AttemptOutcome::Failed(SendFailure::TimedOut);
        check(
            &[BatchAnswer {
                outcome: silence,
                ..again(0, 2)
            }],
            SplitDecision::Judge,
        );
        let unacknowledged = AttemptOutcome::Unacknowledged { status: 200 };
        check(
            &[BatchAnswer {
                outcome: unacknowledged,
                ..again(0, 2)
            }],
            SplitDecision::Judge,
        );
    }

    #[test]
    fn a_status_that_the_policy_makes_permanent_splits_at_once() {
        let policy = RetryPolicy {
            permanent_statuses: [422].into(),
            ..RetryPolicy::default()
        };
        assert_eq!(
            SplitProgress::default().decide_after(answered(422, 2), &policy),
            SplitDecision::Split
        );
        assert_eq!(
            SplitProgress::default().decide_after(answered(400, 2), &policy),
            SplitDecision::Judge
        );
    }

    #[test]
    fn a_half_splits_with_its_first_refusal_of_any_kind() {
        check(&[answered(400, 4), answered(422, 2)], SplitDecision::Split);
        check(&[answered(400, 4), answered(500, 2)], SplitDecision::Judge);
    }

    /// Halves are sent next, or one event where too few requests are left for halving.
    #[test]
    fn next_request_is_half_or_one_event_when_requests_run_short() {
        for (refused, requests_left, expected) in [
            (2, 1, 1),
            (3, 1, 1),
            (4, 2, 2),
            (4, 1, 1),
            (7, 2, 3),
            (7, 1, 1),
            (100, 6, 50),
            (100, 5, 1),
            (100, 0, 1),
        ] {
            assert_eq!(
                events_of_next_request(refused, requests_left),
                expected,
                "{refused}, {requests_left}"
            );
        }
    }

    #[test]
    fn requests_follow_each_other_until_the_last_may_begin() {
        let check = |left_ms: Option<u64>, took_ms, expected| {
            let left = left_ms.map(Duration::from_millis);
            assert_eq!(
                requests_left(left, Duration::from_millis(took_ms)),
                expected,
                "{left_ms:?}, {took_ms}"
            );
        };
        check(None, 10, 0);
        check(Some(0), 10, 1);
        check(Some(9), 10, 1);
        check(Some(10), 10, 2);
        check(Some(95), 10, 10);
        // One that took no time is taken to have taken a millisecond.
        check(Some(95), 0, 96);
        assert_eq!(requests_left(Some(Duration::MAX), Duration::ZERO), u32::MAX);
    }

    #[test]
    fn a_single_event_is_judged_by_its_own_answer() {
        check(&[again(422, 1)], SplitDecision::Judge);
        check(&[answered(400, 2), answered(400, 1)], SplitDecision::Judge);
    }

    #[test]
    fn eight_single_events_refused_alike_stop_the_splitting() {
        let split = |status| [vec![answered(400, 100)], vec![answered(status, 1); 7]].concat();
        check(&split(422), SplitDecision::Judge);
        check(
            &[split(422), vec![answered(422, 1)]].concat(),
            SplitDecision::JudgeAll,
        );
        // Not alike, or not all refused: the splitting goes on to its end.
        for other in [400, 204, 500, 404] {
            check(
                &[split(422), vec![answered(other, 1); 9]].concat(),
                SplitDecision::Judge,
            );
            check(
                &[split(422), vec![answered(other, 1), answered(422, 1)]].concat(),
                SplitDecision::Judge,
            );
        }
        check(
            &[split(422), vec![answered(204, 3), answered(422, 1)]].concat(),
            SplitDecision::Judge,
        );
        // A refused half says nothing that its events do not say.
        check(
            &[split(422), vec![answered(413, 3), answered(422, 1)]].concat(),
            SplitDecision::JudgeAll,
        );
    }

    /// Events that are published together often fail together.
    #[test]
    fn splitting_goes_on_while_other_events_arrive() {
        let amid_others = |events| BatchAnswer {
            do_others_arrive: true,
            ..answered(422, events)
        };
        let answers = [
            vec![BatchAnswer {
                do_others_arrive: true,
                ..answered(400, 100)
            }],
            vec![amid_others(1); 20],
        ];
        check(&answers.concat(), SplitDecision::Judge);
    }

    #[test]
    fn requests_of_one_event_are_never_stopped() {
        check(&[again(422, 1); 20], SplitDecision::Judge);
    }
}
