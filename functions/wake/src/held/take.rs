//! Taking deliveries out of objects: several are read together, so that many small ones share requests to the queue, and
//! no more is sent than was asked for.

use std::collections::VecDeque;
use std::error::Error;

use bytes::Bytes;
use futures_util::future::join_all;
use posthaste_ports::guard::guarded;
use posthaste_ports::{Clock, Entropy, ObjectStore, QueueSender};

use crate::Wake;
use crate::limits::Limits;
use crate::release::{Opened, ReleaseError, Sent};

/// What was taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    /// Deliveries that were sent.
    pub(crate) sent: usize,
    /// Objects that are tried again in the next run.
    pub(crate) left: usize,
    /// Whether the queue did not take something, or not in time.
    pub(crate) is_refused: bool,
}

/// How much is taken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Portion {
    /// Most deliveries.
    pub(crate) deliveries: usize,
    /// Most objects that are read at once.
    pub(crate) objects: usize,
}

/// An object and how many of its messages are sent now: the first ones.
type Share = (Opened, usize);

impl Taken {
    pub(crate) fn add(&mut self, more: Self) {
        self.sent += more.sent;
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
        let Portion { deliveries: max, objects } = portion;
        let mut taken = Taken::default();
        // One object tells how many more are likely to fit.
        let mut at_once = 1;
        while taken.sent < max && !keys.is_empty() && !taken.is_refused && self.may_begin(limits) {
            let shares = self.open_some(keys, at_once, max - taken.sent, &mut taken).await;
            let messages: usize = shares.iter().map(|(_, count)| count).sum();
            let per_object = messages.div_ceil(shares.len().max(1)).max(1);
            taken.add(self.send_shares(shares, keys, limits).await);
            at_once = (max.saturating_sub(taken.sent) / per_object).clamp(1, objects.max(1));
        }
        taken
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
        let opened = join_all(some.iter().map(|key| guarded(self.open(key)))).await;
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
            closing.push(async move { (key, has_more, guarded(close).await) });
        }
        let mut taken =
            Taken { sent: is_sent.iter().filter(|is_sent| **is_sent).count(), ..Taken::default() };
        // Only the last one can have more than fits.
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
