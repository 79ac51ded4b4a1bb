//! From requests to dollars: AWS's list prices in us-east-1, without the free tier, as of 2026.

use posthaste_core::model::STATE_OWNER_RENEWED;

use crate::bill::{Bill, Requests};
use crate::scenario::{DELIVERED, Outcome};
use crate::world::{WAKE_LOOK, WAKE_REST};

/// One SQS request of up to 64 KB, standard queues. <https://aws.amazon.com/sqs/pricing/>
pub(crate) const SQS_REQUEST: f64 = 0.40 / MILLION;

/// The same for a message with a `MessageGroupId`. AWS asks $0.10 a million more for fair queues; every
/// request for such a message is taken for one. <https://aws.amazon.com/sqs/pricing/>
pub(crate) const SQS_FAIR_REQUEST: f64 = 0.50 / MILLION;

/// One PUT or LIST of S3 Standard. <https://aws.amazon.com/s3/pricing/>
pub(crate) const S3_PUT: f64 = 5.0 / MILLION;

/// One GET of S3 Standard. <https://aws.amazon.com/s3/pricing/>
pub(crate) const S3_GET: f64 = 0.40 / MILLION;

/// One invocation. <https://aws.amazon.com/lambda/pricing/>
const INVOCATION: f64 = 0.20 / MILLION;

/// One GB for one second on arm64. <https://aws.amazon.com/lambda/pricing/>
const GB_SECOND: f64 = 0.000_013_333_4;

const MILLION: f64 = 1e6;

/// Minutes of a month of 30 days.
const MINUTES_PER_MONTH: f64 = 43_200.0;

/// Seconds of it.
pub(crate) const SECONDS_PER_MONTH: f64 = MINUTES_PER_MONTH * 60.0;

/// The template's memory, in GB.
pub(crate) const PUBLISH_GB: f64 = 0.25;
pub(crate) const DELIVER_GB: f64 = 0.5;
const WAKE_GB: f64 = 0.25;
const MONITOR_GB: f64 = 0.125;
const RECORD_GB: f64 = 1.0;

/// The assumed length of an invocation, which is not measured. S3 and SQS answer in some 10 ms, an
/// endpoint in 100 ms, and the events of one batch are posted side by side. Our own CPU is below a
/// millisecond (`tests/bench/cold_start`).
pub(crate) const PUBLISH_SECONDS: f64 = 0.025;
pub(crate) const DELIVER_SECONDS: f64 = 0.120;
const WAKE_SECONDS: f64 = 0.060;
const MERGE_SECONDS: f64 = 0.050;

/// 6 MB of records are read, written into a file, which is compressed, and put.
const RECORD_SECONDS: f64 = 0.200;

/// The monitor takes one sample while nothing is published: it reads and writes the state, and asks
/// both queues.
const MONITOR_SECONDS: f64 = 0.060;

/// Pollers that Lambda keeps on each queue while nothing is there, each in a receive that waits 20
/// s. AWS documents the first number as that of concurrent batches, and neither as a promise.
/// <https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html>
pub(crate) const POLLERS: u32 = 5;
const RECEIVES_PER_MINUTE: f64 = 3.0;

/// Queues with an event source mapping.
const QUEUES: f64 = 5.0;

/// Requests of a merge that finds nothing: the lease and the last look at what waits are read, the
/// hours of the log are listed, and the look is written.
pub(crate) const IDLE_MERGE: Requests = Requests {
    sends: 0,
    receives: 0,
    deletes: 0,
    others: 0,
    puts: 2,
    gets: 2,
};

/// Requests that a merge adds once an hour: it asks whether all five queues are empty, reads all
/// numbers of what waits, and lists what is parked and held.
pub(crate) const WAITING_LOOK: Requests = Requests {
    sends: 0,
    receives: 0,
    deletes: 0,
    others: 5,
    puts: 2,
    gets: 16,
};

/// Looks at what waits in a minute.
const WAITING_LOOKS_PER_MINUTE: f64 = 1.0 / 60.0;

/// Minutes from one run of wake that looks for work to the next, while there is none.
pub(crate) const MINUTES_BETWEEN_LOOKS: u32 = 14;

/// Merges in a minute: the template's schedule.
const MERGES_PER_MINUTE: f64 = 0.1;

/// One GB from AWS to the internet, after which AWS asks less only beyond 10 TB a month.
/// <https://aws.amazon.com/ec2/pricing/on-demand/#Data_Transfer>
const GB_OUT: f64 = 0.09;

/// Bytes that leave AWS with a delivery: an event of 1 KB, its headers, and what TLS and TCP add.
/// Assumed.
const BYTES_OUT: f64 = 1_800.0;

/// The most that files of the delivery log cost in a month of few events: one a minute is put, and
/// read by a merge.
pub(crate) const LOG_FILES_MONTH: f64 = MINUTES_PER_MONTH * (S3_PUT + S3_GET);

/// Dollars by service.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dollars {
    /// SQS.
    pub(crate) sqs: f64,
    /// S3.
    pub(crate) s3: f64,
    /// Lambda: invocations and their time.
    pub(crate) lambda: f64,
}

impl Dollars {
    /// The price of a million deliveries, at the rate of a scenario's bill.
    pub(crate) fn per_million(
        Outcome {
            bill,
            deliver_seconds,
            ..
        }: &Outcome,
    ) -> Self {
        let all = bill.requests();
        let publish = number(bill.publish_invocations) * invocation(PUBLISH_GB, PUBLISH_SECONDS);
        let deliver = number(bill.deliver_invocations) * invocation(DELIVER_GB, *deliver_seconds);
        let thousands = MILLION / DELIVERED as f64;
        Self {
            sqs: number(all.sqs()) * SQS_REQUEST * thousands,
            s3: (number(all.puts) * S3_PUT + number(all.gets) * S3_GET) * thousands,
            lambda: (publish + deliver) * thousands,
        }
    }

    /// Everything.
    pub(crate) fn total(&self) -> f64 {
        self.sqs + self.s3 + self.lambda
    }
}

/// The price that the delivery log adds to a million deliveries. A bill without retries has no
/// sends of deliver but those of records. Each file is read once more, by a merge.
pub(crate) fn log_per_million(bill: &Bill, delivered: u32) -> f64 {
    let record = bill.record;
    let sqs = number(bill.deliver.sends + record.sqs()) * SQS_REQUEST;
    let s3 = number(record.puts) * (S3_PUT + S3_GET) + number(record.gets) * S3_GET;
    let lambda = number(bill.record_invocations) * invocation(RECORD_GB, RECORD_SECONDS);
    (sqs + s3 + lambda) * MILLION / f64::from(delivered)
}

/// A renewal of the stack's claim to its state bucket.
const CLAIM: Requests = Requests {
    sends: 0,
    receives: 0,
    deletes: 0,
    others: 0,
    puts: 1,
    gets: 1,
};

/// The costs of a month in which nothing is published, by their source. `monitor` holds its
/// requests of a minute.
pub(crate) fn idle_month(monitor: Requests) -> [(&'static str, f64); 4] {
    let requests = |requests: Requests| {
        number(requests.sqs()) * SQS_REQUEST
            + number(requests.puts) * S3_PUT
            + number(requests.gets) * S3_GET
    };
    let looks = 1.0 / f64::from(MINUTES_BETWEEN_LOOKS);
    let wake = requests(WAKE_LOOK) * looks + requests(WAKE_REST) * (1.0 - looks);
    let wake = wake + invocation(WAKE_GB, WAKE_SECONDS);
    let claims = 60.0 / STATE_OWNER_RENEWED.as_secs_f64();
    let monitor =
        requests(monitor) + requests(CLAIM) * claims + invocation(MONITOR_GB, MONITOR_SECONDS);
    let merges = (requests(IDLE_MERGE) + invocation(RECORD_GB, MERGE_SECONDS)) * MERGES_PER_MINUTE;
    let merges = merges + requests(WAITING_LOOK) * WAITING_LOOKS_PER_MINUTE;
    let pollers = QUEUES * f64::from(POLLERS) * RECEIVES_PER_MINUTE * SQS_REQUEST;
    let rows = [
        ("wake", wake),
        ("monitor", monitor),
        ("merges", merges),
        ("empty receives of the five mappings", pollers),
    ];
    rows.map(|(name, minute)| (name, minute * MINUTES_PER_MONTH))
}

/// One invocation of so much memory and so long.
pub(crate) fn invocation(gb: f64, seconds: f64) -> f64 {
    INVOCATION + gb * seconds * GB_SECOND
}

fn number(count: u64) -> f64 {
    count as f64
}

/// The price of a million deliveries for what leaves AWS.
pub(crate) fn out_per_million() -> f64 {
    MILLION * BYTES_OUT / 1e9 * GB_OUT
}
