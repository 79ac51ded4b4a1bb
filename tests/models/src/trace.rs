//! Runs of the real code, compared with a model: every call of a port is noted with its condition and
//! its end, and must be a step that the model has there.

use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use posthaste_core::model::Link;
use posthaste_ports::{
    ETag, ErrorKind, LastLook, ListPage, MessageId, ObjectStore, OutgoingMessage, PortError,
    PutCondition, QueueCounts, QueueName, QueueReceiver, QueueSender, ReceiptHandle,
    ReceiveRequest, ReceivedMessage, RevalidatedObject, StoredObject, Successor, WebhookAnswer,
    WebhookClient, WebhookRequest,
};
use stateright::Model;

use crate::step::{Actor, Call, Fate, Name, Step};

/// A call on a key or on a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Called {
    /// A call of a store.
    Store(Call<()>, String),
    /// A call of a queue.
    Queue(Call<()>, QueueName),
    /// A message was replaced by successors in these queues.
    Replace(QueueName, Vec<QueueName>),
    /// A request to an endpoint.
    Post,
}

/// The end of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The call happened.
    Done,
    /// The condition did not hold.
    Refused,
    /// The call failed.
    Failed,
}

/// A call that was noted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Noted {
    /// The caller.
    pub actor: Actor,
    /// The call.
    pub called: Called,
    /// The end of the call.
    pub ended: Ended,
}

/// The calls of a run, in the order in which they ended. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Notes(Arc<Mutex<Vec<Noted>>>);

impl Notes {
    /// All calls so far.
    pub fn all(&self) -> Vec<Noted> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn note<T>(&self, actor: Actor, called: Called, result: &Result<T, PortError>) {
        let ended = match result {
            Ok(_) => Ended::Done,
            Err(error) if error.kind == ErrorKind::PreconditionFailed => Ended::Refused,
            Err(_) => Ended::Failed,
        };
        let noted = Noted {
            actor,
            called,
            ended,
        };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(noted);
    }
}

/// A port whose calls are noted as those of one actor.
#[derive(Debug, Clone)]
pub struct Traced<P> {
    port: P,
    actor: Actor,
    queue: QueueName,
    notes: Notes,
}

impl<P> Traced<P> {
    /// Notes the calls of a store, or of the endpoints.
    pub fn new(port: P, actor: Actor, notes: &Notes) -> Self {
        Self::queue(port, QueueName::Deliveries, actor, notes)
    }

    /// Notes the calls of this queue.
    pub fn queue(port: P, queue: QueueName, actor: Actor, notes: &Notes) -> Self {
        Self {
            port,
            actor,
            queue,
            notes: notes.clone(),
        }
    }

    fn noted<T>(&self, called: Called, result: Result<T, PortError>) -> Result<T, PortError> {
        self.notes.note(self.actor, called, &result);
        result
    }

    fn of_store(call: Call<()>, key: &str) -> Called {
        Called::Store(call, key.to_owned())
    }
}

impl<P: ObjectStore> ObjectStore for Traced<P> {
    async fn get(&self, key: &str) -> Result<Option<StoredObject>, PortError> {
        let result = self.port.get(key).await;
        self.noted(Self::of_store(Call::Get(()), key), result)
    }

    async fn get_if_changed(
        &self,
        key: &str,
        known: &ETag,
    ) -> Result<RevalidatedObject, PortError> {
        let result = self.port.get_if_changed(key, known).await;
        self.noted(Self::of_store(Call::Get(()), key), result)
    }

    async fn get_range(&self, key: &str, range: Range<u64>) -> Result<Bytes, PortError> {
        let result = self.port.get_range(key, range).await;
        self.noted(Self::of_store(Call::Get(()), key), result)
    }

    async fn put(
        &self,
        key: &str,
        bytes: Bytes,
        condition: PutCondition,
    ) -> Result<ETag, PortError> {
        let call = match &condition {
            PutCondition::Always => Call::Put(()),
            PutCondition::IfAbsent => Call::PutIfAbsent(()),
            PutCondition::IfMatch(_) => Call::PutIfMatch(()),
        };
        let result = self.port.put(key, bytes, condition).await;
        self.noted(Self::of_store(call, key), result)
    }

    async fn delete(&self, key: &str) -> Result<(), PortError> {
        let result = self.port.delete(key).await;
        self.noted(Self::of_store(Call::Delete(()), key), result)
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        max: usize,
    ) -> Result<ListPage, PortError> {
        let result = self.port.list(prefix, after, max).await;
        self.noted(Self::of_store(Call::List(()), prefix), result)
    }
}

impl<P: QueueSender> QueueSender for Traced<P> {
    async fn send_batch(
        &self,
        entries: Vec<OutgoingMessage>,
    ) -> Result<Vec<Result<MessageId, PortError>>, PortError> {
        let result = self.port.send_batch(entries).await;
        self.noted(Called::Queue(Call::Send(()), self.queue), result)
    }
}

impl<P: QueueReceiver> QueueReceiver for Traced<P> {
    async fn receive(&self, request: ReceiveRequest) -> Result<Vec<ReceivedMessage>, PortError> {
        let result = self.port.receive(request).await;
        self.noted(Called::Queue(Call::Receive(()), self.queue), result)
    }

    async fn acknowledge(&self, receipt: &ReceiptHandle) -> Result<(), PortError> {
        let result = self.port.acknowledge(receipt).await;
        self.noted(Called::Queue(Call::Acknowledge(()), self.queue), result)
    }

    async fn replace(
        &self,
        receipt: &ReceiptHandle,
        successors: Vec<Successor>,
    ) -> Result<(), PortError> {
        let to = successors.iter().map(|successor| successor.to).collect();
        let result = self.port.replace(receipt, successors).await;
        self.noted(Called::Replace(self.queue, to), result)
    }

    async fn change_visibility(
        &self,
        receipt: &ReceiptHandle,
        visibility: std::time::Duration,
    ) -> Result<(), PortError> {
        self.port.change_visibility(receipt, visibility).await
    }

    async fn counts(&self) -> Result<QueueCounts, PortError> {
        self.port.counts().await
    }
}

impl<P: WebhookClient> WebhookClient for Traced<P> {
    async fn send_if(&self, request: WebhookRequest, look: &impl LastLook) -> WebhookAnswer {
        // A request is noted when it begins: others begin while it is open.
        self.notes.note(self.actor, Called::Post, &Ok(()));
        self.port.send_if(request, look).await
    }

    fn drop_link(&self, link: &Link) {
        self.port.drop_link(link);
    }
}

/// A step that a run made, as the model has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Made<K> {
    /// The actor that made it.
    pub actor: Actor,
    /// The call.
    pub call: Call<K>,
    /// Whether its condition held, and nothing failed.
    pub ended: Ended,
}

/// The calls of a run that belong to the protocol: they are compared with a model.
#[derive(Debug)]
pub struct Run<K>(Vec<Made<K>>);

impl<K: Name> Run<K> {
    /// Those of the calls that `key` knows, in their order. A replacement is what it is on SQS: its
    /// successors are sent, and then the message is deleted.
    pub fn of(
        notes: &Notes,
        store_key: impl Fn(&str) -> Option<K>,
        queue_key: impl Fn(QueueName) -> Option<K>,
        endpoint: Option<K>,
    ) -> Self {
        let mut all = Vec::new();
        for noted in notes.all() {
            let Noted {
                actor,
                called,
                ended,
            } = noted;
            let calls: Vec<Call<K>> = match called {
                Called::Store(call, key) => store_key(&key)
                    .map(|key| call.on(key))
                    .into_iter()
                    .collect(),
                Called::Queue(call, queue) => queue_key(queue)
                    .map(|key| call.on(key))
                    .into_iter()
                    .collect(),
                Called::Replace(from, to) => {
                    let sends = to.into_iter().filter_map(&queue_key).map(Call::Send);
                    let deleted = queue_key(from).map(Call::Acknowledge);
                    sends.chain(deleted).collect()
                }
                Called::Post => endpoint.map(Call::Post).into_iter().collect(),
            };
            let made = calls.into_iter().map(|call| Made { actor, call, ended });
            all.extend(made);
        }
        Self(all)
    }

    /// These calls.
    pub fn from_calls(calls: Vec<Made<K>>) -> Self {
        Self(calls)
    }

    /// The same with the calls as `call` names them.
    #[must_use]
    pub fn renamed(self, call: impl Fn(&Made<K>) -> Call<K>) -> Self {
        let renamed = self.0.into_iter().map(|made| Made {
            call: call(&made),
            ..made
        });
        Self(renamed.collect())
    }

    /// The calls.
    pub fn calls(&self) -> &[Made<K>] {
        &self.0
    }

    /// The same with those calls alone that `is_kept` keeps, by what was kept before. A model has no
    /// call that is made again and again to the same end.
    #[must_use]
    pub fn kept(self, mut is_kept: impl FnMut(&[Made<K>], &Made<K>) -> bool) -> Self {
        let mut kept = Vec::new();
        for made in self.0 {
            if is_kept(&kept, &made) {
                kept.push(made);
            }
        }
        Self(kept)
    }
}

impl Call<()> {
    /// The same call on a key.
    pub fn on<K>(self, key: K) -> Call<K> {
        match self {
            Self::Get(()) => Call::Get(key),
            Self::PutIfAbsent(()) => Call::PutIfAbsent(key),
            Self::PutIfMatch(()) => Call::PutIfMatch(key),
            Self::Put(()) => Call::Put(key),
            Self::Delete(()) => Call::Delete(key),
            Self::List(()) => Call::List(key),
            Self::Send(()) => Call::Send(key),
            Self::Receive(()) => Call::Receive(key),
            Self::Acknowledge(()) => Call::Acknowledge(key),
            Self::Post(()) => Call::Post(key),
        }
    }
}

/// Follows a run in a model: each call must be a step that the model has then, after any events that
/// are no call, such as time that passes. Returns the states in which the model may be at the end.
///
/// Panics at the first call that the model has not, with what it would have.
pub fn follow<M, K, E>(
    name: &str,
    model: &M,
    run: &Run<K>,
    (actors_each, events_max): (usize, usize),
) -> Vec<M::State>
where
    M: Model<Action = Step<K, E>>,
    M::State: Clone + Hash + Debug,
    K: Name,
    E: Name,
{
    let mut states = unique(model.init_states());
    for (index, made) in run.calls().iter().enumerate() {
        let before = after_events(model, states, events_max);
        let mut after = Vec::new();
        for state in &before {
            for step in steps(model, state) {
                let Step::Calls(actor, call, fate) = step else {
                    continue;
                };
                let is_it = actor / actors_each == made.actor && call == made.call;
                let may_be = match made.ended {
                    Ended::Done | Ended::Refused => fate == Fate::Answered,
                    Ended::Failed => fate != Fate::Answered,
                };
                if is_it && may_be {
                    after.extend(model.next_state(state, step));
                }
            }
        }
        assert!(
            !after.is_empty(),
            "{name}: the model has no {made:?} as call {index}, but {:#?}",
            expected(model, &before)
        );
        states = unique(after);
    }
    states.into_values().collect()
}

/// The steps of a state.
fn steps<M: Model>(model: &M, state: &M::State) -> Vec<M::Action> {
    let mut actions = Vec::new();
    model.actions(state, &mut actions);
    actions
}

/// The calls that the model has in these states.
fn expected<M, K, E>(model: &M, states: &[M::State]) -> Vec<Step<K, E>>
where
    M: Model<Action = Step<K, E>>,
    K: Name,
    E: Name,
{
    let mut all = Vec::new();
    for state in states {
        for step in steps(model, state) {
            if matches!(step, Step::Calls(_, _, Fate::Answered)) && !all.contains(&step) {
                all.push(step);
            }
        }
    }
    all
}

/// These states, and those to which up to so many events lead.
fn after_events<M, K, E>(
    model: &M,
    states: HashMap<u64, M::State>,
    events_max: usize,
) -> Vec<M::State>
where
    M: Model<Action = Step<K, E>>,
    M::State: Clone + Hash,
    K: Name,
    E: Name,
{
    let mut all = states.clone();
    let mut newest = states;
    for _ in 0..events_max {
        let mut next = HashMap::new();
        for state in newest.values() {
            for step in steps(model, state) {
                if !matches!(step, Step::Other(_)) {
                    continue;
                }
                let Some(state) = model.next_state(state, step) else {
                    continue;
                };
                let hash = hash_of(&state);
                if !all.contains_key(&hash) {
                    next.insert(hash, state);
                }
            }
        }
        all.extend(next.clone());
        newest = next;
    }
    all.into_values().collect()
}

fn unique<S: Hash>(states: Vec<S>) -> HashMap<u64, S> {
    let hashed = states.into_iter().map(|state| (hash_of(&state), state));
    hashed.collect()
}

fn hash_of<S: Hash>(state: &S) -> u64 {
    let mut hasher = DefaultHasher::new();
    state.hash(&mut hasher);
    hasher.finish()
}
