//! The creation of a queue, and changes of its attributes.

use std::collections::BTreeMap;
use std::future::Future;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::QueueAttributeName::{self, RedriveAllowPolicy};
use posthaste_ports::{ErrorKind, PortError};

use crate::clients::failure::to_port_error;

const LOOKING: &str = "look at a queue";
const READING: &str = "read which queues may redrive";
const MAKING: &str = "make a queue";
const CHANGING: &str = "change a queue";

/// Attributes of a queue, under SQS's names.
pub type QueueAttributes = BTreeMap<String, String>;

/// The requests that make a queue.
pub trait QueueSetup: Send + Sync + 'static {
    /// The policy of the queue at `url` about which queues may redrive to it.
    fn redrive_allow_policy(
        &self,
        url: &str,
    ) -> impl Future<Output = Result<Option<String>, PortError>> + Send;

    /// The URL of the queue of this name, which is made where there is none.
    fn create_queue(&self, name: &str) -> impl Future<Output = Result<String, PortError>> + Send;

    /// Sets these attributes of the queue at `url`. All others stay as they are.
    fn set_attributes(
        &self,
        url: &str,
        attributes: QueueAttributes,
    ) -> impl Future<Output = Result<(), PortError>> + Send;
}

/// SQS itself.
#[derive(Debug, Clone)]
pub struct SqsSetup {
    client: Client,
}

impl SqsSetup {
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    /// The attributes of the queue at `url`, and the number of its messages that are due.
    pub async fn read_attributes(&self, url: &str) -> Result<QueueAttributes, PortError> {
        let request = self.client.get_queue_attributes().queue_url(url);
        let request = request
            .attribute_names(QueueAttributeName::VisibilityTimeout)
            .attribute_names(QueueAttributeName::RedrivePolicy)
            .attribute_names(QueueAttributeName::ApproximateNumberOfMessages);
        let answer = request.send().await;
        let answer = answer.map_err(|error| to_port_error(LOOKING, error))?;
        let attributes = answer.attributes.unwrap_or_default().into_iter();
        Ok(attributes
            .map(|(name, value)| (name.as_str().to_owned(), value))
            .collect())
    }
}

impl QueueSetup for SqsSetup {
    async fn redrive_allow_policy(&self, url: &str) -> Result<Option<String>, PortError> {
        let request = self.client.get_queue_attributes().queue_url(url);
        let answer = request.attribute_names(RedriveAllowPolicy).send().await;
        let answer = answer.map_err(|error| to_port_error(READING, error))?;
        let mut attributes = answer.attributes.unwrap_or_default();
        Ok(attributes.remove(&RedriveAllowPolicy))
    }

    /// Names no attributes: SQS refuses a name that is taken only where the attributes that are
    /// named differ.
    async fn create_queue(&self, name: &str) -> Result<String, PortError> {
        let made = self.client.create_queue().queue_name(name).send().await;
        let made = made.map_err(|error| to_port_error(MAKING, error))?;
        made.queue_url
            .ok_or_else(|| PortError::new(MAKING, ErrorKind::Other))
    }

    async fn set_attributes(
        &self,
        url: &str,
        attributes: QueueAttributes,
    ) -> Result<(), PortError> {
        let attributes = attributes
            .into_iter()
            .map(|(name, value)| (QueueAttributeName::from(name.as_str()), value));
        let request = self.client.set_queue_attributes().queue_url(url);
        let request = request.set_attributes(Some(attributes.collect()));
        request
            .send()
            .await
            .map_err(|error| to_port_error(CHANGING, error))?;
        Ok(())
    }
}
