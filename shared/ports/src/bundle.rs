//! The adapters a process runs on, named once: a function is generic over one [`Ports`] and not
//! over each adapter.

use std::marker::PhantomData;

use crate::{Clock, Entropy, ObjectStore, QueueReceiver, QueueSender, WebhookClient};

/// The types of the adapters that functions run on.
pub trait Ports: Send + Sync + 'static {
    /// The queues.
    type Queue: QueueSender + QueueReceiver + 'static;
    /// The state bucket.
    type Store: ObjectStore + 'static;
    /// The dead-letter bucket.
    type DeadLetters: ObjectStore + 'static;
    /// The bucket of the delivery log.
    type Log: ObjectStore + 'static;
    /// The way to the endpoints.
    type Webhook: WebhookClient + 'static;
    /// Time.
    type Clock: Clock;
    /// Chance.
    type Entropy: Entropy;
}

/// The bundle of these adapters. It is a type only; no value of it exists.
#[derive(Debug)]
pub struct PortBundle<Q, S, D, L, W, C, E>(PhantomData<(Q, S, D, L, W, C, E)>);

impl<Q, S, D, L, W, C, E> Ports for PortBundle<Q, S, D, L, W, C, E>
where
    Q: QueueSender + QueueReceiver + 'static,
    S: ObjectStore + 'static,
    D: ObjectStore + 'static,
    L: ObjectStore + 'static,
    W: WebhookClient + 'static,
    C: Clock,
    E: Entropy,
{
    type Queue = Q;
    type Store = S;
    type DeadLetters = D;
    type Log = L;
    type Webhook = W;
    type Clock = C;
    type Entropy = E;
}
