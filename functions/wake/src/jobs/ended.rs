//! The end of a job that the next run goes on with.

use std::error::Error;

use posthaste_ports::Ports;

use crate::run::WakeRun;

/// Works to the end, or until the run's time is over. Logs a job that failed or had no time.
pub(super) async fn run_and_log<P: Ports, E: Error + 'static>(
    run: WakeRun<'_, P>,
    job: &'static str,
    work: impl Future<Output = Result<(), E>>,
) {
    match run.in_time(work).await {
        Some(Ok(())) => {}
        Some(Err(error)) => {
            run.note_work();
            tracing::error!(
                job,
                error = &error as &dyn Error,
                "a job failed, the next run goes on"
            );
        }
        None => {
            run.note_work();
            tracing::error!(job, "a job was not done in time, the next run goes on");
        }
    }
}
