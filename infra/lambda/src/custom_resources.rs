//! monitor with the custom resources of its stack: the claim to the state, and the queue of slow
//! deliveries.

use std::time::Duration;

use lambda_runtime::Error;
use posthaste_aws::lambda::{
    CustomResource, ResourceAttributes, ScheduledFunction, StackChange, StackResources,
};
use posthaste_aws::queue::QueueSetup;
use posthaste_ports::{Clock, ObjectStore};

use crate::made_queue::MadeQueues;
use crate::ownership::OwnedFunction;

/// The type of the queue in the template. All others are the claim.
const QUEUE: &str = "Custom::Queue";

/// A function with custom resources of its stack.
#[derive(Debug)]
pub struct CustomResourceFunction<R, S, Q, C> {
    pub(crate) owned: OwnedFunction<R, S, C>,
    queues: MadeQueues<Q, C>,
}

impl<R, S, Q, C> CustomResourceFunction<R, S, Q, C> {
    /// `owned`, which has the claim, and the queues that `queues` makes.
    pub fn new(owned: OwnedFunction<R, S, C>, queues: MadeQueues<Q, C>) -> Self {
        Self { owned, queues }
    }
}

impl<R, S, Q, C> ScheduledFunction for CustomResourceFunction<R, S, Q, C>
where
    R: ScheduledFunction,
    S: ObjectStore + 'static,
    Q: QueueSetup,
    C: Clock,
{
    async fn run(&self, deadline: Duration) -> Result<(), Error> {
        self.owned.run(deadline).await
    }
}

impl<R, S, Q, C> StackResources for CustomResourceFunction<R, S, Q, C>
where
    R: ScheduledFunction,
    S: ObjectStore + 'static,
    Q: QueueSetup,
    C: Clock,
{
    fn physical_id(&self, resource: &CustomResource) -> String {
        if resource.kind == QUEUE {
            MadeQueues::<Q, C>::queue_id(&resource.properties)
        } else {
            self.owned.claim_id()
        }
    }

    /// A queue outlives its stack: the messages in it were acknowledged.
    async fn apply_change(
        &self,
        resource: &CustomResource,
        change: StackChange,
        stack: &str,
        deadline: Duration,
    ) -> Result<ResourceAttributes, Error> {
        match change {
            change if resource.kind != QUEUE => {
                self.owned.change_claim(change, stack, deadline).await?;
                Ok(ResourceAttributes::new())
            }
            StackChange::Delete { .. } => Ok(ResourceAttributes::new()),
            StackChange::Create | StackChange::Update => Ok(self
                .queues
                .make_queue(&resource.properties, deadline)
                .await?),
        }
    }
}

#[cfg(test)]
mod tests {
    use posthaste_aws::queue::QueueAttributes;
    use posthaste_core::model::StateOwner;
    use posthaste_core::model::Timestamp;
    use posthaste_core::stored::layout::OWNER;
    use posthaste_ports::PortError;
    use posthaste_testkit::ManualClock;
    use posthaste_testkit::memory::MemoryStore;
    use serde_json::json;

    use super::*;

    const LATER: Duration = Duration::from_mins(1);

    struct Idle;

    impl ScheduledFunction for Idle {
        async fn run(&self, _: Duration) -> Result<(), Error> {
            Ok(())
        }
    }

    /// Takes every request.
    struct Taking;

    impl QueueSetup for Taking {
        async fn redrive_allow_policy(&self, _: &str) -> Result<Option<String>, PortError> {
            Ok(None)
        }

        async fn create_queue(&self, name: &str) -> Result<String, PortError> {
            Ok(name.to_owned())
        }

        async fn set_attributes(&self, _: &str, _: QueueAttributes) -> Result<(), PortError> {
            Ok(())
        }
    }

    fn answering(
        store: &MemoryStore,
    ) -> CustomResourceFunction<Idle, MemoryStore, Taking, ManualClock> {
        let clock = ManualClock::new(Timestamp::from_millis(1_700_000_000_000));
        let bucket = "state".to_owned();
        let owned = OwnedFunction::new(Idle, None, bucket, store.clone(), clock.clone());
        CustomResourceFunction::new(owned, MadeQueues::new(Taking, clock))
    }

    fn queue() -> CustomResource {
        CustomResource {
            kind: QUEUE.to_owned(),
            properties: json!({
                "QueueName": "slow", "QueueArn": "arn:slow", "RedriveQueueUrl": "redrive",
                "Attributes": {}, "DeliverConcurrencies": ["5", "2"],
            }),
        }
    }

    fn deleted(id: &str) -> StackChange {
        StackChange::Delete { id: id.to_owned() }
    }

    #[tokio::test]
    async fn queue_is_made_beside_the_claim_and_never_deleted() {
        let store = MemoryStore::default();
        let answering = answering(&store);
        let queue = queue();
        assert_eq!(answering.physical_id(&queue), "slow");
        let made = answering
            .apply_change(&queue, StackChange::Create, "stack", LATER)
            .await;
        assert_eq!(made.unwrap()["DeliverConcurrency"], 7);
        let left = answering
            .apply_change(&queue, deleted("slow"), "stack", LATER)
            .await;
        assert_eq!(left.unwrap(), ResourceAttributes::new());
        assert!(store.get(OWNER).await.unwrap().is_none());
    }

    /// The claim is meant even if a former template names no type.
    #[tokio::test]
    async fn any_other_resource_is_the_claim() {
        let store = MemoryStore::default();
        let answering = answering(&store);
        let claim = CustomResource::default();
        assert_eq!(answering.physical_id(&claim), "claim:state");
        let made = answering
            .apply_change(&claim, StackChange::Create, "stack", LATER)
            .await;
        assert_eq!(made.unwrap(), ResourceAttributes::new());
        let owner = async || StateOwner::parse(&store.get(OWNER).await.unwrap().unwrap().bytes);
        assert_ne!(owner().await.unwrap(), StateOwner::released_by("stack"));
        answering
            .apply_change(&claim, deleted("claim:state"), "stack", LATER)
            .await
            .unwrap();
        assert_eq!(owner().await.unwrap(), StateOwner::released_by("stack"));
    }
}
