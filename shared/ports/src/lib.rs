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

pub use bundle::{Bundle, Ports};
pub use clock::Clock;
pub use drain::{DrainSource, LookTime};
pub use entropy::Entropy;
pub use error::{ErrorKind, PortError};
pub use evict::{Evict, Evicted};
pub use examine::{Check, Examiner, Look};
pub use probe::{Database, NoMachine, Probe, Sample};
pub use queue::{
    BatchResponse, GroupCount, GroupCounts, MessageId, OutgoingMessage, QueueCounts, QueueName,
    QueueReceiver, QueueSender, Receipt, ReceiveRequest, ReceivedMessage, Successor,
};
pub use spans::SpanSink;
pub use store::{
    ETag, ListPage, Object, ObjectMeta, ObjectStore, PutCondition, Revalidated, ends_early, part_of,
};
pub use webhook::{
    Always, LastLook, LateAnswer, WebhookAnswer, WebhookClient, WebhookRequest, WebhookResponse,
};
pub use withheld::{Fate, Withheld};
