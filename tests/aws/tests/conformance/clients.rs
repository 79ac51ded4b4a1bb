//! The adapters under test, for an endpoint on this machine.

use posthaste_aws::{AwsSettings, Clients};
use posthaste_tests_aws::emulator::{ACCESS_KEY, REGION};

/// The clients that a function would have, if its environment named this endpoint.
pub(crate) fn clients(endpoint: &str) -> Clients {
    let variable = |name: &str| match name {
        "AWS_REGION" => Some(REGION),
        "AWS_ACCESS_KEY_ID" | "AWS_SECRET_ACCESS_KEY" => Some(ACCESS_KEY),
        "AWS_ENDPOINT_URL" => Some(endpoint),
        _ => None,
    };
    let settings = AwsSettings::from_env(|name| variable(name).map(str::to_owned));
    Clients::new(&settings.expect("settings that a function would have"))
}
