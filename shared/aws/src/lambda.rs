//! The frame of every Lambda program around its handler: it reads the event, sets the handler's
//! deadline, responds in the form that Lambda expects, and writes the metrics of each invocation.
//! No rule is decided here.

mod batch;
mod deadline;
mod http;
mod invocations;
mod queue_and_schedule;
mod scheduled;
mod sqs_event;
mod stack_changes;

pub use batch::{BatchHandler, run_batches};
pub use deadline::{ANSWER_MARGIN, LATE_MAX};
pub use http::run_http;
pub use queue_and_schedule::run_batches_and_schedule;
pub use scheduled::{ScheduledFunction, run_scheduled};
pub use sqs_event::SqsBatch;
pub use stack_changes::{
    CustomResource, ResourceAttributes, StackChange, StackResources,
    run_scheduled_and_stack_changes,
};
