//! Steps of a protocol, named as the calls of the ports.

use std::fmt::Debug;
use std::hash::Hash;

/// An actor: a run, a worker, a request.
pub type Actor = usize;

/// The version of an object. No two writes of an object have the same one.
pub type Version = u8;

/// The condition of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Condition {
    /// There is no object.
    IfAbsent,
    /// The object has this version.
    IfMatch(Version),
    /// None. No protocol of the code writes like this where it should compare: variants do.
    Always,
}

/// A call of a port, as the traits in `posthaste_ports` have it, on a key or a queue of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Call<K> {
    /// `ObjectStore::get`, and `get_if_changed`.
    Get(K),
    /// `ObjectStore::put` with `IfAbsent`.
    PutIfAbsent(K),
    /// `ObjectStore::put` with `IfMatch`.
    PutIfMatch(K),
    /// `ObjectStore::put` with `Always`.
    Put(K),
    /// `ObjectStore::delete`.
    Delete(K),
    /// `ObjectStore::list`.
    List(K),
    /// `QueueSender::send_batch`.
    Send(K),
    /// `QueueReceiver::receive`.
    Receive(K),
    /// `QueueReceiver::acknowledge`.
    Acknowledge(K),
    /// `WebhookClient::send`.
    Post(K),
}

/// The fate of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fate {
    /// The call happens, and its caller gets the answer.
    Answered,
    /// The call happens, and its caller sees an error.
    AnswerLost,
    /// The call does not happen, and its caller sees an error.
    NotMade,
}

/// A step of a model. `E` are the events that are no call: time that passes, work that begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step<K, E> {
    /// An actor makes its next call.
    Calls(Actor, Call<K>, Fate),
    /// An actor ends in the middle, before its next call.
    Dies(Actor),
    /// Something else.
    Other(E),
}

impl<K: Copy> Call<K> {
    /// The write of an object on this condition.
    pub fn put(key: K, condition: Condition) -> Self {
        match condition {
            Condition::IfAbsent => Self::PutIfAbsent(key),
            Condition::IfMatch(_) => Self::PutIfMatch(key),
            Condition::Always => Self::Put(key),
        }
    }

    /// Whether the call changes nothing, so that a lost answer is as good as no call.
    pub fn is_read(&self) -> bool {
        matches!(self, Self::Get(_) | Self::List(_))
    }

    /// The fates that a call may have, with and without a fault to come.
    pub fn fates(&self, may_fail: bool) -> &'static [Fate] {
        match (may_fail, self.is_read()) {
            (false, _) => &[Fate::Answered],
            (true, true) => &[Fate::Answered, Fate::NotMade],
            (true, false) => &[Fate::Answered, Fate::AnswerLost, Fate::NotMade],
        }
    }
}

/// A key or an event of a model.
pub trait Name: Debug + Clone + Copy + PartialEq + Eq + Hash + Send + Sync + 'static {}

impl<T: Debug + Clone + Copy + PartialEq + Eq + Hash + Send + Sync + 'static> Name for T {}
