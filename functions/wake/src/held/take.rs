//! Taking deliveries out of objects: several are read together, so that many small ones share requests to the queue, and
//! no more is sent than was asked for.

use std::collections::VecDeque;
use std::error::Error;

use bytes::Bytes;
use futures_util::future::join_all;
use posthaste_core::model::time::Timestamp;
use posthaste_core::release::speed::Amount;
use posthaste_ports::{Clock, Entropy, ObjectStore, QueueSender};
use posthaste_services::catch_panic::catch_panic;

use crate::Wake;
use crate::limits::Limits;
use crate::release::{Opened, ReleaseError, Sent};

/// What was taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    /// Deliveries that were sent.
    pub(crate) sent: usize,
    /// Objects that some were sent of.
    pub(crate) objects: usize,
    /// Objects that are tried again in the next run.
    pub(crate) left: usize,
    /// Whether the queue did not take something, or not in time.
    pub(crate) is_refused: bool,
}

/// How much is taken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Portion {
    /// Most deliveries, and most objects that they are taken of.
    pub(crate) max: Amount,
    /// Most objects that are read at once.
    pub(crate) at_once: usize,
}

impl Portion {
    /// No more deliveries than this.
    pub(crate) fn at_most(self, deliveries: usize) -> Self {
        let deliveries = deliveries.min(self.max.deliveries);
        Self { max: Amount { deliveries, ..self.max }, ..self }
    }

    /// What is left of it when so much has gone.
    pub(crate) fn after(self, taken: &Taken) -> Self {
        Self { max: self.max.minus(taken.amount()), ..self }
    }
}

/// An object and how many of its messages are sent now: the first ones.
type Share = (Opened, usize);

impl Taken {
    /// What was sent.
    pub(crate) fn amount(&self) -> Amount {
        Amount { deliveries: self.sent, objects: self.objects }
    }

    pub(crate) fn add(&mut self, more: Self) {
        self.sent += more.sent;
        self.objects += more.objects;
        self.left += more.left;
        self.is_refused |= more.is_refused;
    }
}

impl<Q, S, D, C, E> Wake<Q, S, D, C, E>
where
    Q: QueueSender,
    S: ObjectStore,
    D: ObjectStore,
    C: Clock,
    E: Entropy,
{
    /// Sends a portion of the deliveries of these objects, in order. Keys of objects that are done with, or are tried again in
    /// the next run, leave; one that holds more than fits stays in front.
    pub(crate) async fn take(&self, keys: &mut VecDeque<String>, portion: Portion, limits: Limits) -> Taken {
        let mut taken = Taken::default();
        // One object tells how many more are likely to fit.
        let mut at_once = 1;
        let mut left = portion.max;
        while !left.is_nothing() && !keys.is_empty() && !taken.is_refused && self.may_begin(limits) {
            let shares = self.open_some(keys, at_once, left.deliveries, &mut taken).await;
            let messages: usize = shares.iter().map(|(_, count)| count).sum();
            let per_object = messages.div_ceil(shares.len().max(1)).max(1);
            taken.add(self.send_shares(shares, keys, limits).await);
            left = portion.after(&taken).max;
            let at_once_max = portion.at_once.min(left.objects).max(1);
            at_once = (left.deliveries / per_object).clamp(1, at_once_max);
        }
        taken
    }

    /// Sends what has expired of these objects, and nothing else. Keys of objects in which something is left stay, in order.
    /// Answers also the last key up to which everything was looked at, and the queue took what was to go.
    pub(crate) async fn take_expired(
        &self,
        keys: &mut VecDeque<String>,
        now: Timestamp,
        at_once: usize,
        limits: Limits,
    ) -> (Taken, Option<String>) {
        let (mut taken, mut left, mut last) = (Taken::default(), VecDeque::new(), None);
        while !keys.is_empty() && !taken.is_refused && self.may_begin(limits) {
            let some = at_once.clamp(1, keys.len());
            let last_of_some = keys.get(some - 1).cloned();
            let shares = self.open_expired(keys.drain(..some).collect(), now, &mut left, &mut taken).await;
            taken.add(self.send_shares(shares, &mut left, limits).await);
            if !taken.is_refused {
                last = last_of_some;
            }
        }
        left.append(keys);
        left.make_contiguous().sort_unstable();
        *keys = left;
        (taken, last)
    }

    /// Reads objects side by side. Those in which nothing has expired go to `left`.
    async fn open_expired(
        &self,
        some: Vec<String>,
        now: Timestamp,
        left: &mut VecDeque<String>,
        taken: &mut Taken,
    ) -> Vec<Share> {
        let opened = join_all(some.iter().map(|key| catch_panic(self.open(key)))).await;
        let mut shares = Vec::new();
        for (key, opened) in some.into_iter().zip(opened) {
            match opened.map_err(ReleaseError::Panicked).flatten() {
                Ok(Some(mut object)) => match object.put_expired_first(now) {
                    0 => left.push_back(key),
                    count => shares.push((object, count)),
                },
                Ok(None) => {}
                Err(error) => taken.fail(&key, &error),
            }
        }
        shares
    }

    /// Reads the next objects side by side. What does not fit goes back in front.
    async fn open_some(
        &self,
        keys: &mut VecDeque<String>,
        at_once: usize,
        max: usize,
        taken: &mut Taken,
    ) -> Vec<Share> {
        let some: Vec<_> = keys.drain(..at_once.min(keys.len())).collect();
        let opened = join_all(some.iter().map(|key| catch_panic(self.open(key)))).await;
        let (mut shares, mut room, mut unread) = (Vec::new(), max, Vec::new());
        for (key, opened) in some.into_iter().zip(opened) {
            match opened.map_err(ReleaseError::Panicked).flatten() {
                Ok(Some(_)) if room == 0 => unread.push(key),
                Ok(Some(object)) => {
                    let count = object.messages.len().min(room);
                    room -= count;
                    shares.push((object, count));
                }
                Ok(None) => {}
                Err(error) => taken.fail(&key, &error),
            }
        }
        unread.into_iter().rev().for_each(|key| keys.push_front(key));
        shares
    }

    /// Sends the shares together, then deletes or shortens each object.
    async fn send_shares(&self, shares: Vec<Share>, keys: &mut VecDeque<String>, limits: Limits) -> Taken {
        let messages: Vec<Bytes> =
            shares.iter().flat_map(|(object, count)| object.messages[..*count].iter().cloned()).collect();
        let Sent { is_sent, first } = self.send_in_waves(&messages, limits).await;
        let mut rest = is_sent.as_slice();
        let mut closing = Vec::new();
        for (object, count) in shares {
            let (own, others) = rest.split_at(count.min(rest.len()));
            rest = others;
            let (key, has_more) = (object.key.clone(), count < object.messages.len());
            let close = self.end_object(object, own, first.clone());
            closing.push(async move { (key, has_more, catch_panic(close).await) });
        }
        let sent = is_sent.iter().filter(|is_sent| **is_sent).count();
        let mut taken = Taken { sent, objects: closing.len(), ..Taken::default() };
        // Without a filter only the last one can have more than fits.
        for (key, has_more, closed) in join_all(closing).await {
            match closed.map_err(ReleaseError::Panicked).flatten() {
                Ok(()) if has_more => keys.push_front(key),
                Ok(()) => {}
                Err(error) => taken.fail(&key, &error),
            }
        }
        taken
    }
}

impl Taken {
    fn fail(&mut self, key: &str, error: &ReleaseError) {
        self.left += 1;
        self.is_refused |= error.is_refusal();
        tracing::error!(%key, error = error as &dyn Error, "waiting deliveries not released");
    }
}
