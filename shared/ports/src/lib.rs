#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

pub mod bundle;
pub mod caught;
pub mod clock;
pub mod drain;
pub mod entropy;
pub mod error;
pub mod evict;
pub mod examine;
pub mod probe;
pub mod queue;
pub mod spans;
pub mod store;
pub mod validate;
pub mod webhook;
pub mod withheld;

pub use bundle::{PortBundle, Ports};
pub use clock::Clock;
pub use drain::{DrainSource, LookTime};
pub use entropy::Entropy;
pub use error::{ErrorKind, PortError};
pub use evict::{EvictableCache, EvictedAmount};
pub use examine::{InstallationExaminer, PendingCheck, PendingLook};
pub use probe::{DatabaseResource, NoMachine, ProbeSample, ResourceProbe};
pub use queue::{
    BatchResponse, GroupCount, GroupCounts, MessageId, OutgoingMessage, QueueCounts, QueueName,
    QueueReceiver, QueueSender, ReceiptHandle, ReceiveRequest, ReceivedMessage, Successor,
};
pub use spans::SpanSink;
pub use store::{
    ETag, ListPage, ObjectMeta, ObjectStore, PutCondition, RevalidatedObject, StoredObject,
    ends_early_error, slice_of_object,
};
pub use webhook::{
    AlwaysBegin, LastLook, LateAnswer, WebhookAnswer, WebhookClient, WebhookRequest,
    WebhookResponse,
};
pub use withheld::{WithheldFate, WithheldMessages};
