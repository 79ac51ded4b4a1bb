//! The clients of SQS and S3, made once per process and by hand. Each of their waits is bounded in
//! `limits`.
//!
//! There is no `aws-config`: its chain of providers reads files and asks the instance metadata
//! service, and costs more than all the rest of a cold start.

mod collector;
mod connector;
pub(crate) mod failure;
pub(crate) mod limits;
mod settings;
mod sleep;
mod stack_answers;
mod untraced;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use aws_credential_types::provider::SharedCredentialsProvider;
use aws_sdk_s3::config::{
    IdentityCache, Region, RequestChecksumCalculation, ResponseChecksumValidation,
    StalledStreamProtectionConfig,
};
use aws_smithy_async::rt::sleep::SharedAsyncSleep;
use aws_smithy_async::time::SystemTimeSource;
use aws_smithy_runtime_api::client::behavior_version::BehaviorVersion;
use aws_smithy_runtime_api::client::interceptors::SharedInterceptor;
use aws_types::SdkConfig;
use posthaste_ports::{Clock, QueueName};

use crate::queue::{QueueUrls, SqsCalls, SqsQueue, SqsSetup};
use crate::store::S3Store;
pub use collector::CollectorClient;
use connector::LazyClient;
pub use limits::{
    ATTEMPT_TIMEOUT, ATTEMPTS_MAX, BACKOFF_FIRST, BACKOFF_MAX, CONNECT_TIMEOUT, OPERATION_TIMEOUT,
    READ_TIMEOUT,
};
use limits::{request_timeouts, retry_config};
pub use settings::{AwsSettings, AwsSettingsError};
use sleep::PunctualSleep;
pub use stack_answers::StackAnswers;
use untraced::TraceHeaderRemover;

/// Makes the adapters of one process. Clones share connections.
#[derive(Debug, Clone)]
pub struct AwsClients {
    shared: Arc<SharedClients>,
}

#[derive(Debug, Clone)]
struct SharedClients {
    settings: AwsSettings,
    /// The part of the configuration that both services have.
    config: SdkConfig,
    sleep: SharedAsyncSleep,
    is_traced: bool,
    sends_groups: bool,
    sqs: OnceLock<aws_sdk_sqs::Client>,
    s3: OnceLock<aws_sdk_s3::Client>,
}

impl AwsClients {
    /// Prepares the clients. Each is made when it is first asked for, and connects at its first
    /// request.
    pub fn new(settings: &AwsSettings) -> Self {
        let sleep = SharedAsyncSleep::new(PunctualSleep::default());
        let shared = SharedClients {
            settings: settings.clone(),
            config: sdk_config(settings, &sleep),
            sleep,
            is_traced: true,
            sends_groups: false,
            sqs: OnceLock::new(),
            s3: OnceLock::new(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Clients whose messages do not tell Lambda which chain of invocations sent them. Lambda
    /// counts each function's turns in a chain and stops the function after about 16 of them,
    /// unless its `RecursiveLoop` is `Allow`. Use them in a function that sends to its own queue on
    /// purpose and sets the pace of that itself.
    /// <https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html>
    pub fn without_tracing(&self) -> Self {
        let shared = SharedClients {
            is_traced: false,
            sqs: OnceLock::new(),
            ..SharedClients::clone(&self.shared)
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Clients whose messages carry their `MessageGroupId`, or carry none, as at the start. SQS
    /// serves groups fairly, and bills each request as one to a fair queue.
    /// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues.html>
    pub fn with_message_groups(&self, sends_groups: bool) -> Self {
        let shared = SharedClients {
            sends_groups,
            ..SharedClients::clone(&self.shared)
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// The queue `name`, whose successors may go to the queues that `urls` knows.
    pub fn queue<C: Clock>(&self, name: QueueName, urls: QueueUrls, clock: C) -> SqsQueue<C> {
        let client = self.shared.sqs.get_or_init(|| self.shared.sqs_client());
        let calls = SqsCalls {
            client: client.clone(),
            name,
            urls: Arc::new(urls),
            sends_groups: self.shared.sends_groups,
        };
        SqsQueue::new(calls, clock)
    }

    /// The requests that make a queue.
    pub fn queue_setup(&self) -> SqsSetup {
        let client = self.shared.sqs.get_or_init(|| self.shared.sqs_client());
        SqsSetup::new(client.clone())
    }

    /// The object store in `bucket`.
    pub fn store(&self, bucket: &str) -> S3Store {
        let client = self.shared.s3.get_or_init(|| self.shared.s3_client());
        S3Store::new(client.clone(), bucket, self.shared.sleep.clone())
    }

    /// The way to a collector of traces and metrics.
    pub fn collector(&self) -> CollectorClient {
        CollectorClient::new(self.shared.sleep.clone())
    }

    /// The way of responses to CloudFormation.
    pub fn stack_answers(&self) -> StackAnswers {
        StackAnswers::new(self.shared.sleep.clone())
    }
}

fn sdk_config(settings: &AwsSettings, sleep: &SharedAsyncSleep) -> SdkConfig {
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new(settings.region.clone()))
        .credentials_provider(SharedCredentialsProvider::new(settings.credentials.clone()))
        // The credentials are known from the start; the default cache would guard them with timers.
        .identity_cache(IdentityCache::no_cache())
        .http_client(LazyClient::new(sleep.clone()))
        .sleep_impl(sleep.clone())
        .time_source(SystemTimeSource::new())
        .timeout_config(request_timeouts(Duration::ZERO))
        .retry_config(retry_config())
        // The timeouts bound every attempt, and the reading of a body has its own.
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
        .build()
}

impl SharedClients {
    fn sqs_client(&self) -> aws_sdk_sqs::Client {
        let mut config = aws_sdk_sqs::config::Builder::from(&self.config);
        config.set_endpoint_url(self.settings.sqs_endpoint.clone());
        if !self.is_traced {
            config.push_interceptor(SharedInterceptor::permanent(TraceHeaderRemover));
        }
        aws_sdk_sqs::Client::from_conf(config.build())
    }

    fn s3_client(&self) -> aws_sdk_s3::Client {
        let mut config = aws_sdk_s3::config::Builder::from(&self.config)
            // An emulator has no name for each bucket.
            .force_path_style(self.settings.s3_endpoint.is_some())
            // TLS guards the bytes on their way. A CRC in a trailer besides would cost CPU for each
            // object and a chunked form that not every emulator reads.
            .request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
            .response_checksum_validation(ResponseChecksumValidation::WhenRequired);
        config.set_endpoint_url(self.settings.s3_endpoint.clone());
        aws_sdk_s3::Client::from_conf(config.build())
    }
}
