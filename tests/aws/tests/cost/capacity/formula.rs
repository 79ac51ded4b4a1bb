//! Rules of thumb, and what follows from a measured run for 5,000 events a second.

use super::case::{Case, Measured};
use super::lambda::QUICK;
use super::queue::Order;
use crate::prices::{
    DELIVER_SECONDS, PUBLISH_SECONDS, S3_GET, S3_PUT, SQS_FAIR_REQUEST, SQS_REQUEST, invocation,
};

/// `RequestsPerLinkStart` and `WaitingPerConnection`, and the most of one subscription: three
/// quarters of `RequestsPerLinkMax`.
const AT_ONCE_START: usize = 10;
const WAITING_PER_CONNECTION: usize = 20;
const AT_ONCE_MAX: usize = 48;

/// Synchronous requests that Lambda takes in a second for each concurrent invocation of a function,
/// however short they are. <https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>
const REQUESTS_OF_ONE_PER_SECOND: f64 = 10.0;

/// The load that is planned for, in events a second.
pub(super) const EVENTS_PER_SECOND: f64 = 5_000.0;

const SECONDS_PER_MONTH: f64 = 30.0 * 86_400.0;

const MILLION: f64 = 1e6;

/// Deliveries a second of invocations that each make so many requests at once, with full batches.
pub(super) fn per_second(invocations: usize, batch: usize, answer_seconds: f64) -> f64 {
    invocations as f64 * batch as f64 / (answer_seconds + own_seconds())
}

/// The same where an invocation has more requests for one subscription than may be open at once.
pub(super) fn per_second_of_one(invocations: usize, requests: usize, answer_seconds: f64) -> f64 {
    let rounds = requests.div_ceil(at_once(requests)) as f64;
    invocations as f64 * requests as f64 / (rounds * answer_seconds + own_seconds())
}

/// The requests of one subscription that are open at once, of so many in an invocation.
fn at_once(requests: usize) -> usize {
    let waiting = requests.saturating_sub(AT_ONCE_START);
    (AT_ONCE_START + waiting / WAITING_PER_CONNECTION).min(AT_ONCE_MAX)
}

/// The time of an invocation beside that of the endpoint.
fn own_seconds() -> f64 {
    DELIVER_SECONDS - QUICK.as_secs_f64()
}

/// The concurrency that a function needs for so many synchronous requests a second, each of so many
/// seconds.
fn concurrency(requests_per_second: f64, seconds: f64) -> f64 {
    let busy = requests_per_second * seconds;
    busy.max(requests_per_second / REQUESTS_OF_ONE_PER_SECOND)
        .ceil()
}

/// Needs of a load, and its price.
#[derive(Debug, Clone, Copy)]
pub(super) struct Needs {
    /// Concurrency.
    pub(super) publish: f64,
    pub(super) deliver: f64,
    /// Messages.
    pub(super) in_flight: f64,
    pub(super) gb: f64,
    /// Dollars.
    pub(super) million: f64,
    pub(super) month: f64,
}

impl Needs {
    /// The needs of [`EVENTS_PER_SECOND`], in proportion to a run.
    pub(super) fn of(case: &Case, measured: &Measured) -> Self {
        let events = case.events as f64;
        let per_event = |count: f64| count / events;
        let invocations = per_event(f64::from(measured.invocations.count));
        let publishes = 1.0 / case.per_request as f64;
        let publish = concurrency(EVENTS_PER_SECOND * publishes, PUBLISH_SECONDS);
        let deliver = (EVENTS_PER_SECOND * invocations * measured.seconds()).ceil();
        let request = match case.order {
            Order::Plain => SQS_REQUEST,
            Order::Fair => SQS_FAIR_REQUEST,
        };
        let dollars = per_event(measured.queue.requests as f64) * request
            + publishes * invocation(case.publish_gb, PUBLISH_SECONDS)
            + invocations * invocation(case.deliver_gb, measured.seconds());
        Self {
            publish,
            deliver,
            in_flight: deliver * measured.batch(),
            gb: publish * case.publish_gb + deliver * case.deliver_gb,
            million: dollars * MILLION,
            month: dollars * EVENTS_PER_SECOND * SECONDS_PER_MONTH,
        }
    }
}

/// Dollars of a million deliveries, from the queue to the endpoints: SQS, S3 and deliver.
pub(super) fn delivering(case: &Case, measured: &Measured) -> f64 {
    let request = match case.order {
        Order::Plain => SQS_REQUEST,
        Order::Fair => SQS_FAIR_REQUEST,
    };
    let sqs = measured.queue.requests as f64 * request
        + measured.slow_queue.requests as f64 * SQS_FAIR_REQUEST;
    let s3 = measured.gets as f64 * S3_GET + measured.puts as f64 * S3_PUT;
    let invocations = measured.invocations;
    let lambda = f64::from(invocations.count) * invocation(case.deliver_gb, measured.seconds());
    let deliveries = (case.events * case.subscribers) as f64;
    (sqs + s3 + lambda) / deliveries * MILLION
}

/// Short requests need a tenth of their number as concurrency, and long ones their time.
#[test]
fn short_requests_need_a_tenth_of_their_number_in_concurrency() {
    let check = |requests, seconds, expected: f64| {
        assert!(
            (concurrency(requests, seconds) - expected).abs() < 1e-9,
            "{requests} of {seconds} s"
        );
    };
    check(5_000.0, 0.025, 500.0);
    check(5_000.0, 0.2, 1_000.0);
    check(51.0, 0.025, 6.0);
}
