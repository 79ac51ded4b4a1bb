//! The loop that every Lambda program runs: take an invocation, respond, write its metrics.

use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use lambda_runtime::{Context, Diagnostic, Error, LambdaEvent, service_fn};
use posthaste_core::model::with_causes;
use posthaste_ports::Clock;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::sqs_event::SqsEventError;
use crate::telemetry;

/// Reasons for which an invocation failed. Lambda counts it in its own `Errors` metric.
#[derive(thiserror::Error)]
pub(super) enum InvocationFailure {
    /// The event of a queue could not be worked on.
    #[error(transparent)]
    Event(#[from] SqsEventError),
    /// The work itself failed.
    #[error("the run failed")]
    Run(#[source] Error),
    /// The work panicked.
    #[error("the run failed")]
    Panicked(#[source] HandlerPanicked),
}

/// A handler panicked. The panic hook has logged the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the handler panicked")]
pub(super) struct HandlerPanicked;

/// Responds to one invocation after the other, until the Runtime API is gone. Metrics are written
/// before the response is sent, whatever the response is: after it, Lambda may freeze the process
/// at any moment.
pub(super) async fn answer_each<E, A, C>(
    clock: C,
    answer: impl AsyncFn(E, &Context) -> Result<A, InvocationFailure>,
) -> Result<(), Error>
where
    E: DeserializeOwned,
    A: Serialize,
    C: Clock,
{
    lambda_runtime::run(service_fn(async |event: LambdaEvent<E>| {
        telemetry::begin_invocation(clock.now());
        let answer = answer(event.payload, &event.context).await;
        telemetry::end_invocation(clock.now());
        telemetry::run_export().await;
        answer
    }))
    .await
}

/// Does the work; a panic ends the work and nothing else.
pub(super) async fn contain_panic<T>(work: impl Future<Output = T>) -> Result<T, HandlerPanicked> {
    // State of the work is dropped with it, or is shared behind locks that ignore poison.
    AssertUnwindSafe(work)
        .catch_unwind()
        .await
        .map_err(|_| HandlerPanicked)
}

impl InvocationFailure {
    const fn error_type(&self) -> &'static str {
        match self {
            Self::Event(_) => "BadEvent",
            Self::Run(_) => "RunFailed",
            Self::Panicked(_) => "Panicked",
        }
    }
}

/// The error with all that caused it, because Lambda's runtime logs errors by their `Debug`.
impl fmt::Debug for InvocationFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&with_causes(self))
    }
}

impl From<InvocationFailure> for Diagnostic {
    fn from(failure: InvocationFailure) -> Self {
        Self {
            error_type: failure.error_type().to_owned(),
            error_message: format!("{failure:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_everything_that_caused_it() {
        #[derive(Debug, thiserror::Error)]
        #[error("failed to sample")]
        struct Sampling(#[source] HandlerPanicked);

        let diagnostic =
            Diagnostic::from(InvocationFailure::Run(Box::new(Sampling(HandlerPanicked))));
        assert_eq!(diagnostic.error_type, "RunFailed");
        assert_eq!(
            diagnostic.error_message,
            "the run failed: failed to sample: the handler panicked"
        );
    }

    #[tokio::test]
    async fn a_panic_is_contained_wherever_it_happens() {
        let yes = || true;
        let after_waiting = async {
            tokio::task::yield_now().await;
            assert!(!yes(), "on purpose");
            1
        };
        assert_eq!(contain_panic(after_waiting).await, Err(HandlerPanicked));
        assert_eq!(contain_panic(async { 1 }).await, Ok(1));
    }
}
