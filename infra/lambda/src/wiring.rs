//! The functions over SQS and S3: each gets its queue, store and client. `posthaste serve` does the
//! same over the embedded adapters. Nothing here waits for the network.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::Response;
use posthaste_aws::lambda::BatchHandler;
use posthaste_aws::queue::SqsSetup;
use posthaste_aws::{AwsClients, QueueUrls, S3Store, SqsQueue};
use posthaste_console::{ConsoleState, VisitorAccess};
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::circuit::HealthSettings;
use posthaste_core::model::{LOG_OBJECT_BYTES_MAX, PublishUrls, REQUEST_BYTES_MAX};
use posthaste_core::pressure::SettingsError;
use posthaste_deadletter::{DeadLetterPorts, DeadLetters};
use posthaste_deliver::{Deliver, DeliverPorts};
use posthaste_http::ClientSettings;
use posthaste_manage::{BegunRequests, DeliveryLog, Manage, RequestCaches};
use posthaste_monitor::{Monitor, MonitorPorts};
use posthaste_ports::{Entropy, NoMachine, PortBundle, QueueName};
use posthaste_publish::{BodyBudget, Publish, TarpitTurns};
use posthaste_record::{
    AsideStore, HealthPorts, LogRecorder, RecordPorts, RecordSettings, SummaryStore, WaitingPorts,
};
use posthaste_services::{
    ActivityNotes, ArrivalTracker, DrainMeter, DrainPost, DrainReports, LinkHealth, MemoryReliever,
    PressureReader, SlowLane, SlowTargetCache, TopicRegistry, WaitingBook, WakeSignaller,
};
use posthaste_system::{SystemClock, SystemEntropy, resident_bytes};
use posthaste_wake::{Wake, WakePorts};

use crate::account::{
    AwsExaminer, DEAD_LETTERS_VISIBILITY, DELIVERIES_VISIBILITY, RECORDS_VISIBILITY,
    REDRIVE_VISIBILITY,
};
use crate::both_queues::{BothQueues, OneQueue, QueueHandler};
use crate::custom_resources::CustomResourceFunction;
use crate::environment::{
    DeadLetterEnvironment, DeliverEnvironment, LOG_DELAY, ManageEnvironment, MonitorEnvironment,
    PublishEnvironment, RecordEnvironment, WakeEnvironment,
};
use crate::export;
use crate::log_files::{MergeFiles, WriteFiles};
use crate::made_queue::MadeQueues;
use crate::ownership::OwnedFunction;
use crate::redelivery_backoff::{RedeliveryBackoff, SourceQueue};
use crate::sampling::{InvocationSampling, MINUTE};
use crate::webhooks::LazyWebhooks;

/// Greatest age of the cached pressure. The monitor writes every ten seconds here at most, so that
/// more reads would cost requests and bring no news.
const PRESSURE_MAX_AGE: Duration = Duration::from_secs(5);

/// wake looks topics up a few times a minute, for replays, held deliveries and notices; a stale
/// topic would mislead it.
const WAKE_TOPIC_MAX_AGE: Duration = Duration::ZERO;

/// monitor looks the topic of its notices up only when there is something to tell.
const MONITOR_TOPIC_MAX_AGE: Duration = Duration::ZERO;

/// Idle connections that deliver keeps to endpoints; each is a file descriptor.
const IDLE_CONNECTIONS_MAX: usize = 128;

/// Time between two refreshes of a live page of the console. Each of them costs a request and some
/// reads of S3, for every page that is open.
const CONSOLE_REFRESH: Duration = Duration::from_secs(30);

type AwsQueue = SqsQueue<SystemClock>;
type AwsSlowLane = SlowLane<AwsQueue, S3Store, SystemClock>;
type AwsWebhooks = LazyWebhooks<SystemClock>;

/// The adapters on AWS, which every function runs on.
pub type AwsPorts =
    PortBundle<AwsQueue, S3Store, S3Store, S3Store, AwsWebhooks, SystemClock, SystemEntropy>;

/// deliver, as it is wired here.
pub type AwsDeliver = Deliver<AwsPorts>;

/// A handler of messages whose failures rest.
pub type AwsBackoff<H> = RedeliveryBackoff<H, AwsQueue, SystemClock>;

/// The report of this process's drain rate to the monitor.
pub type AwsDrainPost = DrainPost<S3Store, SystemClock>;

/// deadletter over one queue.
pub type AwsDeadLetters = OneQueue<AwsPorts>;

/// wake, as it is wired here.
pub type AwsWake = Wake<AwsPorts>;

/// monitor, as it is wired here.
pub type AwsMonitor = Monitor<AwsPorts, NoMachine, DrainReports<S3Store, SystemClock>>;

/// monitor, sampling while its stack owns the state, with the custom resources of the stack.
pub type AwsSampling = CustomResourceFunction<
    InvocationSampling<AwsMonitor, SystemClock>,
    S3Store,
    SqsSetup,
    SystemClock,
>;

/// publish, as the routes of its Function URL.
pub fn publish_router(
    environment: &PublishEnvironment,
    clients: &AwsClients,
    state: S3Store,
) -> Router {
    let urls = QueueUrls::from([(
        QueueName::Deliveries,
        environment.deliveries_queue_url.clone(),
    )]);
    let records = environment.records_queue_url.clone().map(|url| {
        let urls = QueueUrls::from([(QueueName::Records, url)]);
        clients.queue(QueueName::Records, urls, SystemClock)
    });
    let registry = TopicRegistry::new(state.clone(), SystemClock, environment.registry_max_age);
    // Only publish reads the pressure here. There are no names and connections of endpoints to give
    // up.
    let reliever =
        MemoryReliever::new(SystemClock, resident_bytes).with_cache("topics", registry.clone());
    let publish = Publish::<AwsPorts> {
        deliveries: clients.queue(QueueName::Deliveries, urls, SystemClock),
        slow_lane: slow_lane(
            environment.slow_deliveries_queue_url.as_ref(),
            clients,
            &state,
        ),
        records,
        registry,
        payloads: state.clone(),
        pressure: PressureReader::new(state, SystemClock, PRESSURE_MAX_AGE).with_reliever(reliever),
        clock: SystemClock,
        entropy: SystemEntropy,
        activity: ActivityNotes::default(),
        // Lambda gives an instance one request at a time.
        bodies: BodyBudget::new(REQUEST_BYTES_MAX),
        advice: TarpitTurns::default(),
        wrong_keys: posthaste_services::WrongKeys::default(),
        traces: export::traces(),
        settings: environment.settings,
    };
    posthaste_publish::router(Arc::new(publish)).fallback(not_found)
}

/// manage, as the routes of its Function URL.
pub fn manage_router(
    environment: &ManageEnvironment,
    clients: &AwsClients,
    state: S3Store,
) -> Router {
    let urls = QueueUrls::from([(
        QueueName::Deliveries,
        environment.deliveries_queue_url.clone(),
    )]);
    // A handshake comes once, so that an idle connection would be of no use.
    let client = ClientSettings {
        idle_max: 0,
        ..environment.client.clone()
    };
    let slow_url = environment.slow_deliveries_queue_url.as_deref();
    let account = AwsExaminer::new(
        clients.queue_setup(),
        &environment.deliveries_queue_url,
        slow_url,
        LazyWebhooks::new(client.clone(), SystemClock),
    );
    let access = Arc::new(VisitorAccess::new(
        state.clone(),
        SystemClock,
        SystemEntropy,
        environment.admin_key.clone(),
    ));
    let manage = Manage::<AwsPorts> {
        links: link_health(&state, &environment.links),
        state,
        dead_letters: clients.store(&environment.dead_letter_bucket),
        log: DeliveryLog::with_summaries(
            clients.store(&environment.log_bucket),
            SummaryStore::in_log(clients.store(&environment.log_bucket)),
        ),
        deliveries: clients.queue(QueueName::Deliveries, urls, SystemClock),
        slow_deliveries: slow_queue(environment.slow_deliveries_queue_url.as_ref(), clients),
        webhooks: LazyWebhooks::new(client, SystemClock),
        clock: SystemClock,
        entropy: SystemEntropy,
        admin_key: environment.admin_key.clone(),
        wrong_keys: posthaste_services::WrongKeys::default(),
        activity: ActivityNotes::default(),
        address_policy: environment.client.addresses.clone(),
        examiner: Some(Arc::new(account)),
        own_publish_urls: PublishUrls::default()
            .with_base(environment.settings.publish_url.clone()),
        settings: environment.settings.clone(),
        work: BegunRequests::looking_beside_answers(),
        caches: RequestCaches::default(),
    };
    let manage = Arc::new(manage);
    if !environment.console {
        return posthaste_manage::router(manage);
    }
    let console = ConsoleState::new(posthaste_manage::unguarded_router(Arc::clone(&manage)))
        .with_dashboard(environment.dashboard_url.clone())
        .with_refresh(CONSOLE_REFRESH);
    posthaste_manage::router_beside(manage, posthaste_console::router(access, console))
}

/// deliver with its queue: the handler that `handler` makes of the function and of the report of
/// its drain rate.
pub fn deliver_handler<H: BatchHandler>(
    environment: &DeliverEnvironment,
    clients: &AwsClients,
    state: S3Store,
    handler: impl FnOnce(AwsDeliver, AwsDrainPost) -> H,
) -> AwsBackoff<H> {
    let mut urls = QueueUrls::from([
        (
            QueueName::Deliveries,
            environment.deliveries_queue_url.clone(),
        ),
        (
            QueueName::DeadLetters,
            environment.dead_letters_queue_url.clone(),
        ),
        (QueueName::Records, environment.records_queue_url.clone()),
    ]);
    let slow_url = environment.slow_deliveries_queue_url.as_deref();
    urls.extend(slow_url.map(|url| (QueueName::SlowDeliveries, url.to_owned())));
    let client = ClientSettings {
        idle_max: IDLE_CONNECTIONS_MAX,
        ..environment.client.clone()
    };
    let drain = DrainMeter::default();
    let instance = SystemEntropy.uuid().to_string();
    let queue = clients.queue(QueueName::Deliveries, urls.clone(), SystemClock);
    let slow_queue =
        slow_url.map(|_| clients.queue(QueueName::SlowDeliveries, urls.clone(), SystemClock));
    let quick = Some((environment.deliveries_queue_url.as_str(), queue.clone()));
    let sources = quick.into_iter().chain(slow_url.zip(slow_queue.clone()));
    let sources = sources.map(|(url, queue)| SourceQueue::new(url, queue, DELIVERIES_VISIBILITY));
    let sources = sources.collect();
    let ports = DeliverPorts {
        queue,
        slow_queue,
        records: clients.queue(QueueName::Records, urls, SystemClock),
        state: state.clone(),
        registry: TopicRegistry::new(state.clone(), SystemClock, environment.registry_max_age),
        links: link_health(&state, &environment.links),
        webhook: LazyWebhooks::new(client, SystemClock),
        clock: SystemClock,
        entropy: SystemEntropy,
        drain: drain.clone(),
    };
    let deliver = Deliver::new(ports, environment.settings.clone()).with_traces(export::traces());
    let post = DrainPost::new(drain, state, SystemClock, &instance);
    RedeliveryBackoff::new(handler(deliver, post), sources, SystemClock)
}

/// deadletter, over both of its queues.
///
/// Messages carry no trace header here. While the bucket refuses, a letter is sent to deadletter's
/// own queue many times, at last every 15 minutes, for as long as its subscription allows. Lambda
/// would take that for a loop after about 16 turns, some hours into an outage, and the letter would
/// end in the redrive queue under a wrong reason.
pub fn dead_letters_handler(
    environment: &DeadLetterEnvironment,
    clients: &AwsClients,
    state: &S3Store,
) -> AwsBackoff<BothQueues<AwsDeadLetters>> {
    let urls = QueueUrls::from([
        (
            QueueName::Deliveries,
            environment.deliveries_queue_url.clone(),
        ),
        (
            QueueName::DeadLetters,
            environment.dead_letters_queue_url.clone(),
        ),
        (QueueName::Redrive, environment.redrive_queue_url.clone()),
        (QueueName::Records, environment.records_queue_url.clone()),
    ]);
    let clients = clients.without_tracing();
    let registry = TopicRegistry::new(state.clone(), SystemClock, environment.registry_max_age);
    let [deliveries, dead_letters, redrive, records] = [
        QueueName::Deliveries,
        QueueName::DeadLetters,
        QueueName::Redrive,
        QueueName::Records,
    ]
    .map(|name| clients.queue(name, urls.clone(), SystemClock));
    let dead_letters_url = &environment.dead_letters_queue_url;
    let redrive_url = &environment.redrive_queue_url;
    let [of_dead_letters, of_redrive] = [
        (QueueName::DeadLetters, &dead_letters, dead_letters_url),
        (QueueName::Redrive, &redrive, redrive_url),
    ]
    .map(|(source, queue, url)| {
        let ports = DeadLetterPorts {
            queue: queue.clone(),
            source,
            records: records.clone(),
            delivery_log: environment.delivery_log,
            missed_bytes_max: environment.missed_bytes_max,
            deliveries: deliveries.clone(),
            state: state.clone(),
            bucket: clients.store(&environment.dead_letter_bucket),
            registry: registry.clone(),
            book: ArrivalTracker::new(state.clone(), SystemClock),
            clock: SystemClock,
            entropy: SystemEntropy,
        };
        QueueHandler::new(url, OneQueue(DeadLetters::new(ports)))
    });
    let both = BothQueues::new(of_dead_letters, of_redrive);
    let sources = vec![
        SourceQueue::new(dead_letters_url, dead_letters, DEAD_LETTERS_VISIBILITY),
        SourceQueue::new(redrive_url, redrive, REDRIVE_VISIBILITY),
    ];
    RedeliveryBackoff::new(both, sources, SystemClock)
}

/// wake, without the right to delete old payloads: the state bucket's lifecycle does that.
pub fn wake_function(
    environment: &WakeEnvironment,
    clients: &AwsClients,
    state: S3Store,
) -> AwsWake {
    let urls = QueueUrls::from([(
        QueueName::Deliveries,
        environment.deliveries_queue_url.clone(),
    )]);
    Wake::new(WakePorts {
        deliveries: clients.queue(QueueName::Deliveries, urls, SystemClock),
        slow_lane: slow_lane(
            environment.slow_deliveries_queue_url.as_ref(),
            clients,
            &state,
        ),
        state: state.clone(),
        dead_letters: clients.store(&environment.dead_letter_bucket),
        log: DeliveryLog::new(clients.store(&environment.log_bucket)),
        log_delay: LOG_DELAY,
        registry: TopicRegistry::new(state.clone(), SystemClock, WAKE_TOPIC_MAX_AGE),
        links: link_health(&state, &environment.links),
        pressure: PressureReader::new(state, SystemClock, PRESSURE_MAX_AGE),
        activity: ActivityNotes::default(),
        clock: SystemClock,
        entropy: SystemEntropy,
    })
    .leaving_payloads()
    .with_settings(environment.settings.clone())
}

/// monitor, sampling for the length of an invocation.
pub fn monitor_function(
    environment: &MonitorEnvironment,
    clients: &AwsClients,
    state: S3Store,
) -> Result<AwsSampling, SettingsError> {
    let urls = QueueUrls::from([
        (
            QueueName::Deliveries,
            environment.deliveries_queue_url.clone(),
        ),
        (
            QueueName::DeadLetters,
            environment.dead_letters_queue_url.clone(),
        ),
    ]);
    let ports = MonitorPorts {
        deliveries: clients.queue(QueueName::Deliveries, urls.clone(), SystemClock),
        slow_lane: slow_lane(
            environment.slow_deliveries_queue_url.as_ref(),
            clients,
            &state,
        ),
        dead_letters: clients.queue(QueueName::DeadLetters, urls, SystemClock),
        state: state.clone(),
        probe: NoMachine,
        clock: SystemClock,
        drain: DrainReports::new(state.clone(), SystemClock),
        registry: TopicRegistry::new(state.clone(), SystemClock, MONITOR_TOPIC_MAX_AGE),
        entropy: SystemEntropy,
    };
    let pressure = &environment.settings.pressure;
    let monitor = Monitor::new(ports, environment.settings.clone())?;
    // With nothing to sample, one look per invocation is enough.
    let interval = if pressure.enable_resource_monitoring {
        pressure.interval
    } else {
        MINUTE
    };
    let sampling = InvocationSampling::new(monitor, interval, SystemClock);
    let stack = environment.stack.clone();
    let bucket = state.bucket().to_owned();
    let owned = OwnedFunction::new(sampling, stack, bucket, state, SystemClock);
    let queues = MadeQueues::new(clients.queue_setup(), SystemClock);
    Ok(CustomResourceFunction::new(owned, queues))
}

/// record, with its queue and its schedule. Old files are left to the bucket's lifecycle.
///
/// As those of deadletter, messages carry no trace header: one of a newer version goes back into
/// the queue until the newer version runs, and Lambda would take that for a loop.
pub fn record_functions(
    environment: &RecordEnvironment,
    clients: &AwsClients,
    state: S3Store,
) -> (AwsBackoff<WriteFiles<AwsPorts>>, MergeFiles<AwsPorts>) {
    let urls = QueueUrls::from([(QueueName::Records, environment.records_queue_url.clone())]);
    let clients = clients.without_tracing();
    let records = clients.queue(QueueName::Records, urls, SystemClock);
    let log = clients
        .store(&environment.log_bucket)
        .with_objects_up_to(LOG_OBJECT_BYTES_MAX);
    let arrivals = ArrivalTracker::new(state.clone(), SystemClock).with_counting();
    let health = HealthPorts {
        arrivals,
        wake: WakeSignaller::new(Arc::new(state.clone()), SystemClock),
        delayed_after: environment.links.arrivals.delayed_after,
    };
    let deliveries_url = environment.deliveries_queue_url.as_deref();
    let others = [
        (
            QueueName::SlowDeliveries,
            &environment.slow_deliveries_queue_url,
        ),
        (QueueName::DeadLetters, &environment.dead_letters_queue_url),
        (QueueName::Redrive, &environment.redrive_queue_url),
    ];
    let others = others
        .into_iter()
        .filter_map(|(name, url)| queue_if_given(&clients, name, url.as_deref()));
    let waiting = WaitingPorts {
        book: WaitingBook::new(state.clone(), SystemClock),
        deliveries: queue_if_given(&clients, QueueName::Deliveries, deliveries_url),
        others: others.collect(),
    };
    let ports = RecordPorts {
        records: records.clone(),
        state,
        health: Some(health),
        waiting: Some(waiting),
        aside: AsideStore::in_log(log.clone()),
        summaries: SummaryStore::in_log(log.clone()),
        log,
        clock: SystemClock,
        entropy: SystemEntropy,
    };
    let record = Arc::new(LogRecorder::new(ports, RecordSettings::default().on_aws()));
    let source = SourceQueue::new(&environment.records_queue_url, records, RECORDS_VISIBILITY);
    let files = RedeliveryBackoff::new(WriteFiles(Arc::clone(&record)), vec![source], SystemClock);
    (files, MergeFiles(record))
}

fn queue_if_given(clients: &AwsClients, name: QueueName, url: Option<&str>) -> Option<AwsQueue> {
    let urls = QueueUrls::from([(name, url?.to_owned())]);
    Some(clients.queue(name, urls, SystemClock))
}

/// The delivery queue of the slow lane, where it is named.
fn slow_queue(url: Option<&String>, clients: &AwsClients) -> Option<AwsQueue> {
    let urls = QueueUrls::from([(QueueName::SlowDeliveries, url?.clone())]);
    Some(clients.queue(QueueName::SlowDeliveries, urls, SystemClock))
}

/// The slow lane, where its queue is named.
fn slow_lane(url: Option<&String>, clients: &AwsClients, state: &S3Store) -> Option<AwsSlowLane> {
    Some(SlowLane {
        queue: slow_queue(url, clients)?,
        lanes: SlowTargetCache::new(Arc::new(state.clone()), SystemClock),
    })
}

/// The state of unhealthy links, as this process sees them.
fn link_health(state: &S3Store, settings: &HealthSettings) -> LinkHealth<S3Store, SystemClock> {
    LinkHealth::new(state.clone(), SystemClock, settings.clone())
}

/// The response of publish to any other path. In `posthaste serve` manage's routes end with the
/// same.
async fn not_found() -> Response<Body> {
    ApiProblem::new(ProblemKind::NotFound)
        .into_response()
        .map(Body::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::FunctionEnvironment;
    use http::{Request, StatusCode};
    use posthaste_aws::AwsSettings;
    use tower::ServiceExt;

    /// The required variables have values, the optional ones have none.
    fn variable(name: &str) -> Option<String> {
        let value = match name {
            "STATE_BUCKET" => "state",
            "DELIVERIES_QUEUE_URL" | "DEADLETTERS_QUEUE_URL" | "RECORDS_QUEUE_URL" => {
                "http://127.0.0.1:1/000000000000/queue"
            }
            "AWS_REGION" | "AWS_ACCESS_KEY_ID" | "AWS_SECRET_ACCESS_KEY" => "anything",
            _ => return None,
        };
        Some(value.to_owned())
    }

    fn clients() -> (AwsClients, S3Store) {
        let clients = AwsClients::new(&AwsSettings::from_env(variable).unwrap());
        let state = clients.store("state");
        (clients, state)
    }

    async fn check(method: &str, path: &str, status: StatusCode) {
        let (clients, state) = clients();
        let router = publish_router(
            &PublishEnvironment::read(&variable).unwrap().1,
            &clients,
            state,
        );
        let request = Request::builder()
            .method(method)
            .uri(path)
            .body(Body::empty())
            .unwrap();
        let response = router.oneshot(request).await.unwrap();
        assert_eq!(response.status(), status);
        assert_eq!(
            response.headers()["content-type"],
            "application/problem+json"
        );
    }

    #[tokio::test]
    async fn whoever_asks_publish_for_something_else_gets_a_problem() {
        check("GET", "/", StatusCode::NOT_FOUND).await;
        check("POST", "/topics/orders", StatusCode::NOT_FOUND).await;
        check(
            "GET",
            "/topics/orders/events",
            StatusCode::METHOD_NOT_ALLOWED,
        )
        .await;
    }

    #[tokio::test]
    async fn a_monitor_that_is_switched_off_looks_once_an_invocation() {
        let check = |profile: &'static str, secs| {
            let read = |name: &str| match name {
                "PRESSURE_PROFILE" => Some(profile.to_owned()),
                name => variable(name),
            };
            let (clients, state) = clients();
            let sampling =
                monitor_function(&MonitorEnvironment::read(&read).unwrap().1, &clients, state)
                    .unwrap();
            assert_eq!(
                sampling.owned.run.interval,
                Duration::from_secs(secs),
                "{profile}"
            );
        };
        check("scaled", 10);
        check("off", 60);
    }
}
