//! Batches of objects: several are read together, so that many small ones share requests to the
//! queue, and no more is sent than was asked for.

use std::collections::VecDeque;
use std::error::Error;

use bytes::Bytes;
use futures_util::future::join_all;
use posthaste_core::model::Timestamp;
use posthaste_core::release::messages::expired_first;
use posthaste_core::release::{ReleaseQuota, ReleasedCounts};
use posthaste_ports::Ports;
use posthaste_services::catch_panic::catch_panic;

use crate::objects::{self, OpenedObject, ReleaseError, SentMessages};
use crate::run::WakeRun;

/// An object and how many of its messages are sent now: the first ones.
type ObjectShare = (OpenedObject, usize);

/// Releases deliveries of these objects, in order and as far as the quota goes. Keys of objects
/// that are done with, or are tried again in the next run, leave; one that holds more than fits
/// stays in front.
pub(crate) async fn release_within_quota<P: Ports>(
    run: WakeRun<'_, P>,
    keys: &mut VecDeque<String>,
    quota: ReleaseQuota,
) -> ReleasedCounts {
    let mut released = ReleasedCounts::default();
    // One object shows how many more are likely to fit.
    let mut at_once = 1;
    while quota.is_open(&released) && !keys.is_empty() && run.may_begin() {
        let max = quota.rest_after(&released).max.deliveries;
        let shares = open_objects(run, keys, at_once, max, &mut released).await;
        let objects = shares.len();
        let messages = shares.iter().map(|(_, count)| count).sum();
        released.add_released(send_and_close(run, shares, keys).await);
        at_once = quota
            .rest_after(&released)
            .objects_to_read(objects, messages);
    }
    released
}

/// Releases the deliveries of these objects that have expired, and nothing else. Keys of objects in
/// which something is left stay, in order. Answers also the last key up to which everything was
/// looked at, and the queue took what was to go.
pub(crate) async fn release_expired<P: Ports>(
    run: WakeRun<'_, P>,
    keys: &mut VecDeque<String>,
    now: Timestamp,
    at_once: usize,
) -> (ReleasedCounts, Option<String>) {
    let mut released = ReleasedCounts::default();
    let mut left = VecDeque::new();
    let mut last = None;
    while !keys.is_empty() && !released.is_refused && run.may_begin() {
        let some: Vec<_> = keys.drain(..at_once.clamp(1, keys.len())).collect();
        let last_of_some = some.last().cloned();
        let shares = open_expired(run, some, now, &mut left, &mut released).await;
        released.add_released(send_and_close(run, shares, &mut left).await);
        if !released.is_refused {
            last = last_of_some;
        }
    }
    left.append(keys);
    left.make_contiguous().sort_unstable();
    *keys = left;
    (released, last)
}

/// Reads the next objects side by side. Objects that do not fit go back in front.
async fn open_objects<P: Ports>(
    run: WakeRun<'_, P>,
    keys: &mut VecDeque<String>,
    at_once: usize,
    max: usize,
    released: &mut ReleasedCounts,
) -> Vec<ObjectShare> {
    let some = keys.drain(..at_once.min(keys.len())).collect();
    let mut shares = Vec::new();
    let mut room = max;
    let mut unread = Vec::new();
    for object in read_objects(run, some, released).await {
        if room == 0 {
            unread.push(object.key);
            continue;
        }
        let count = object.messages.len().min(room);
        room -= count;
        shares.push((object, count));
    }
    unread
        .into_iter()
        .rev()
        .for_each(|key| keys.push_front(key));
    shares
}

/// Reads objects side by side. Objects in which nothing has expired go to `left`.
async fn open_expired<P: Ports>(
    run: WakeRun<'_, P>,
    some: Vec<String>,
    now: Timestamp,
    left: &mut VecDeque<String>,
    released: &mut ReleasedCounts,
) -> Vec<ObjectShare> {
    let mut shares = Vec::new();
    for OpenedObject {
        key,
        messages,
        etag,
    } in read_objects(run, some, released).await
    {
        match expired_first(messages, now) {
            (_, 0) => left.push_back(key),
            (messages, count) => shares.push((
                OpenedObject {
                    key,
                    messages,
                    etag,
                },
                count,
            )),
        }
    }
    shares
}

/// Reads objects side by side. Leaves out objects that are gone, and objects that cannot be read,
/// which it counts.
async fn read_objects<P: Ports>(
    run: WakeRun<'_, P>,
    keys: Vec<String>,
    released: &mut ReleasedCounts,
) -> Vec<OpenedObject> {
    let opened = join_all(keys.iter().map(|key| catch_panic(objects::open(run, key)))).await;
    let mut read = Vec::with_capacity(keys.len());
    for (key, opened) in keys.into_iter().zip(opened) {
        match opened.map_err(ReleaseError::Panicked).flatten() {
            Ok(object) => read.extend(object),
            Err(error) => record_failed_object(released, &key, &error),
        }
    }
    read
}

/// Sends the shares together, then closes each object. Keys of objects that hold more go back in
/// front.
async fn send_and_close<P: Ports>(
    run: WakeRun<'_, P>,
    shares: Vec<ObjectShare>,
    keys: &mut VecDeque<String>,
) -> ReleasedCounts {
    let messages: Vec<Bytes> = shares
        .iter()
        .flat_map(|(object, count)| object.messages[..*count].iter().cloned())
        .collect();
    let SentMessages { is_sent, first } = objects::send_messages(run, &messages).await;
    let mut rest = is_sent.as_slice();
    let mut closing = Vec::new();
    for (object, count) in shares {
        let (own, others) = rest.split_at(count.min(rest.len()));
        rest = others;
        let key = object.key.clone();
        let has_more = count < object.messages.len();
        let close = objects::close(run.ports, object, own, first.clone());
        closing.push(async move { (key, has_more, catch_panic(close).await) });
    }
    let sent = is_sent.iter().filter(|is_sent| **is_sent).count();
    let mut released = ReleasedCounts {
        sent,
        objects: closing.len(),
        ..ReleasedCounts::default()
    };
    // Without a filter only the last one can have more than fits.
    for (key, has_more, closed) in join_all(closing).await {
        match closed.map_err(ReleaseError::Panicked).flatten() {
            Ok(rest) if has_more => keys.push_front(rest),
            Ok(_) => {}
            Err(error) => record_failed_object(&mut released, &key, &error),
        }
    }
    released
}

/// Counts an object that stays until the next run.
fn record_failed_object(released: &mut ReleasedCounts, key: &str, error: &ReleaseError) {
    released.left += 1;
    released.is_refused |= error.is_refusal();
    tracing::error!(%key, error = error as &dyn Error, "waiting deliveries not released");
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use posthaste_core::release::ReleaseAmount;
    use posthaste_ports::Clock;

    use super::*;
    use crate::testing::Kit;

    const MINUTE: Duration = Duration::from_mins(1);

    /// Releases deliveries of these objects within a quota; answers the result, and the keys that
    /// are left.
    async fn release(
        kit: &Kit,
        keys: &[String],
        deliveries: usize,
        objects: usize,
    ) -> (ReleasedCounts, Vec<String>) {
        let mut left = VecDeque::from(keys.to_vec());
        let quota = ReleaseQuota {
            max: ReleaseAmount {
                deliveries,
                objects,
            },
            at_once: 8,
        };
        let released = release_within_quota(kit.run(), &mut left, quota).await;
        (released, left.into())
    }

    /// Objects of three deliveries each.
    fn park(kit: &Kit, count: u32) -> Vec<String> {
        (0..count)
            .map(|n| kit.park(n * MINUTE, &n.to_string(), 3))
            .collect()
    }

    #[tokio::test]
    async fn release_fills_the_quota_and_the_last_object_keeps_the_rest() {
        let kit = Kit::new();
        let keys = park(&kit, 9);
        let (released, left) = release(&kit, &keys, 20, usize::MAX).await;
        assert_eq!((released.sent, released.objects, released.left), (20, 7, 0));
        assert_eq!(
            (left, kit.left(&keys[6]).await.len()),
            (keys[6..].to_vec(), 1)
        );
        assert_eq!(kit.queue.take_bodies().len(), 20);
    }

    #[tokio::test]
    async fn release_opens_at_most_the_objects_of_the_quota() {
        let kit = Kit::new();
        let keys = park(&kit, 4);
        let (released, left) = release(&kit, &keys, usize::MAX, 2).await;
        assert_eq!(
            (released.sent, released.objects, left),
            (6, 2, keys[2..].to_vec())
        );
    }

    /// An object that cannot be read is left for the next run and takes no other's place.
    #[tokio::test]
    async fn unreadable_object_is_left_and_takes_no_room_of_others() {
        let kit = Kit::new();
        let keys = park(&kit, 3);
        kit.store.write(&keys[0], "{");
        let (released, left) = release(&kit, &keys, 6, usize::MAX).await;
        assert_eq!(
            (released.sent, released.left, released.is_refused),
            (6, 1, false)
        );
        assert!(left.is_empty());
    }

    #[tokio::test]
    async fn a_queue_that_takes_nothing_ends_it() {
        let kit = Kit::refusing(|_| true);
        let keys = park(&kit, 5);
        let (released, left) = release(&kit, &keys, 100, usize::MAX).await;
        assert_eq!(
            (released.sent, released.left, released.is_refused),
            (0, 1, true)
        );
        assert_eq!(left, keys[1..]);
    }

    #[tokio::test]
    async fn unexpired_objects_stay_and_the_last_looked_at_key_is_known() {
        let kit = Kit::new();
        let keys = park(&kit, 5);
        let mut left = VecDeque::from(keys.clone());
        let (released, last) = release_expired(kit.run(), &mut left, kit.clock.now(), 2).await;
        assert_eq!(
            (released, last.as_ref()),
            (ReleasedCounts::default(), keys.last())
        );
        assert_eq!(Vec::from(left), keys);
    }
}
