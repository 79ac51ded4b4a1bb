//! monitor with the custom resources of its stack that it answers for: the claim to the state, and
//! the queue of slow deliveries.

use std::time::Duration;

use lambda_runtime::Error;
use posthaste_aws::lambda::{
    CustomResource, ResourceAttributes, Scheduled, StackChange, StackResources,
};
use posthaste_aws::queue::QueueSetup;
use posthaste_ports::{Clock, ObjectStore};

use crate::made_queue::MadeQueues;
use crate::ownership::Owned;

/// The type of the queue in the template. All others are the claim.
const QUEUE: &str = "Custom::Queue";

/// A function that answers for custom resources.
#[derive(Debug)]
pub struct Answering<R, S, Q, C> {
    pub(crate) owned: Owned<R, S, C>,
    queues: MadeQueues<Q, C>,
}

impl<R, S, Q, C> Answering<R, S, Q, C> {
    /// `owned`, which answers for its claim, and for what `queues` makes.
    pub fn new(owned: Owned<R, S, C>, queues: MadeQueues<Q, C>) -> Self {
        Self { owned, queues }
    }
}

impl<R, S, Q, C> Scheduled for Answering<R, S, Q, C>
where
    R: Scheduled,
    S: ObjectStore + 'static,
    Q: QueueSetup,
    C: Clock,
{
    async fn run(&self, deadline: Duration) -> Result<(), Error> {
        self.owned.run(deadline).await
    }
}

impl<R, S, Q, C> StackResources for Answering<R, S, Q, C>
where
    R: Scheduled,
    S: ObjectStore + 'static,
    Q: QueueSetup,
    C: Clock,
{
    fn id(&self, resource: &CustomResource) -> String {
        if resource.kind == QUEUE {
            MadeQueues::<Q, C>::id(&resource.properties)
        } else {
            self.owned.id()
        }
    }

    /// A queue outlives its stack: what waits in it was acknowledged.
    async fn change(
        &self,
        resource: &CustomResource,
        change: StackChange,
        stack: &str,
        deadline: Duration,
    ) -> Result<ResourceAttributes, Error> {
        match change {
            change if resource.kind != QUEUE => {
                self.owned.change(change, stack, deadline).await?;
                Ok(ResourceAttributes::new())
            }
            StackChange::Delete { .. } => Ok(ResourceAttributes::new()),
            StackChange::Create | StackChange::Update => {
                Ok(self.queues.make(&resource.properties, deadline).await?)
            }
        }
    }
}
