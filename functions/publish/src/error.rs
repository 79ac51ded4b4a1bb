//! The reasons for which a request is not published, and the problems that producers get as
//! answers.

use std::fmt::Display;
use std::time::Duration;

use http::StatusCode;
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::events::PublishInputError;
use posthaste_core::model::{HOPS_HEADER, HopsError};
use posthaste_core::pressure::{PressureCause, explain_cause};
use posthaste_core::stored::IdempotencyKeyError;
use posthaste_ports::{ErrorKind, PortError};
use posthaste_services::wrong_keys::TOO_MANY_RETRY_AFTER;
use posthaste_services::{FanOutError, RegistryError};

use crate::body::BodyError;
use crate::headers::{IDEMPOTENCY_KEY_HEADER, NOT_BEFORE_HEADER, TIER_HEADER, TIME_TO_LIVE_HEADER};
use crate::not_before::NotBeforeError;
use crate::time_to_live::TimeToLiveError;

/// Time after which a producer may try again after a failure that gives no time itself.
pub const RETRY_AFTER_DEFAULT: Duration = Duration::from_secs(5);

/// The answer to a producer that back pressure turned away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackPressureResponse {
    /// Time after which to try again.
    pub retry_after: Duration,
    /// The value of the header `Posthaste-Pressure`.
    pub header: Option<String>,
    /// The resource behind it; `None` where nothing delays producers any more and the wait only
    /// runs out.
    pub pressing: Option<PressureCause>,
}

/// Why a request was not published. But for [`Write`](Self::Write), nothing of it was accepted.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// There is no such topic.
    #[error("there is no such topic")]
    UnknownTopic,
    /// The topic was deleted while the request waited. Its producer has shown a key of it.
    #[error("the topic was deleted while the request waited")]
    DeletedTopic,
    /// No key at all.
    #[error("the publish key is missing")]
    NoKey,
    /// A key that is none of the topic's.
    #[error("the publish key is wrong")]
    Unauthorized,
    /// A wrong key, while too many others wait for their answers.
    #[error("too many wrong keys are being answered")]
    TooManyKeys,
    /// A token that a key of the topic signed, and whose time is over.
    #[error("the token has expired")]
    Expired,
    /// The topic could not be looked up, so it is not known whether there is one.
    #[error("failed to look the topic up")]
    Registry(#[source] RegistryError),
    /// Back pressure refuses this producer.
    #[error("refused by back pressure")]
    Refused(Box<BackPressureResponse>),
    /// Back pressure asks this producer to wait by itself, instead of letting its acknowledgement
    /// wait.
    #[error("asked by back pressure to come back later")]
    Advised(Box<BackPressureResponse>),
    /// The body was not read.
    #[error("failed to read the request")]
    Body(#[source] BodyError),
    /// The request does not carry valid events.
    #[error("the request is not valid")]
    Input(#[source] PublishInputError),
    /// The client closed its side of the connection while its acknowledgement waited.
    #[error("the client closed its side while its acknowledgement waited")]
    Closed,
    /// The hops are no number, or say that the endpoints form a loop.
    #[error("the hops are refused")]
    Hops(#[source] HopsError),
    /// The tier that the producer declares does not exist.
    #[error("there is no such tier")]
    Tier,
    /// The time to live that the producer asks for is not valid.
    #[error("the time to live is not valid")]
    TimeToLive(#[source] TimeToLiveError),
    /// The time before which the events are not to be sent is not valid.
    #[error("the time before which the events are not sent is not valid")]
    NotBefore(#[source] NotBeforeError),
    /// The idempotency key is not valid.
    #[error("the idempotency key is not valid")]
    Key(#[source] IdempotencyKeyError),
    /// The idempotency key was used for another request.
    #[error("the idempotency key was used for another request")]
    Reused,
    /// A request with the same idempotency key is still being published.
    #[error("a request with this idempotency key is still being published")]
    InProgress {
        /// The time after which it is over, or its claim has lapsed.
        retry_after: Duration,
    },
    /// The idempotency key could not be claimed, so it is not known whether it was used.
    #[error("failed to claim the idempotency key")]
    Claim(#[source] PortError),
    /// Not all of it was written.
    #[error("failed to write the deliveries")]
    Write(#[source] FanOutError),
}

impl PublishError {
    /// Tells whether a part of posthaste failed. A refusal under pressure is no failure but the
    /// purpose.
    pub fn is_ours(&self) -> bool {
        match self {
            Self::Registry(_) | Self::Claim(_) => true,
            Self::Write(error) => error.port_error().is_some(),
            _ => false,
        }
    }

    /// Tells whether a key was tried that opens nothing.
    pub(crate) fn is_guess(&self) -> bool {
        matches!(self, Self::UnknownTopic | Self::Unauthorized)
    }

    /// The problem that the producer gets as its answer.
    pub fn problem(&self) -> ApiProblem {
        match self {
            // All alike: whoever has no key of a topic does not learn whether there is one.
            Self::DeletedTopic => ApiProblem::new(ProblemKind::UnknownTopic)
                .detail("the topic was deleted while the request waited; nothing was accepted"),
            Self::UnknownTopic | Self::NoKey | Self::Unauthorized => {
                ApiProblem::new(ProblemKind::Unauthorized).detail(
                    "expected a topic that exists, and a key of it in aeg-sas-key or as \
                     Authorization: Bearer, or a token signed with one in aeg-sas-token",
                )
            }
            Self::TooManyKeys => ApiProblem::new(ProblemKind::Unauthorized)
                .status(StatusCode::TOO_MANY_REQUESTS)
                .detail("too many wrong keys are being answered")
                .retry_after(TOO_MANY_RETRY_AFTER),
            Self::Expired => ApiProblem::new(ProblemKind::Unauthorized)
                .detail("the token is signed with a key of this topic, and its time is over: make a new one"),
            Self::Registry(_) => ApiProblem::new(ProblemKind::Unavailable)
                .detail("the topic could not be looked up; nothing was accepted")
                .retry_after(RETRY_AFTER_DEFAULT),
            Self::Refused(away) => away.problem("nothing was accepted"),
            Self::Advised(away) => away
                .problem("nothing was accepted, publish the request again after the wait")
                .status(StatusCode::TOO_MANY_REQUESTS),
            Self::Closed => ApiProblem::new(ProblemKind::BackPressure)
                .detail(
                    "the connection was closed for sending while its acknowledgement waited, as by a client \
                     that is gone; nothing was accepted",
                )
                .retry_after(RETRY_AFTER_DEFAULT),
            Self::Body(error) => body_problem(error),
            Self::Input(error) => input_problem(error),
            Self::Key(error) => {
                ApiProblem::new(ProblemKind::BadRequest).member(IDEMPOTENCY_KEY_HEADER).detail(error.to_string())
            }
            Self::Hops(error) => {
                let (kind, header) = match error {
                    HopsError::Loop => (ProblemKind::LoopDetected, HOPS_HEADER),
                    HopsError::NotANumber(header) => (ProblemKind::BadRequest, *header),
                };
                let problem = ApiProblem::new(kind).member(header);
                problem.detail(format!("{error}; nothing was accepted"))
            }
            Self::Tier => ApiProblem::new(ProblemKind::BadRequest)
                .member(TIER_HEADER)
                .detail("expected internal, standard or bulk; nothing was accepted"),
            Self::TimeToLive(error) => ApiProblem::new(ProblemKind::BadRequest)
                .member(TIME_TO_LIVE_HEADER)
                .detail(format!("{error}; nothing was accepted")),
            Self::NotBefore(error) => ApiProblem::new(ProblemKind::BadRequest)
                .member(NOT_BEFORE_HEADER)
                .detail(format!("{error}; nothing was accepted")),
            Self::Reused => ApiProblem::new(ProblemKind::IdempotencyKeyReused)
                .member(IDEMPOTENCY_KEY_HEADER)
                .detail("this Idempotency-Key came with another request before; nothing was accepted"),
            Self::InProgress { retry_after } => ApiProblem::new(ProblemKind::IdempotencyKeyInUse)
                .member(IDEMPOTENCY_KEY_HEADER)
                .detail("the same request is still being published; ask again for its outcome")
                .retry_after(*retry_after),
            Self::Claim(_) => ApiProblem::new(ProblemKind::Unavailable)
                .detail("the Idempotency-Key could not be looked up; nothing was accepted")
                .retry_after(RETRY_AFTER_DEFAULT),
            Self::Write(error) => write_problem(error),
        }
    }
}

impl BackPressureResponse {
    fn problem(&self, outcome: &str) -> ApiProblem {
        let problem = ApiProblem::new(ProblemKind::BackPressure).retry_after(self.retry_after);
        match &self.pressing {
            Some(pressing) => problem
                .under_pressure(
                    pressing.resource.resource,
                    pressing.resource.effective_level(),
                )
                .detail(format!("{}; {outcome}", explain_cause(pressing))),
            None => problem.detail(format!(
                "nothing delays requests any more and the wait becomes shorter by itself; {outcome}"
            )),
        }
    }
}

fn write_problem(error: &FanOutError) -> ApiProblem {
    let Some(port_error) = error.port_error() else {
        return ApiProblem::new(ProblemKind::TooLarge).detail(format!(
            "scheduled events: {error}; nothing was accepted, send fewer of them at once"
        ));
    };
    let (kind, retry_after) = match port_error.kind {
        // A message over a limit is a fault of this program, and trying again does not mend it.
        ErrorKind::Invalid => {
            return ApiProblem::new(ProblemKind::Internal)
                .detail("not every delivery could be stored");
        }
        ErrorKind::Full => (ProblemKind::StorageFull, RETRY_AFTER_DEFAULT),
        ErrorKind::Throttled {
            retry_after: Some(wait),
        } => (ProblemKind::Unavailable, wait),
        _ => (ProblemKind::Unavailable, RETRY_AFTER_DEFAULT),
    };
    let detail = if error.sent_nothing() {
        "the deliveries could not be stored; nothing was accepted"
    } else {
        "not every delivery could be stored; publish the request again, which may duplicate events"
    };
    ApiProblem::new(kind)
        .detail(detail)
        .retry_after(retry_after)
}

/// A problem whose detail is the error's text.
fn problem_with(error: &impl Display, kind: ProblemKind) -> ApiProblem {
    ApiProblem::new(kind).detail(error.to_string())
}

fn body_problem(error: &BodyError) -> ApiProblem {
    match error {
        BodyError::TooLarge | BodyError::UnpackedTooLarge => {
            problem_with(error, ProblemKind::TooLarge)
        }
        BodyError::TimedOut(_) => problem_with(error, ProblemKind::RequestTimeout),
        BodyError::Broken(_) | BodyError::NotGzip(_) => {
            problem_with(error, ProblemKind::BadRequest)
        }
        BodyError::Crowded => ApiProblem::new(ProblemKind::BackPressure)
            .detail("too many bytes are on their way already; nothing was accepted")
            .retry_after(RETRY_AFTER_DEFAULT),
    }
}

fn input_problem(error: &PublishInputError) -> ApiProblem {
    match error {
        PublishInputError::Body(_) => problem_with(error, ProblemKind::BadRequest),
        PublishInputError::Syntax { index, member, .. } => {
            let problem = problem_with(error, ProblemKind::BadRequest).index(*index);
            match member {
                Some(member) => problem.member(member),
                None => problem,
            }
        }
        PublishInputError::Event { index, error } => {
            let problem = problem_with(error, ProblemKind::BadEvent).index(*index);
            match &error.member {
                Some(member) => problem.member(member),
                None => problem,
            }
        }
        PublishInputError::RequestTooLarge { .. }
        | PublishInputError::TooManyEvents { .. }
        | PublishInputError::EnvelopesTooLarge => problem_with(error, ProblemKind::TooLarge),
        PublishInputError::EventTooLarge { index, .. } => {
            problem_with(error, ProblemKind::TooLarge).index(*index)
        }
        PublishInputError::UnsupportedMediaType { .. } => {
            problem_with(error, ProblemKind::UnsupportedMediaType)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_that_does_not_arrive_in_time_is_a_request_timeout() {
        let late = PublishError::Body(BodyError::TimedOut(Duration::from_mins(1))).problem();
        assert_eq!(
            (late.status.as_u16(), late.kind.title()),
            (408, "Request Timeout")
        );
        assert_eq!(late.detail.as_deref(), Some("body: expected within 60 s"));
    }
}
