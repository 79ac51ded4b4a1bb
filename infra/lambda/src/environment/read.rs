//! Reading of an environment: the part that every function has, and the function's own.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::env;

use posthaste_aws::telemetry::{MetricsBy, TelemetrySettings};
use posthaste_core::trace::collector::ExportSettings;
use posthaste_settings::{SettingValues, table};
use tracing::level_filters::LevelFilter;

use super::variables::{EnvironmentError, EnvironmentReader};

/// The environment that every function has.
#[derive(Debug, Clone)]
pub struct CommonEnvironment {
    /// The state bucket.
    pub state_bucket: String,
    /// Whether messages name their subscription as `MessageGroupId`, so that SQS serves
    /// subscriptions fairly. That is of use only where an invocation of deliver takes one message:
    /// a message stays in flight until its invocation ends, so that in a larger batch those of
    /// quick subscriptions look as slow as their neighbours.
    pub sends_message_groups: bool,
    /// Log level, and names of metrics.
    pub telemetry: TelemetrySettings,
    /// The way of traces and metrics to a collector; `None` without one.
    pub export: Option<ExportSettings>,
}

impl CommonEnvironment {
    fn read(variables: &mut EnvironmentReader<'_>) -> Self {
        let metrics_namespace = variables.get(&table::METRICS_NAMESPACE).unwrap_or_default();
        let state_bucket = variables.get(&table::STATE_BUCKET).unwrap_or_default();
        let log_level = variables
            .get(&table::LOG_LEVEL)
            .unwrap_or(LevelFilter::INFO);
        let metrics_by = variables
            .get(&table::METRICS_BY)
            .and_then(|by| MetricsBy::from_setting(&by));
        let metrics_by = metrics_by.unwrap_or_default();
        let batch_size = variables.get(&table::DELIVER_BATCH_SIZE);
        Self {
            state_bucket,
            sends_message_groups: batch_size == Some(1),
            telemetry: TelemetrySettings {
                log_level,
                metrics_namespace,
                metrics_by,
            },
            export: table::export_settings(variables),
        }
    }
}

/// A function's own environment.
pub trait FunctionEnvironment: Sized {
    /// Reads all of the function's own variables, also after one that is refused.
    fn read_own(variables: &mut EnvironmentReader<'_>) -> Self;

    /// Reads the whole environment through `read`, which returns the value of a variable.
    fn read(
        read: &impl Fn(&str) -> Option<String>,
    ) -> Result<(CommonEnvironment, Self), EnvironmentError> {
        let mut variables = EnvironmentReader::new(read);
        let environment = (
            CommonEnvironment::read(&mut variables),
            Self::read_own(&mut variables),
        );
        variables.into_result(environment)
    }

    /// Reads the environment of this process.
    fn from_env() -> Result<(CommonEnvironment, Self), EnvironmentError> {
        // Text that is no UTF-8 is read with replacement characters, so that it is refused by its
        // name and not overlooked.
        Self::read(&|name| env::var_os(name).map(|value| value.to_string_lossy().into_owned()))
    }

    /// Names of all variables of this environment, to compare a template with.
    fn variable_names() -> BTreeSet<String> {
        let asked = RefCell::new(BTreeSet::new());
        // Only the names that were asked for matter here.
        let _ = Self::read(&|name| {
            asked.borrow_mut().insert(name.to_owned());
            None
        });
        asked.into_inner()
    }
}
