//! The checks of `posthaste doctor` in the account: whether the queues are as the template makes
//! them. manage has the right to read attributes of queues, and none to see the other functions.

use std::sync::Arc;
use std::time::Duration;

use posthaste_aws::queue::{QueueAttributes, SqsSetup};
use posthaste_core::api::doctor::{
    CheckResult, CheckView, ConnectedEndpoint, EndpointFault, RELEASED,
};
use posthaste_core::model::{Link, MAX_RECEIVE_COUNT, Timestamp, with_causes};
use posthaste_ports::{InstallationExaminer, PendingCheck, PendingLook, PortError, QueueName};
use posthaste_system::SystemClock;
use serde::Deserialize;

use crate::both_queues::queue_name_of;
use crate::webhooks::LazyWebhooks;

/// The visibility timeouts of the queues that feed functions, as template.yaml has them.
pub(crate) const DELIVERIES_VISIBILITY: Duration = Duration::from_secs(730);
pub(crate) const DEAD_LETTERS_VISIBILITY: Duration = Duration::from_mins(11);
pub(crate) const REDRIVE_VISIBILITY: Duration = Duration::from_mins(6);
pub(crate) const RECORDS_VISIBILITY: Duration = Duration::from_mins(13);

/// The end of the URL of the delivery queue. The template gives all queues of a stack names that
/// differ in their ends alone.
const DELIVERIES_END: &str = "-deliveries";

/// The way out of most of what can be wrong with a queue.
const DEPLOY: &str =
    "deploy the template again, which sets it back; `aws sqs get-queue-attributes` shows it";

/// The part of an account that is one installation's.
#[derive(Debug)]
pub(crate) struct AwsExaminer {
    queues: SqsSetup,
    deliveries_url: String,
    slow_url: Option<String>,
    webhooks: Arc<LazyWebhooks<SystemClock>>,
}

/// A queue as the template makes it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct MadeQueue {
    url: String,
    visibility: Duration,
    /// The name of the queue for messages that were received too often.
    redrive: Option<String>,
}

/// The member `RedrivePolicy` of a queue. SQS shows the number as it was written, and so perhaps as
/// a text.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RedrivePolicy {
    dead_letter_target_arn: String,
    max_receive_count: serde_json::Value,
}

impl AwsExaminer {
    /// The account in which these queues are. Endpoints are looked at by `webhooks`.
    pub(crate) fn new(
        queues: SqsSetup,
        deliveries_url: &str,
        slow_url: Option<&str>,
        webhooks: LazyWebhooks<SystemClock>,
    ) -> Self {
        Self {
            queues,
            deliveries_url: deliveries_url.to_owned(),
            slow_url: slow_url.map(str::to_owned),
            webhooks: Arc::new(webhooks),
        }
    }

    /// The queues of the installation. Where the delivery queue has a name of another form, only
    /// the queues whose URLs are known.
    fn made_queues(&self) -> Vec<MadeQueue> {
        let redrive_url = self.sibling_url(QueueName::Redrive);
        let redrive = redrive_url.as_deref().map(queue_name_of);
        let queues = [
            (Some(self.deliveries_url.clone()), DELIVERIES_VISIBILITY),
            (self.slow_url.clone(), DELIVERIES_VISIBILITY),
            (
                self.sibling_url(QueueName::DeadLetters),
                DEAD_LETTERS_VISIBILITY,
            ),
            (self.sibling_url(QueueName::Records), RECORDS_VISIBILITY),
        ];
        let mut made: Vec<_> = queues
            .into_iter()
            .filter_map(|(url, visibility)| {
                Some(MadeQueue {
                    url: url?,
                    visibility,
                    redrive: redrive.map(str::to_owned),
                })
            })
            .collect();
        made.extend(redrive_url.map(|url| MadeQueue {
            url,
            visibility: REDRIVE_VISIBILITY,
            redrive: None,
        }));
        made
    }

    fn sibling_url(&self, name: QueueName) -> Option<String> {
        let prefix = self.deliveries_url.strip_suffix(DELIVERIES_END)?;
        Some(format!("{prefix}-{name}"))
    }
}

impl InstallationExaminer for AwsExaminer {
    fn checks(&self) -> Vec<PendingCheck> {
        self.made_queues()
            .into_iter()
            .map(|made| {
                let queues = self.queues.clone();
                PendingCheck {
                    name: "queue",
                    of: queue_name_of(&made.url).to_owned(),
                    look: Box::pin(async move {
                        let found = queues.read_attributes(&made.url).await;
                        queue_check(&made, found)
                    }),
                }
            })
            .collect()
    }

    /// No process lives long enough to remember more than its release.
    fn clock_at_least(&self) -> Option<Timestamp> {
        Some(RELEASED)
    }

    fn check_link(
        &self,
        link: Link,
        timeout: Duration,
    ) -> PendingLook<Result<ConnectedEndpoint, EndpointFault>> {
        let webhooks = Arc::clone(&self.webhooks);
        Box::pin(async move { webhooks.look_at(&link, timeout).await })
    }
}

/// Whether a queue is as it was made.
fn queue_check(made: &MadeQueue, found: Result<QueueAttributes, PortError>) -> CheckView {
    let of = queue_name_of(&made.url);
    let attributes = match found {
        Ok(attributes) => attributes,
        Err(error) => {
            let advice = "the queue must exist, and the role of manage may read its attributes: deploy the template again";
            return CheckView::passed("queue", of, with_causes(&error))
                .with_result(CheckResult::Failed, advice);
        }
    };
    let visibility = attributes
        .get("VisibilityTimeout")
        .and_then(|text| text.parse().ok());
    let policy = attributes
        .get("RedrivePolicy")
        .filter(|text| !text.is_empty());
    let policy = policy.map(|text| serde_json::from_str::<RedrivePolicy>(text));
    let mut wrong = Vec::new();
    if visibility != Some(made.visibility.as_secs()) {
        let found = visibility.map_or_else(|| "unknown".to_owned(), |secs| format!("{secs} s"));
        let expected = made.visibility.as_secs();
        wrong.push(format!(
            "its visibility timeout is {found}, and was made {expected} s"
        ));
    }
    let redrives_to = match &policy {
        Some(Ok(policy)) => Some((policy.target_queue().to_owned(), policy.max_receives())),
        Some(Err(_)) => Some(("a policy that cannot be read".to_owned(), None)),
        None => None,
    };
    let expected = made
        .redrive
        .clone()
        .map(|name| (name, Some(u64::from(MAX_RECEIVE_COUNT))));
    if redrives_to != expected {
        let found = describe_redrive(redrives_to.as_ref());
        let made = describe_redrive(expected.as_ref());
        wrong.push(format!(
            "it redrives {found}, and was made to redrive {made}"
        ));
    }
    if !wrong.is_empty() {
        return CheckView::passed("queue", of, wrong.join("; "))
            .with_result(CheckResult::Failed, DEPLOY);
    }
    let waiting = attributes.get("ApproximateNumberOfMessages");
    let waiting = waiting.map_or("unknown", |number| number.as_str());
    let secs = made.visibility.as_secs();
    let found = format!(
        "messages that are due: {waiting}; visibility timeout {secs} s, redrives {}",
        describe_redrive(expected.as_ref())
    );
    CheckView::passed("queue", of, found)
}

fn describe_redrive(redrives: Option<&(String, Option<u64>)>) -> String {
    match redrives {
        Some((to, Some(receives))) => format!("to {to} after {receives} receives"),
        Some((to, None)) => format!("to {to}"),
        None => "nowhere".to_owned(),
    }
}

impl RedrivePolicy {
    /// The name at the end of the target's ARN.
    fn target_queue(&self) -> &str {
        self.dead_letter_target_arn
            .rsplit(':')
            .next()
            .unwrap_or_default()
    }

    fn max_receives(&self) -> Option<u64> {
        let number = &self.max_receive_count;
        number.as_u64().or_else(|| number.as_str()?.parse().ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use posthaste_aws::{AwsClients, AwsSettings};
    use posthaste_http::ClientSettings;
    use posthaste_ports::ErrorKind;

    const URL: &str = "https://sqs.eu-central-1.amazonaws.com/123456789012/shop-deliveries";

    fn account(deliveries: &str, slow: Option<&str>) -> AwsExaminer {
        let variable = |name: &str| match name {
            "AWS_REGION" | "AWS_ACCESS_KEY_ID" | "AWS_SECRET_ACCESS_KEY" => {
                Some("anything".to_owned())
            }
            _ => None,
        };
        let clients = AwsClients::new(&AwsSettings::from_env(variable).unwrap());
        let webhooks = LazyWebhooks::new(ClientSettings::default(), SystemClock);
        AwsExaminer::new(clients.queue_setup(), deliveries, slow, webhooks)
    }

    fn made() -> MadeQueue {
        MadeQueue {
            url: URL.to_owned(),
            visibility: DELIVERIES_VISIBILITY,
            redrive: Some("shop-redrive".to_owned()),
        }
    }

    fn attributes(visibility: &str, policy: &str) -> QueueAttributes {
        let all = [
            ("VisibilityTimeout", visibility),
            ("RedrivePolicy", policy),
            ("ApproximateNumberOfMessages", "7"),
        ];
        all.map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into()
    }

    const POLICY: &str =
        r#"{"deadLetterTargetArn":"arn:aws:sqs:eu-central-1:1:shop-redrive","maxReceiveCount":50}"#;

    fn check(found: QueueAttributes, expected: (CheckResult, &str)) {
        let check = queue_check(&made(), Ok(found));
        assert_eq!((check.result, &*check.found), expected);
        assert_eq!(check.of, "shop-deliveries");
    }

    #[test]
    fn queue_as_it_was_made_is_ok() {
        let found = "messages that are due: 7; visibility timeout 730 s, redrives to shop-redrive \
                     after 50 receives";
        check(attributes("730", POLICY), (CheckResult::Ok, found));
        let as_text = POLICY.replace("50", "\"50\"");
        check(attributes("730", &as_text), (CheckResult::Ok, found));
    }

    #[test]
    fn queue_that_was_changed_fails_with_each_difference() {
        let failed = CheckResult::Failed;
        let visibility = "its visibility timeout is 30 s, and was made 730 s";
        check(attributes("30", POLICY), (failed, visibility));
        let made = "and was made to redrive to shop-redrive after 50 receives";
        let nowhere = format!("it redrives nowhere, {made}");
        check(attributes("730", ""), (failed, &nowhere));
        let soon = format!("it redrives to shop-redrive after 5 receives, {made}");
        check(
            attributes("730", &POLICY.replace("50", "5")),
            (failed, &soon),
        );
        let both = format!("{visibility}; it redrives to a policy that cannot be read, {made}");
        check(attributes("30", "{"), (failed, &both));
    }

    #[test]
    fn queue_that_may_not_be_read_fails_with_the_words_of_aws() {
        let denied =
            PortError::with_cause("look at a queue", ErrorKind::Denied, "AccessDenied: no");
        let check = queue_check(&made(), Err(denied));
        assert_eq!(check.result, CheckResult::Failed);
        assert_eq!(
            check.found,
            "failed to look at a queue: Denied: AccessDenied: no"
        );
    }

    #[test]
    fn every_queue_of_the_stack_is_looked_at() {
        let slow = URL.replace("deliveries", "deliveries-slow");
        let checks = account(URL, Some(&slow)).checks();
        let names: Vec<_> = checks.iter().map(|check| &*check.of).collect();
        let expected = [
            "shop-deliveries",
            "shop-deliveries-slow",
            "shop-deadletters",
            "shop-records",
            "shop-redrive",
        ];
        assert_eq!(names, expected);
        let other = account("https://sqs.example/1/other", None).checks();
        assert_eq!(other.len(), 1);
    }
}
