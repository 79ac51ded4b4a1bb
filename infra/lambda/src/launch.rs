//! The start of a function's process, and its end.

use std::env;
use std::io::Write;
use std::process::ExitCode;

use lambda_runtime::Error;
use posthaste_aws::telemetry::{self, TelemetrySettings};
use posthaste_aws::{AwsClients, AwsSettings, S3Store};
use tracing::Level;

use crate::environment::FunctionEnvironment;
use crate::export;

/// The variable in which Lambda says the function's `Handler`.
/// <https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html>
const HANDLER: &str = "_HANDLER";

/// The variable with the function's name, which a stack makes up: `{stack}-{logical id}-{random}`.
const FUNCTION_NAME: &str = "AWS_LAMBDA_FUNCTION_NAME";

/// The `Handler` of every function up to the release in which each had a program of its own.
const FORMER_HANDLER: &str = "bootstrap";

/// The end of a function's logical id in the template.
const LOGICAL_ID_END: &str = "Function";

/// The function that Lambda wants of this program, by the name of its `Handler`. Empty if nothing
/// says it.
///
/// An update from a release of [`FORMER_HANDLER`] changes a function's code and its handler one
/// after the other. In between the function's name tells.
pub fn handler_name() -> String {
    let handler = variable_or_empty(HANDLER);
    if handler != FORMER_HANDLER {
        return handler;
    }
    let name = variable_or_empty(FUNCTION_NAME);
    let logical_id = name
        .rsplit('-')
        .nth(1)
        .and_then(|id| id.strip_suffix(LOGICAL_ID_END));
    logical_id.map_or(handler, str::to_lowercase)
}

fn variable_or_empty(name: &str) -> String {
    env::var_os(name)
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// The end of a program that is asked for a function which it does not have.
pub fn refuse_handler(name: &str, functions: &[&str]) -> ExitCode {
    telemetry::start(&TelemetrySettings::default());
    let expected = functions.join(", ");
    log_failure(&Error::from(format!(
        "the handler {name:?} is not in this program, expected one of {expected}: correct Handler"
    )));
    ExitCode::FAILURE
}

/// Reads the environment, starts log and metrics, and runs a function. A function whose environment
/// cannot be used ends at once, with one line that says why.
///
/// The function gets its environment, the clients of this process, and the state bucket.
pub(crate) async fn launch_function<E: FunctionEnvironment>(
    run: impl AsyncFnOnce(E, AwsClients, S3Store) -> Result<(), Error>,
) -> ExitCode {
    let ended = match prepare_process() {
        Ok((environment, clients, state)) => run(environment, clients, state).await,
        Err(error) => Err(Error::from(format!(
            "failed to read the environment: {error}"
        ))),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log_failure(&error);
            ExitCode::FAILURE
        }
    }
}

/// A log that is switched off still shows why the function ended.
#[expect(clippy::disallowed_methods, reason = "Lambda reads standard error")]
fn log_failure(error: &Error) {
    if tracing::enabled!(Level::ERROR) {
        tracing::error!("{error}");
    } else {
        // Nothing can be done when standard error is closed.
        let _ = writeln!(std::io::stderr(), "{error}");
    }
}

fn prepare_process<E: FunctionEnvironment>() -> Result<(E, AwsClients, S3Store), Error> {
    let environment = E::from_env();
    // The default is for the log line about an environment that cannot be used.
    let telemetry = environment
        .as_ref()
        .map(|(common, _)| common.telemetry.clone())
        .unwrap_or_default();
    telemetry::start(&telemetry);
    let aws = AwsSettings::from_env(|name| env::var(name).ok());
    let (common, environment) = environment?;
    let clients = AwsClients::new(&aws?).with_message_groups(common.sends_message_groups);
    export::start(common.export.as_ref(), &clients);
    let state = clients.store(&common.state_bucket);
    Ok((environment, clients, state))
}
