//! A queue that the stack needs and that CloudFormation cannot make well: it may be there already,
//! left by an update that failed, by a stack that was, or by a way back to an earlier template. It
//! is made where there is none, and gets the attributes of the template either way. What is in it
//! stays.

use std::time::Duration;

use posthaste_aws::lambda::ResourceAttributes;
use posthaste_aws::queue::{QueueAttributes, QueueSetup};
use posthaste_ports::{Clock, PortError};
use serde::Deserialize;
use serde_json::{Value, json};

/// The time for which making the queue may be refused before that is an error. IAM needs some
/// seconds to know a new right, and SQS up to a minute until a queue has its new attributes.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html>
const REFUSED_MAX: Duration = Duration::from_secs(45);

/// The time between two tries.
const TRIES: Duration = Duration::from_secs(2);

/// The attribute of a queue that says which queues may redrive to it.
const REDRIVE_ALLOW_POLICY: &str = "RedriveAllowPolicy";

/// Error of a queue that was not made.
#[derive(Debug, thiserror::Error)]
pub enum MadeQueueError {
    /// The template says something else than a queue.
    #[error("the properties of the queue are unusable")]
    Properties(#[source] serde_json::Error),
    /// The policy of the redrive queue is none.
    #[error("the redrive queue's list of sources is unusable")]
    Sources(#[source] serde_json::Error),
    /// SQS refused something.
    #[error("the queue could not be made")]
    Sqs(#[from] PortError),
}

/// The queue as the template has it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct QueueProperties {
    queue_name: String,
    queue_arn: String,
    redrive_queue_url: String,
    attributes: QueueAttributes,
    /// Most invocations of deliver at once, for each queue that feeds it. CloudFormation cannot add.
    deliver_concurrencies: Vec<WrittenConcurrency>,
}

/// A number, which CloudFormation writes as a text.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum WrittenConcurrency {
    Text(#[serde(deserialize_with = "number")] u64),
    Number(u64),
}

fn number<'de, D: serde::Deserializer<'de>>(text: D) -> Result<u64, D::Error> {
    let text = String::deserialize(text)?;
    text.parse().map_err(serde::de::Error::custom)
}

/// The policy of a queue about which queues may redrive to it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AllowPolicy {
    redrive_permission: String,
    #[serde(default)]
    source_queue_arns: Vec<String>,
}

/// Makes queues.
#[derive(Debug)]
pub struct MadeQueues<Q, C> {
    queues: Q,
    clock: C,
}

impl<Q: QueueSetup, C: Clock> MadeQueues<Q, C> {
    /// Makes queues by these requests.
    pub fn new(queues: Q, clock: C) -> Self {
        Self { queues, clock }
    }

    /// The physical id of a queue: its name.
    pub(crate) fn queue_id(properties: &Value) -> String {
        let name = properties["QueueName"].as_str();
        name.unwrap_or_default().to_owned()
    }

    /// Makes the queue of these properties, or gives the one that is there their attributes. Tries
    /// again while AWS does not know of a new right or policy.
    pub(crate) async fn make_queue(
        &self,
        properties: &Value,
        deadline: Duration,
    ) -> Result<ResourceAttributes, MadeQueueError> {
        let wanted =
            QueueProperties::deserialize(properties).map_err(MadeQueueError::Properties)?;
        let until = deadline.min(self.clock.monotonic() + REFUSED_MAX);
        // Boxed, as the futures of requests are large.
        while let Err(error) = Box::pin(self.try_to_make(&wanted)).await {
            if self.clock.monotonic() + TRIES >= until {
                return Err(error);
            }
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "queue not made yet"
            );
            self.clock.sleep(TRIES).await;
        }
        let concurrency = wanted
            .deliver_concurrencies
            .iter()
            .map(WrittenConcurrency::get)
            .sum::<u64>();
        let attributes = [("DeliverConcurrency".to_owned(), json!(concurrency))];
        Ok(attributes.into_iter().collect())
    }

    /// Lets the queue redrive first: SQS refuses a redrive policy that the other queue does not
    /// allow.
    async fn try_to_make(&self, wanted: &QueueProperties) -> Result<(), MadeQueueError> {
        let policy = self
            .queues
            .redrive_allow_policy(&wanted.redrive_queue_url)
            .await?;
        if let Some(policy) = policy_with_source(policy.as_deref(), &wanted.queue_arn)? {
            let attributes = [(REDRIVE_ALLOW_POLICY.to_owned(), policy)];
            let attributes = attributes.into_iter().collect();
            self.queues
                .set_attributes(&wanted.redrive_queue_url, attributes)
                .await?;
        }
        let url = self.queues.create_queue(&wanted.queue_name).await?;
        self.queues
            .set_attributes(&url, wanted.attributes.clone())
            .await?;
        Ok(())
    }
}

impl WrittenConcurrency {
    fn get(&self) -> u64 {
        let (Self::Text(number) | Self::Number(number)) = self;
        *number
    }
}

/// The policy with one more source, or nothing if it allows the source already. The policy of an
/// adopted redrive queue names the sources of its former stack.
fn policy_with_source(policy: Option<&str>, arn: &str) -> Result<Option<String>, MadeQueueError> {
    let Some(text) = policy else {
        return Ok(None);
    };
    let policy: AllowPolicy = serde_json::from_str(text).map_err(MadeQueueError::Sources)?;
    let is_listed = policy.source_queue_arns.iter().any(|source| source == arn);
    if policy.redrive_permission != "byQueue" || is_listed {
        return Ok(None);
    }
    let sources: Vec<_> = policy
        .source_queue_arns
        .iter()
        .map(String::as_str)
        .chain([arn])
        .collect();
    let policy = json!({ "redrivePermission": "byQueue", "sourceQueueArns": sources });
    Ok(Some(policy.to_string()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use parking_lot::Mutex;
    use posthaste_core::model::Timestamp;
    use posthaste_ports::ErrorKind;
    use posthaste_testkit::ManualClock;

    use super::*;

    const LATER: Duration = Duration::from_mins(1);
    const SLOW: &str = "arn:aws:sqs:us-east-1:1:stack-deliveries-slow";
    const OLD_POLICY: &str =
        r#"{"redrivePermission":"byQueue","sourceQueueArns":["quick","gone"]}"#;

    /// Queues by name, as SQS keeps them. The first requests are refused.
    #[derive(Debug, Clone, Default)]
    struct Queues(Arc<Mutex<State>>);

    #[derive(Debug, Default)]
    struct State {
        queues: BTreeMap<String, QueueAttributes>,
        refusals: u32,
        changed: Vec<String>,
    }

    impl Queues {
        /// The redrive queue of a stack before there was this queue.
        fn of_former_stack() -> Self {
            let queues = Self::default();
            let policy = [(REDRIVE_ALLOW_POLICY.to_owned(), OLD_POLICY.to_owned())];
            let attributes = policy.into_iter().collect();
            queues
                .0
                .lock()
                .queues
                .insert("redrive".to_owned(), attributes);
            queues
        }

        fn attribute(&self, queue: &str, name: &str) -> Option<String> {
            self.0.lock().queues[queue].get(name).cloned()
        }
    }

    impl QueueSetup for Queues {
        async fn redrive_allow_policy(&self, url: &str) -> Result<Option<String>, PortError> {
            let mut state = self.0.lock();
            if state.refusals > 0 {
                state.refusals -= 1;
                return Err(PortError::new("read", ErrorKind::Denied));
            }
            Ok(state.queues[url].get(REDRIVE_ALLOW_POLICY).cloned())
        }

        async fn create_queue(&self, name: &str) -> Result<String, PortError> {
            self.0.lock().queues.entry(name.to_owned()).or_default();
            Ok(name.to_owned())
        }

        async fn set_attributes(
            &self,
            url: &str,
            attributes: QueueAttributes,
        ) -> Result<(), PortError> {
            let mut state = self.0.lock();
            let redrives = attributes.contains_key("RedrivePolicy");
            let allowed = state.queues["redrive"].get(REDRIVE_ALLOW_POLICY);
            if redrives && !allowed.is_some_and(|policy| policy.contains(SLOW)) {
                return Err(PortError::new("set", ErrorKind::Invalid));
            }
            state.queues.get_mut(url).unwrap().extend(attributes);
            state.changed.push(url.to_owned());
            Ok(())
        }
    }

    fn made(queues: &Queues) -> (MadeQueues<Queues, ManualClock>, ManualClock) {
        let clock = ManualClock::new(Timestamp::from_millis(1_700_000_000_000));
        (MadeQueues::new(queues.clone(), clock.clone()), clock)
    }

    fn properties() -> Value {
        json!({
            "ServiceToken": "arn", "QueueName": "slow", "QueueArn": SLOW, "RedriveQueueUrl": "redrive",
            "Attributes": { "VisibilityTimeout": "730", "RedrivePolicy": "{}" },
            "DeliverConcurrencies": ["50", 10],
        })
    }

    #[tokio::test]
    async fn new_queue_may_redrive_to_an_adopted_redrive_queue() {
        let queues = Queues::of_former_stack();
        let (made, _) = made(&queues);
        let attributes = made.make_queue(&properties(), LATER).await.unwrap();
        assert_eq!(attributes["DeliverConcurrency"], 60);
        let policy = queues.attribute("redrive", REDRIVE_ALLOW_POLICY).unwrap();
        assert_eq!(
            serde_json::from_str::<Value>(&policy).unwrap()["sourceQueueArns"],
            json!(["quick", "gone", SLOW])
        );
        let timeout = queues.attribute("slow", "VisibilityTimeout");
        assert_eq!(timeout.as_deref(), Some("730"));
        assert_eq!(
            MadeQueues::<Queues, ManualClock>::queue_id(&properties()),
            "slow"
        );
    }

    #[tokio::test]
    async fn queue_that_is_there_gets_its_attributes_alone() {
        let queues = Queues::of_former_stack();
        let (made, _) = made(&queues);
        made.make_queue(&properties(), LATER).await.unwrap();
        made.make_queue(&properties(), LATER).await.unwrap();
        assert_eq!(queues.0.lock().changed, ["redrive", "slow", "slow"]);
    }

    #[tokio::test]
    async fn redrive_queue_open_to_all_is_left_alone() {
        for policy in [None, Some(r#"{"redrivePermission":"allowAll"}"#)] {
            assert_eq!(policy_with_source(policy, SLOW).unwrap(), None);
        }
    }

    #[tokio::test]
    async fn refusals_of_a_new_right_are_waited_for_until_45_seconds() {
        for (refusals, succeeds) in [(20, true), (30, false)] {
            let queues = Queues::of_former_stack();
            queues.0.lock().refusals = refusals;
            let (made, clock) = made(&queues);
            let pauses = async {
                while clock.advance_to_next().is_some() {
                    tokio::task::yield_now().await;
                }
            };
            let wanted = properties();
            let (made, ()) = tokio::join!(biased; made.make_queue(&wanted, LATER), pauses);
            assert_eq!(made.is_ok(), succeeds);
        }
    }

    #[tokio::test]
    async fn properties_of_something_else_are_refused_at_once() {
        let (made, _) = made(&Queues::default());
        let refused = made
            .make_queue(&json!({ "QueueName": "slow" }), LATER)
            .await;
        assert!(
            matches!(refused, Err(MadeQueueError::Properties(_))),
            "{refused:?}"
        );
    }
}
