//! Requests, read from JSON. Only the types of values are checked here; the values follow later,
//! entry by entry.

use http::request::Parts;

use super::super::journal::Action;
use super::error::Error;
use super::fields::Fields;

/// The header that names the operation.
pub(crate) const TARGET: &str = "x-amz-target";

/// The visibility timeout of a receive that names none, in seconds.
const VISIBILITY_SECS_DEFAULT: i64 = 30;

/// A request to SQS.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) action: Action,
    pub(super) queue_url: String,
    pub(super) request: Request,
}

/// The action on the queue.
#[derive(Debug)]
pub(super) enum Request {
    Send(Batch<Outgoing>),
    Delete(Batch<Deletion>),
    Change(Batch<Change>),
    Receive(Receive),
    Attributes(Vec<String>),
}

/// Entries of a batch, or the one thing that a request without a batch asks for.
#[derive(Debug)]
pub(super) struct Batch<T> {
    pub(super) entries: Vec<(String, T)>,
    pub(super) is_single: bool,
}

/// A message to send.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) body: Option<String>,
    pub(super) delay_secs: Option<i64>,
    pub(super) group: Option<String>,
    pub(super) deduplication_id: Option<String>,
}

/// A message to delete.
#[derive(Debug)]
pub(super) struct Deletion {
    pub(super) handle: Option<String>,
}

/// A visibility timeout to change.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) handle: Option<String>,
    pub(super) visibility_secs: Option<i64>,
}

/// A receive.
#[derive(Debug)]
pub(super) struct Receive {
    pub(super) max: i64,
    pub(super) visibility_secs: i64,
    pub(super) wait_secs: i64,
    pub(super) attributes: Vec<String>,
}

/// A thing that is read from one entry of a batch, or from a whole request.
pub(super) trait Item: Sized {
    fn take(fields: &mut Fields) -> Result<Self, Error>;
}

impl Item for Outgoing {
    fn take(fields: &mut Fields) -> Result<Self, Error> {
        Ok(Self {
            body: fields.text("MessageBody")?,
            delay_secs: fields.number("DelaySeconds")?,
            group: fields.text("MessageGroupId")?,
            deduplication_id: fields.text("MessageDeduplicationId")?,
        })
    }
}

impl Item for Deletion {
    fn take(fields: &mut Fields) -> Result<Self, Error> {
        Ok(Self {
            handle: fields.text("ReceiptHandle")?,
        })
    }
}

impl Item for Change {
    fn take(fields: &mut Fields) -> Result<Self, Error> {
        let handle = fields.text("ReceiptHandle")?;
        Ok(Self {
            handle,
            visibility_secs: fields.number("VisibilityTimeout")?,
        })
    }
}

impl Call {
    pub(crate) fn parse(parts: &Parts, body: &[u8]) -> Result<Self, Error> {
        let target = parts
            .headers
            .get(TARGET)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        let action = action(target).ok_or_else(|| Error::unknown_operation(target))?;
        let mut fields = Fields::parse(body)?;
        let queue_url = fields.text("QueueUrl")?.ok_or_else(Error::no_such_queue)?;
        let request = Request::take(action, &mut fields)?;
        fields.done()?;
        Ok(Self {
            action,
            queue_url,
            request,
        })
    }
}

fn action(target: &str) -> Option<Action> {
    Some(match target.strip_prefix("AmazonSQS.")? {
        "SendMessage" => Action::SendMessage,
        "SendMessageBatch" => Action::SendMessageBatch,
        "ReceiveMessage" => Action::ReceiveMessage,
        "DeleteMessage" => Action::DeleteMessage,
        "DeleteMessageBatch" => Action::DeleteMessageBatch,
        "ChangeMessageVisibility" => Action::ChangeMessageVisibility,
        "ChangeMessageVisibilityBatch" => Action::ChangeMessageVisibilityBatch,
        "GetQueueAttributes" => Action::GetQueueAttributes,
        _ => return None,
    })
}

impl Request {
    fn take(action: Action, fields: &mut Fields) -> Result<Self, Error> {
        Ok(match action {
            Action::SendMessage => Self::Send(Batch::single(fields)?),
            Action::SendMessageBatch => Self::Send(Batch::many(fields)?),
            Action::DeleteMessage => Self::Delete(Batch::single(fields)?),
            Action::DeleteMessageBatch => Self::Delete(Batch::many(fields)?),
            Action::ChangeMessageVisibility => Self::Change(Batch::single(fields)?),
            Action::ChangeMessageVisibilityBatch => Self::Change(Batch::many(fields)?),
            Action::ReceiveMessage => Self::Receive(Receive::take(fields)?),
            _ => Self::Attributes(fields.texts("AttributeNames")?),
        })
    }

    /// The subjects for the journal, and the bytes of message bodies in it.
    pub(super) fn subjects(&self) -> (Vec<String>, usize) {
        match self {
            Self::Send(batch) => {
                let bodies = batch.texts(|outgoing| outgoing.body.as_ref());
                let bytes = bodies.iter().map(String::len).sum();
                (bodies, bytes)
            }
            Self::Delete(batch) => (batch.texts(|deletion| deletion.handle.as_ref()), 0),
            Self::Change(batch) => (batch.texts(|change| change.handle.as_ref()), 0),
            Self::Receive(_) | Self::Attributes(_) => (vec![], 0),
        }
    }
}

impl<T: Item> Batch<T> {
    fn single(fields: &mut Fields) -> Result<Self, Error> {
        Ok(Self {
            entries: vec![(String::new(), T::take(fields)?)],
            is_single: true,
        })
    }

    fn many(fields: &mut Fields) -> Result<Self, Error> {
        let entry = |mut fields: Fields| {
            let id = fields.text("Id")?.ok_or_else(Error::bad_entry_id)?;
            let item = T::take(&mut fields)?;
            fields.done()?;
            Ok((id, item))
        };
        let entries: Result<_, Error> = fields.entries("Entries")?.into_iter().map(entry).collect();
        Ok(Self {
            entries: entries?,
            is_single: false,
        })
    }
}

impl<T> Batch<T> {
    fn texts(&self, text: impl Fn(&T) -> Option<&String>) -> Vec<String> {
        self.entries
            .iter()
            .map(|(_, item)| text(item).cloned().unwrap_or_default())
            .collect()
    }
}

impl Receive {
    fn take(fields: &mut Fields) -> Result<Self, Error> {
        let mut attributes = fields.texts("AttributeNames")?;
        attributes.extend(fields.texts("MessageSystemAttributeNames")?);
        Ok(Self {
            max: fields.number("MaxNumberOfMessages")?.unwrap_or(1),
            visibility_secs: fields
                .number("VisibilityTimeout")?
                .unwrap_or(VISIBILITY_SECS_DEFAULT),
            wait_secs: fields.number("WaitTimeSeconds")?.unwrap_or(0),
            attributes,
        })
    }
}
