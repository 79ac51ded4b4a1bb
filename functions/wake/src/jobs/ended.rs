//! The end of a job that the next run goes on with.

use std::error::Error;

/// Logs a job that failed, or was given up when its time was over.
pub(super) fn log<E: Error + 'static>(job: &'static str, ended: Option<Result<(), E>>) {
    match ended {
        Some(Ok(())) => {}
        Some(Err(error)) => {
            tracing::error!(job, error = &error as &dyn Error, "failed, the next run goes on");
        }
        None => tracing::error!(job, "not done in time, the next run goes on"),
    }
}
