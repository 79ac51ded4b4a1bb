//! The start of a function's process, and its end.

use std::env;
use std::io::Write;
use std::process::ExitCode;

use lambda_runtime::Error;
use posthaste_aws::telemetry::{self, MetricsBy, TelemetrySettings};
use posthaste_aws::{AwsSettings, AwsSettingsError, Clients};
use tracing::Level;
use tracing::level_filters::LevelFilter;

use crate::environment::{Environment, EnvironmentError};

/// Error of a function that does not start.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error("failed to read the environment: {0}")]
    Environment(#[from] EnvironmentError),
    #[error("failed to read the environment: {0}")]
    Aws(#[from] AwsSettingsError),
}

/// Reads the environment, starts log and metrics, and runs a function. A function whose environment cannot be
/// used ends at once, with one line that says why.
pub async fn launch<E: Environment>(run: impl AsyncFnOnce(E, Clients) -> Result<(), Error>) -> ExitCode {
    let ended = match start() {
        Ok((environment, clients)) => run(environment, clients).await,
        Err(error) => Err(Error::from(error)),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&error);
            ExitCode::FAILURE
        }
    }
}

/// A log that is switched off still shows why the function ended.
fn report(error: &Error) {
    if tracing::enabled!(Level::ERROR) {
        tracing::error!("{error}");
    } else {
        // Nothing can be done when standard error is closed.
        let _ = writeln!(std::io::stderr(), "{error}");
    }
}

fn start<E: Environment>() -> Result<(E, Clients), StartError> {
    let environment = E::from_env();
    let telemetry =
        environment.as_ref().map_or_else(|_| telemetry_default(), |e| e.common().telemetry.clone());
    telemetry::start(&telemetry);
    let aws = AwsSettings::from_env(|name| env::var(name).ok());
    Ok((environment?, Clients::new(&aws?)))
}

/// The settings for the log line about an environment that cannot be used.
fn telemetry_default() -> TelemetrySettings {
    TelemetrySettings {
        log_level: LevelFilter::INFO,
        metrics_namespace: String::new(),
        metrics_by: MetricsBy::Stack,
    }
}
