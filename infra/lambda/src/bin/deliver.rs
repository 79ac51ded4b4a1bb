//! deliver: posts due deliveries to their endpoints, fed by the delivery queue.

// The SDK's futures lie so deep in one another that the compiler's usual limit of 128 refuses this program.
#![recursion_limit = "256"]

use std::convert::Infallible;
use std::process::ExitCode;
use std::time::Duration;

use posthaste_aws::lambda::{BatchHandler, SqsBatch, run_batches};
use posthaste_lambda::wiring::{AwsDeliver, AwsDrainPost};
use posthaste_lambda::{launch, wiring};
use posthaste_ports::BatchResponse;
use posthaste_services::DRAIN_POST_TIMEOUT;
use posthaste_system::SystemClock;

struct Handler {
    deliver: AwsDeliver,
    post: AwsDrainPost,
}

impl BatchHandler for Handler {
    async fn handle(&self, batch: SqsBatch, deadline: Duration) -> BatchResponse {
        let deadline = deadline.saturating_sub(DRAIN_POST_TIMEOUT);
        let handled = Box::pin(self.deliver.handle(batch.messages, deadline));
        // Nothing runs between invocations: late answers are heard only while this one lasts anyway.
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

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    launch(async |environment, clients, state| {
        let handler = |deliver, post| Handler { deliver, post };
        run_batches(wiring::deliver(&environment, &clients, state, handler), SystemClock).await
    })
    .await
}
