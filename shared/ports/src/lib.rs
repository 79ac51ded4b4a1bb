//! What posthaste needs from outside, as a few small traits documented as promises. No SDK type crosses them.
//!
//! Adapters live in `posthaste-local`, `posthaste-http` and (AWS) `posthaste-aws`; every adapter passes the
//! suite in `conformance`. `Recorded` and `Faulty` decorate any of them for cost and fault tests.

pub mod activity;
pub mod bundle;
pub mod clock;
pub mod conformance;
pub mod drain;
pub mod entropy;
pub mod error;
pub mod fan_out;
pub mod faulty;
pub mod flights;
pub mod guard;
pub mod late;
pub mod links;
#[cfg(test)]
mod memory;
pub mod notices;
pub mod pressure;
pub mod probe;
pub mod queue;
pub mod recorded;
pub mod registry;
pub mod relief;
pub mod replay;
pub mod sending;
pub mod store;
pub mod topics;
pub mod vet;
pub mod webhook;

pub use activity::Activity;
pub use bundle::{Bundle, Ports};
pub use clock::Clock;
pub use drain::{DRAIN_POST_TIMEOUT, DrainMeter, DrainPost, DrainReports, DrainSource};
pub use entropy::Entropy;
pub use error::{ErrorKind, PortError};
pub use fan_out::{FanOut, FanOutError, Origin, Written};
pub use faulty::{Fault, Faulty, Plan};
pub use flights::Flights;
pub use links::{LINKS_MAX_AGE, LinkBook, LinksError};
pub use notices::{Addressee, NoticeError, Notifier};
pub use pressure::{Admitted, PRESSURE_MAX_AGE, PressureReader};
pub use probe::{Database, NoMachine, Probe, Sample};
pub use queue::{
    BatchResponse, MessageId, OutgoingMessage, QueueCounts, QueueName, QueueReceiver, QueueSender, Receipt,
    ReceiveRequest, ReceivedMessage, Successor,
};
pub use recorded::{Calls, Operation, Recorded};
pub use registry::{Registry, RegistryError};
pub use relief::{Caches, Freed, Relieved, Reliever};
pub use sending::send_all;
pub use store::{ETag, ListPage, Object, ObjectMeta, ObjectStore, PutCondition, Revalidated};
pub use webhook::{LateAnswer, WebhookAnswer, WebhookClient, WebhookRequest, WebhookResponse};
