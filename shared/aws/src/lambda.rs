//! What every Lambda program does around its handler: understand the event, tell the handler until when it may work,
//! answer in the shape that Lambda expects, and write the metrics of each invocation. No rule is decided here.

use std::future::Future;
use std::time::Duration;

use posthaste_ports::queue::{BatchResponse, ReceivedMessage};

mod batch;
mod deadline;
mod http;
mod invocations;
mod scheduled;

pub use batch::run_batches;
pub use deadline::{ANSWER_MARGIN, LATE_MAX};
pub use http::run_http;
pub use scheduled::run_scheduled;

/// The messages of one invocation by the event source mapping of a queue.
#[derive(Debug, Clone)]
pub struct SqsBatch {
    /// The queue's name on AWS: the last segment of its ARN.
    pub queue: String,
    /// The messages, as they were received.
    pub messages: Vec<ReceivedMessage>,
}

/// A function that works on messages of a queue.
pub trait BatchHandler: Send + Sync + 'static {
    /// Works on a batch, answers by `deadline`, a time of the clock's `monotonic`, and names the messages for which
    /// nothing durable was done. The time to write metrics and to tell Lambda is taken off the deadline already. Who
    /// answers later than [`LATE_MAX`] after it is dropped, and every message of the batch is handed back.
    fn handle(&self, batch: SqsBatch, deadline: Duration) -> impl Future<Output = BatchResponse> + Send;
}

/// A function that a schedule starts.
pub trait Scheduled: Send + Sync + 'static {
    /// Works once, until `deadline`, a time of the clock's `monotonic`. An error fails the invocation, so that
    /// Lambda's own error metric shows it.
    fn run(&self, deadline: Duration) -> impl Future<Output = Result<(), lambda_runtime::Error>> + Send;
}
