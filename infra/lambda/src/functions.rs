//! The seven functions, each from the start of its process to its end.

use std::convert::Infallible;
use std::process::ExitCode;
use std::time::Duration;

use lambda_runtime::Error;
use posthaste_aws::lambda::{
    BatchHandler, ScheduledFunction, SqsBatch, run_batches, run_batches_and_schedule, run_http,
    run_scheduled, run_scheduled_and_stack_changes,
};
use posthaste_core::lane::DeliveryLane;
use posthaste_ports::BatchResponse;
use posthaste_services::DRAIN_POST_TIMEOUT;
use posthaste_system::SystemClock;

use crate::both_queues::queue_name_of;
use crate::environment::DeliverEnvironment;
use crate::launch::launch_function;
use crate::wiring::{self, AwsDeliver, AwsDrainPost, AwsWake};

/// publish: takes events over HTTP, behind a Function URL.
pub async fn run_publish() -> ExitCode {
    launch_function(async |environment, clients, state| {
        run_http(
            wiring::publish_router(&environment, &clients, state),
            SystemClock,
        )
        .await
    })
    .await
}

/// deliver: posts due deliveries to their endpoints, fed by the delivery queue.
pub async fn run_deliver() -> ExitCode {
    launch_function(async |environment: DeliverEnvironment, clients, state| {
        let slow_url = environment.slow_deliveries_queue_url.as_deref();
        let slow_queue = slow_url.map(|url| queue_name_of(url).to_owned());
        let handler = wiring::deliver_handler(&environment, &clients, state, |deliver, post| {
            DeliverBatches {
                deliver,
                slow_queue,
                post,
            }
        });
        run_batches("deliver", handler, SystemClock).await
    })
    .await
}

/// deadletter: writes dead letters into their bucket, fed by the dead-letter queue and by the
/// redrive queue.
pub async fn run_deadletter() -> ExitCode {
    launch_function(async |environment, clients, state| {
        run_batches(
            "deadletter",
            wiring::dead_letters_handler(&environment, &clients, &state),
            SystemClock,
        )
        .await
    })
    .await
}

/// monitor: samples the queues, for a minute while they are not calm, and writes the pressure,
/// started by a schedule once a minute. CloudFormation starts it too, for the stack's claim to the
/// state bucket.
pub async fn run_monitor() -> ExitCode {
    launch_function(async |environment, clients, state| {
        let answers = clients.stack_answers();
        let monitor = wiring::monitor_function(&environment, &clients, state)?;
        // Boxed, as the future of a request is large.
        Box::pin(run_scheduled_and_stack_changes(
            monitor,
            answers,
            SystemClock,
        ))
        .await
    })
    .await
}

/// record: writes records into the delivery log, fed by the records queue, and merges the log's
/// files, started by a schedule.
pub async fn run_record() -> ExitCode {
    launch_function(async |environment, clients, state| {
        let (files, merges) = wiring::record_functions(&environment, &clients, state);
        run_batches_and_schedule("record", files, merges, SystemClock).await
    })
    .await
}

/// manage: topics, subscriptions, dead letters and the delivery log over HTTP, behind a Function
/// URL of its own.
pub async fn run_manage() -> ExitCode {
    launch_function(async |environment, clients, state| {
        run_http(
            wiring::manage_router(&environment, &clients, state),
            SystemClock,
        )
        .await
    })
    .await
}

/// wake: sends the parked deliveries whose minute has come, started by a schedule once a minute.
pub async fn run_wake() -> ExitCode {
    launch_function(async |environment, clients, state| {
        run_scheduled(
            WakeMinute(wiring::wake_function(&environment, &clients, state)),
            SystemClock,
        )
        .await
    })
    .await
}

/// deliver's batches, and its report of how fast they drain.
struct DeliverBatches {
    deliver: AwsDeliver,
    /// The name of the slow lane's queue.
    slow_queue: Option<String>,
    post: AwsDrainPost,
}

impl BatchHandler for DeliverBatches {
    async fn handle(&self, batch: SqsBatch, deadline: Duration) -> BatchResponse {
        let deadline = deadline.saturating_sub(DRAIN_POST_TIMEOUT);
        let lane = if self.slow_queue.as_ref() == Some(&batch.queue) {
            DeliveryLane::Slow
        } else {
            DeliveryLane::Quick
        };
        let handled = Box::pin(self.deliver.handle_in(lane, batch.messages, deadline));
        // Nothing runs between invocations: late responses are heard only while this one lasts.
        let heard = async {
            self.deliver.hear_late_answers().await;
            std::future::pending::<Infallible>().await
        };
        let response = tokio::select! {
            biased;
            response = handled => response,
            never = Box::pin(heard) => match never {},
        };
        Box::pin(self.post.post_if_due()).await;
        response
    }
}

/// wake's work of one minute.
struct WakeMinute(AwsWake);

impl ScheduledFunction for WakeMinute {
    async fn run(&self, deadline: Duration) -> Result<(), Error> {
        Box::pin(self.0.run_until(deadline)).await?;
        Ok(())
    }
}
