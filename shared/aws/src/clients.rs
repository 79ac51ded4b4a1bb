//! The clients of SQS and S3: made once per process, by hand, and every wait of theirs is bounded here.
//!
//! There is no `aws-config`: its chain of providers reads files and asks the instance metadata service, and costs more
//! than all the rest of a cold start.

mod connector;
pub(crate) mod failure;
mod settings;
mod untraced;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use aws_sdk_s3::config::{
    IdentityCache, Region, RequestChecksumCalculation, ResponseChecksumValidation,
    StalledStreamProtectionConfig,
};
use aws_smithy_async::rt::sleep::{SharedAsyncSleep, TokioSleep};
use aws_smithy_async::time::SystemTimeSource;
use aws_smithy_runtime_api::client::behavior_version::BehaviorVersion;
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use aws_smithy_runtime_api::client::interceptors::SharedInterceptor;
use aws_smithy_types::retry::RetryConfig;
use aws_smithy_types::timeout::TimeoutConfig;
use posthaste_ports::validate::RECEIVE_WAIT_MAX;
use posthaste_ports::{Clock, QueueName};

use crate::queue::SqsQueue;
use crate::store::S3Store;
use connector::LazyClient;
pub use settings::{AwsSettings, AwsSettingsError};
use untraced::Untraced;

/// How long a connection may take, TLS included. Within a region it takes a few milliseconds; a function with little
/// CPU needs some hundred for its first handshake.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// How long the first byte of an answer may take, the sending of the request included: 8 MiB at 1 MB/s.
/// One value for both services, so that they share a connector and with it the parsed roots.
pub const READ_TIMEOUT: Duration = Duration::from_secs(9);

/// How long one attempt may take.
pub const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long an operation may take with all its attempts: two that hang, or three that fail sooner. It is for one
/// operation, so that a service that hangs becomes an error at all. What has several one after the other, or must answer
/// by some time, bounds them itself: deliver by the parts of its invocation (`posthaste_deliver::SETTLING_TIME`, which
/// is longer than this), deadletter by what it keeps for writing, manage by a limit on each request.
pub const OPERATION_TIMEOUT: Duration = Duration::from_secs(20);

/// Most attempts of one operation.
pub const ATTEMPTS_MAX: u32 = 3;

/// The first wait between attempts, before jitter; it doubles. The SDK's second is long beside a function's work.
pub const BACKOFF_FIRST: Duration = Duration::from_millis(100);

/// The longest wait between attempts.
pub const BACKOFF_MAX: Duration = Duration::from_secs(2);

/// Makes the adapters of one process. Clones share connections.
#[derive(Debug, Clone)]
pub struct Clients {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    settings: AwsSettings,
    http: SharedHttpClient,
    sleep: SharedAsyncSleep,
    is_traced: bool,
    sqs: OnceLock<aws_sdk_sqs::Client>,
    s3: OnceLock<aws_sdk_s3::Client>,
}

/// Where the queues are. A function knows those that it may reach.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueUrls {
    /// The URL of the delivery queue.
    pub deliveries: Option<String>,
    /// The URL of the dead-letter queue.
    pub dead_letters: Option<String>,
    /// The URL of the redrive queue.
    pub redrive: Option<String>,
}

impl QueueUrls {
    /// The URL of a queue, if it is known here.
    pub fn of(&self, name: QueueName) -> Option<&str> {
        match name {
            QueueName::Deliveries => self.deliveries.as_deref(),
            QueueName::DeadLetters => self.dead_letters.as_deref(),
            QueueName::Redrive => self.redrive.as_deref(),
        }
    }
}

impl Clients {
    /// Prepares the clients. Each is made when it is first asked for, and connects at its first request.
    pub fn new(settings: &AwsSettings) -> Self {
        let sleep = SharedAsyncSleep::new(TokioSleep::new());
        let http = SharedHttpClient::new(LazyClient::new(sleep.clone()));
        let shared = Shared {
            settings: settings.clone(),
            http,
            sleep,
            is_traced: true,
            sqs: OnceLock::new(),
            s3: OnceLock::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// The same, whose messages do not tell Lambda which chain of invocations sent them. It counts each function's
    /// turns in a chain and stops the function after about 16 of them, unless its `RecursiveLoop` is `Allow`. This is
    /// for a function that sends to its own queue on purpose and sets the pace of that itself.
    /// <https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html>
    pub fn untraced(&self) -> Self {
        let Shared { settings, http, sleep, s3, .. } = &*self.shared;
        let shared = Shared {
            settings: settings.clone(),
            http: http.clone(),
            sleep: sleep.clone(),
            is_traced: false,
            sqs: OnceLock::new(),
            s3: s3.clone(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// The queue `name`, whose successors may go to the queues that `urls` knows.
    pub fn queue<C: Clock>(&self, name: QueueName, urls: QueueUrls, clock: C) -> SqsQueue<C> {
        let client = self.shared.sqs.get_or_init(|| self.shared.sqs_client());
        SqsQueue::new(client.clone(), name, urls, clock)
    }

    /// The object store in `bucket`.
    pub fn store(&self, bucket: &str) -> S3Store {
        let client = self.shared.s3.get_or_init(|| self.shared.s3_client());
        S3Store::new(client.clone(), bucket, self.shared.sleep.clone())
    }
}

impl Shared {
    fn sqs_client(&self) -> aws_sdk_sqs::Client {
        let mut config = aws_sdk_sqs::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new(self.settings.region.clone()))
            .credentials_provider(self.settings.credentials())
            // The credentials are at hand; the default cache would guard them with timers.
            .identity_cache(IdentityCache::no_cache())
            .http_client(self.http.clone())
            .sleep_impl(self.sleep.clone())
            .time_source(SystemTimeSource::new())
            .timeout_config(timeouts())
            .retry_config(retries())
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled());
        config.set_endpoint_url(self.settings.sqs_endpoint.clone().map(String::from));
        if !self.is_traced {
            config.push_interceptor(SharedInterceptor::permanent(Untraced));
        }
        aws_sdk_sqs::Client::from_conf(config.build())
    }

    fn s3_client(&self) -> aws_sdk_s3::Client {
        let mut config = aws_sdk_s3::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new(self.settings.region.clone()))
            .credentials_provider(self.settings.credentials())
            .identity_cache(IdentityCache::no_cache())
            .http_client(self.http.clone())
            .sleep_impl(self.sleep.clone())
            .time_source(SystemTimeSource::new())
            .timeout_config(timeouts())
            .retry_config(retries())
            // An emulator has no name for each bucket.
            .force_path_style(self.settings.s3_endpoint.is_some())
            // TLS guards the bytes on their way. A CRC in a trailer besides would cost CPU for each object and a
            // chunked form that not every emulator reads.
            .request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
            .response_checksum_validation(ResponseChecksumValidation::WhenRequired)
            // The timeouts bound every attempt, and the reading of a body has its own.
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled());
        config.set_endpoint_url(self.settings.s3_endpoint.clone().map(String::from));
        aws_sdk_s3::Client::from_conf(config.build())
    }
}

fn timeouts() -> TimeoutConfig {
    TimeoutConfig::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(READ_TIMEOUT)
        .operation_attempt_timeout(ATTEMPT_TIMEOUT)
        .operation_timeout(OPERATION_TIMEOUT)
        .build()
}

/// The timeouts of a receive that waits for a message: room for the longest wait. The same for every length of wait,
/// because a connector with another read timeout has its own connections.
pub(crate) fn receive_timeouts() -> TimeoutConfig {
    TimeoutConfig::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(RECEIVE_WAIT_MAX + READ_TIMEOUT)
        .operation_attempt_timeout(RECEIVE_WAIT_MAX + ATTEMPT_TIMEOUT)
        .operation_timeout(RECEIVE_WAIT_MAX + OPERATION_TIMEOUT)
        .build()
}

fn retries() -> RetryConfig {
    RetryConfig::standard()
        .with_max_attempts(ATTEMPTS_MAX)
        .with_initial_backoff(BACKOFF_FIRST)
        .with_max_backoff(BACKOFF_MAX)
}
