//! The loop that every Lambda program runs: take an invocation, answer it, write its metrics.

use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use lambda_runtime::{Context, Diagnostic, Error, LambdaEvent, service_fn};
use posthaste_core::model::with_causes;
use posthaste_ports::Clock;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::sqs_event::EventError;
use crate::telemetry;

/// Why an invocation failed. Lambda counts it in its own `Errors` metric.
#[derive(thiserror::Error)]
pub(super) enum Failure {
    /// The event of a queue could not be worked on.
    #[error(transparent)]
    Event(#[from] EventError),
    /// The work itself failed.
    #[error("the run failed")]
    Run(#[source] Error),
    /// The work panicked.
    #[error("the run failed")]
    Panicked(#[source] Panicked),
}

/// A handler panicked. The panic hook has logged the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the handler panicked")]
pub(super) struct Panicked;

/// Answers one invocation after the other, until the Runtime API is gone. Metrics are written
/// before the answer is sent, whatever the answer is: after it, Lambda may freeze the process at
/// any moment.
pub(super) async fn answer_each<E, A, C>(
    clock: C,
    answer: impl AsyncFn(E, &Context) -> Result<A, Failure>,
) -> Result<(), Error>
where
    E: DeserializeOwned,
    A: Serialize,
    C: Clock,
{
    lambda_runtime::run(service_fn(async |event: LambdaEvent<E>| {
        telemetry::begin(clock.now());
        let answer = answer(event.payload, &event.context).await;
        telemetry::end(clock.now());
        telemetry::export().await;
        answer
    }))
    .await
}

/// Does the work; a panic ends the work and nothing else.
pub(super) async fn contained<T>(work: impl Future<Output = T>) -> Result<T, Panicked> {
    // State of the work is dropped with it, or is shared behind locks that ignore poison.
    AssertUnwindSafe(work)
        .catch_unwind()
        .await
        .map_err(|_| Panicked)
}

impl Failure {
    const fn kind(&self) -> &'static str {
        match self {
            Self::Event(_) => "BadEvent",
            Self::Run(_) => "RunFailed",
            Self::Panicked(_) => "Panicked",
        }
    }
}

/// The error with all that caused it, because Lambda's runtime logs errors by their `Debug`.
impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&with_causes(self))
    }
}

impl From<Failure> for Diagnostic {
    fn from(failure: Failure) -> Self {
        Self {
            error_type: failure.kind().to_owned(),
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
        struct Sampling(#[source] Panicked);

        let diagnostic = Diagnostic::from(Failure::Run(Box::new(Sampling(Panicked))));
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
        assert_eq!(contained(after_waiting).await, Err(Panicked));
        assert_eq!(contained(async { 1 }).await, Ok(1));
    }
}
