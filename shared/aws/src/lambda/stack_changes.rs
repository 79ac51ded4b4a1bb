//! Invocations by CloudFormation, for custom resources of the function's own stack: the change, and
//! its response.
//! <https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref.html>

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use lambda_runtime::{Context, Error};
use posthaste_core::model::with_causes;
use posthaste_ports::{Clock, ErrorKind, PortError};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::deadline;
use super::invocations::{InvocationFailure, answer_each, contain_panic};
use super::scheduled::{ScheduledFunction, run_once};
use crate::clients::StackAnswers;

/// Longest reason of a refusal, in bytes. A response to CloudFormation has 4096 at most, with its
/// ids.
/// <https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-responses.html>
const REASON_BYTES_MAX: usize = 2048;

/// Most times that a response is sent. A deployment whose request has no response fails.
const ANSWERS_MAX: u32 = 3;

/// The time between two of them: S3, which takes the responses, asks for a pause after a 503.
const ANSWER_PAUSE: Duration = Duration::from_secs(1);

/// A change that CloudFormation makes to the resource.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "RequestType")]
pub enum StackChange {
    /// The stack gets the resource.
    Create,
    /// A property of the resource has changed.
    Update,
    /// The resource of this physical id goes.
    Delete {
        /// The id that an earlier change gave the resource.
        #[serde(rename = "PhysicalResourceId")]
        id: String,
    },
}

/// A custom resource, as the template has it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct CustomResource {
    /// The type, such as `Custom::StateClaim`.
    #[serde(rename = "ResourceType", default)]
    pub kind: String,
    /// The properties. CloudFormation writes numbers and bools as texts.
    #[serde(rename = "ResourceProperties", default)]
    pub properties: Value,
}

/// Attributes of a custom resource, for `Fn::GetAtt` in the template.
pub type ResourceAttributes = Map<String, Value>;

/// The custom resources of a function.
pub trait StackResources: Send + Sync + 'static {
    /// The physical id of a resource. After an update with another one, CloudFormation deletes that
    /// of before.
    fn physical_id(&self, resource: &CustomResource) -> String;

    /// Makes the change for the stack of this id, until `deadline`, a time of the clock's
    /// `monotonic`. An error makes the deployment fail, with the error as its reason.
    fn apply_change(
        &self,
        resource: &CustomResource,
        change: StackChange,
        stack: &str,
        deadline: Duration,
    ) -> impl Future<Output = Result<ResourceAttributes, Error>> + Send;
}

/// An event of CloudFormation.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct StackEvent {
    #[serde(rename = "ResponseURL")]
    response_url: String,
    stack_id: String,
    request_id: String,
    logical_resource_id: String,
    #[serde(flatten)]
    resource: CustomResource,
    #[serde(flatten)]
    change: StackChange,
}

/// An event of CloudFormation, or anything else.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum StackOrSchedule {
    Stack(StackEvent),
    Schedule(IgnoredAny),
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct StackChangeResponse {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    physical_resource_id: String,
    stack_id: String,
    request_id: String,
    logical_resource_id: String,
    #[serde(skip_serializing_if = "Map::is_empty")]
    data: ResourceAttributes,
}

/// Responds to invocations by CloudFormation for resources, and all others as
/// [`run_scheduled`](super::run_scheduled) does, one after the other, until the Runtime API is
/// gone.
pub async fn run_scheduled_and_stack_changes<S, C>(
    scheduled: S,
    answers: StackAnswers,
    clock: C,
) -> Result<(), Error>
where
    S: ScheduledFunction + StackResources,
    C: Clock,
{
    answer_each(
        clock.clone(),
        async |event: StackOrSchedule, context: &Context| match event {
            StackOrSchedule::Schedule(_) => run_once(&scheduled, &clock, context).await,
            StackOrSchedule::Stack(event) => {
                let deadline = deadline::from_context(context, &clock);
                let (url, answer) = change_and_respond(&scheduled, event, deadline).await;
                put_with_retries(&clock, || answers.put_response(&url, answer.clone()))
                    .await
                    .map_err(|error| InvocationFailure::Run(error.into()))
            }
        },
    )
    .await
}

/// Puts a response, again while that may help.
async fn put_with_retries<C: Clock>(
    clock: &C,
    put: impl AsyncFn() -> Result<(), PortError>,
) -> Result<(), PortError> {
    for _ in 1..ANSWERS_MAX {
        match put().await {
            Err(error) if error.kind != ErrorKind::Invalid => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "answer to CloudFormation not taken"
                );
                clock.sleep(ANSWER_PAUSE).await;
            }
            done => return done,
        }
    }
    put().await
}

/// Makes the change, and renders its response. A deployment waits for a response, so that there is
/// one whatever happens.
async fn change_and_respond(
    resources: &impl StackResources,
    event: StackEvent,
    deadline: Duration,
) -> (String, Bytes) {
    let change = resources.apply_change(&event.resource, event.change, &event.stack_id, deadline);
    let (data, reason) = match contain_panic(change).await {
        Ok(Ok(attributes)) => (attributes, None),
        Ok(Err(error)) => (Map::new(), Some(with_causes(&*error))),
        Err(panicked) => (Map::new(), Some(with_causes(&panicked))),
    };
    if let Some(reason) = &reason {
        tracing::error!(reason, "change of the stack refused");
    }
    let answer = StackChangeResponse {
        status: if reason.is_none() {
            "SUCCESS"
        } else {
            "FAILED"
        },
        reason: reason
            .map(|reason| reason[..reason.floor_char_boundary(REASON_BYTES_MAX)].to_owned()),
        physical_resource_id: resources.physical_id(&event.resource),
        stack_id: event.stack_id,
        request_id: event.request_id,
        logical_resource_id: event.logical_resource_id,
        data,
    };
    // Texts: serialising them cannot fail.
    (
        event.response_url,
        Bytes::from(serde_json::to_vec(&answer).unwrap_or_default()),
    )
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use posthaste_core::model::Timestamp;
    use posthaste_testkit::ManualClock;
    use serde_json::{Value, json};

    use super::*;

    /// Takes creations, refuses deletions, and panics at updates.
    struct Moody;

    impl StackResources for Moody {
        fn physical_id(&self, resource: &CustomResource) -> String {
            assert_eq!(resource.kind, "Custom::StateClaim");
            "the id".to_owned()
        }

        async fn apply_change(
            &self,
            resource: &CustomResource,
            change: StackChange,
            stack: &str,
            _: Duration,
        ) -> Result<ResourceAttributes, Error> {
            assert_eq!(stack, "the stack");
            let properties = json!({ "ServiceToken": "arn" });
            assert_eq!(resource.properties, properties);
            match change {
                StackChange::Create => {
                    let attributes = json!({ "Height": 7 }).as_object().cloned();
                    Ok(attributes.unwrap_or_default())
                }
                StackChange::Update => panic!("on purpose"),
                StackChange::Delete { id } => {
                    Err(Error::from(format!("{id} stays: {}", "é".repeat(2000))))
                }
            }
        }
    }

    fn event(kind: &str) -> StackOrSchedule {
        let event = json!({
            "RequestType": kind, "RequestId": "the request", "ResponseURL": "https://answer.example/?a=b",
            "StackId": "the stack", "LogicalResourceId": "StateClaim", "PhysicalResourceId": "the id",
            "ResourceType": "Custom::StateClaim", "ResourceProperties": { "ServiceToken": "arn" },
        });
        serde_json::from_value(event).unwrap()
    }

    async fn answered(kind: &str) -> Value {
        let StackOrSchedule::Stack(event) = event(kind) else {
            panic!("{kind} is not seen")
        };
        let (url, answer) = change_and_respond(&Moody, event, Duration::ZERO).await;
        assert_eq!(url, "https://answer.example/?a=b");
        serde_json::from_slice(&answer).unwrap()
    }

    #[tokio::test]
    async fn a_change_is_answered_with_the_ids_of_its_question() {
        let expected = json!({
            "Status": "SUCCESS", "PhysicalResourceId": "the id", "StackId": "the stack",
            "RequestId": "the request", "LogicalResourceId": "StateClaim", "Data": { "Height": 7 },
        });
        assert_eq!(answered("Create").await, expected);
    }

    #[tokio::test]
    async fn a_refusal_and_a_panic_are_answers_too() {
        let refused = answered("Delete").await;
        assert_eq!(refused["Status"], "FAILED");
        assert_eq!(refused.get("Data"), None);
        let reason = refused["Reason"].as_str().unwrap();
        assert!(
            reason.starts_with("the id stays: é") && reason.len() <= REASON_BYTES_MAX,
            "{reason}"
        );
        let panicked = answered("Update").await;
        assert_eq!(
            (&panicked["Status"], &panicked["Reason"]),
            (&json!("FAILED"), &json!("the handler panicked"))
        );
    }

    /// Sends a response that is taken after `failures` of this kind. Returns the number of tries,
    /// and whether the last was taken.
    async fn tries(failures: u32, kind: ErrorKind) -> (u32, bool) {
        let clock = ManualClock::new(Timestamp::from_millis(1_000_000));
        let made = Cell::new(0);
        let put = async || {
            made.set(made.get() + 1);
            if made.get() > failures {
                Ok(())
            } else {
                Err(PortError::new("answer", kind))
            }
        };
        let pauses = async {
            while clock.advance_to_next().is_some() {
                tokio::task::yield_now().await;
            }
        };
        let (sent, ()) = tokio::join!(biased; put_with_retries(&clock, put), pauses);
        (made.get(), sent.is_ok())
    }

    #[tokio::test]
    async fn an_answer_that_is_not_taken_is_sent_three_times() {
        assert_eq!(tries(0, ErrorKind::Other).await, (1, true));
        assert_eq!(tries(2, ErrorKind::Other).await, (3, true));
        assert_eq!(tries(3, ErrorKind::Other).await, (3, false));
        assert_eq!(tries(1, ErrorKind::Invalid).await, (1, false));
    }

    #[test]
    fn all_other_events_are_of_the_schedule() {
        for other in [
            json!({}),
            json!({ "source": "aws.events" }),
            json!(null),
            json!({ "RequestType": "X" }),
        ] {
            let event = serde_json::from_value(other).unwrap();
            assert!(matches!(event, StackOrSchedule::Schedule(_)), "{event:?}");
        }
    }
}
