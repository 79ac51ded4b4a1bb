//! The adapters under test, and plain clients of the SDK, for an endpoint on this machine.

use aws_credential_types::Credentials;
use aws_sdk_s3::config::{BehaviorVersion, Region};
use aws_smithy_types::retry::RetryConfig;
use posthaste_aws::{AwsClients, AwsSettings};
use posthaste_tests_aws::emulator::{ACCESS_KEY, REGION};

/// The clients that a function would have, if its environment named this endpoint and batches of
/// one message.
pub(crate) fn clients(endpoint: &str) -> AwsClients {
    let variable = |name: &str| match name {
        "AWS_REGION" => Some(REGION),
        "AWS_ACCESS_KEY_ID" | "AWS_SECRET_ACCESS_KEY" => Some(ACCESS_KEY),
        "AWS_ENDPOINT_URL" => Some(endpoint),
        _ => None,
    };
    let settings = AwsSettings::from_env(|name| variable(name).map(str::to_owned));
    let clients = AwsClients::new(&settings.expect("settings that a function would have"));
    clients.with_message_groups(true)
}

/// Plain clients of the SDK, for work that the adapters do not do: they make queues and buckets,
/// and break rules.
pub(crate) struct Sdk {
    pub(crate) sqs: aws_sdk_sqs::Client,
    pub(crate) s3: aws_sdk_s3::Client,
}

impl Sdk {
    pub(crate) fn new(endpoint: &str) -> Self {
        let credentials = Credentials::new(ACCESS_KEY, ACCESS_KEY, None, None, "test");
        let http = aws_smithy_http_client::Builder::new().build_http();
        let sqs = aws_sdk_sqs::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new(REGION))
            .credentials_provider(credentials.clone())
            .endpoint_url(endpoint)
            .http_client(http.clone())
            .retry_config(RetryConfig::disabled());
        let s3 = aws_sdk_s3::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new(REGION))
            .credentials_provider(credentials)
            .endpoint_url(endpoint)
            .http_client(http)
            .force_path_style(true)
            .retry_config(RetryConfig::disabled());
        Self {
            sqs: aws_sdk_sqs::Client::from_conf(sqs.build()),
            s3: aws_sdk_s3::Client::from_conf(s3.build()),
        }
    }
}
