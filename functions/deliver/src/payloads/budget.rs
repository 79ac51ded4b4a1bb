//! The limit on stored payloads over all requests: how many are read at once, and how many bytes of
//! them are held.
//!
//! A request takes its whole share of the bytes before it reads anything and after it was admitted
//! to its link. From then on it waits only for reads, and reads wait for nothing. So requests never
//! wait for each other in a circle.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The limit over one process.
#[derive(Debug)]
pub(crate) struct PayloadBudget {
    bytes: Arc<Semaphore>,
    bytes_max: u32,
    reads: Semaphore,
}

impl PayloadBudget {
    pub(crate) fn new(bytes_max: u32, reads_max: usize) -> Self {
        let bytes_max = bytes_max.max(1);
        let bytes = Arc::new(Semaphore::new(
            usize::try_from(bytes_max).unwrap_or(Semaphore::MAX_PERMITS),
        ));
        Self {
            bytes,
            bytes_max,
            reads: Semaphore::new(reads_max.max(1)),
        }
    }

    /// Waits until this many bytes may be held, and answers the right to hold them; `None` for zero
    /// bytes. Requests are served in order, so that a large one is not passed by again and
    /// again. A request for more than the budget gets all of it, and is alone with it.
    pub(crate) async fn hold_bytes(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let share = u32::try_from(bytes).unwrap_or(u32::MAX).min(self.bytes_max);
        if share == 0 {
            return None;
        }
        // The semaphore is never closed.
        Arc::clone(&self.bytes).acquire_many_owned(share).await.ok()
    }

    /// Reads as soon as fewer reads than the limit are under way.
    pub(crate) async fn read_in_turn<T>(&self, read: impl Future<Output = T>) -> T {
        let _turn = self.reads.acquire().await;
        read.await
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn poll<T>(future: impl Future<Output = T>) -> Poll<T> {
        pin!(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn bytes_are_held_until_they_are_given_back() {
        let budget = PayloadBudget::new(10, 1);
        let held = poll(budget.hold_bytes(6));
        assert!(held.is_ready());
        assert!(poll(budget.hold_bytes(5)).is_pending());
        assert!(poll(budget.hold_bytes(4)).is_ready());
        drop(held);
        assert!(poll(budget.hold_bytes(10)).is_ready());
    }

    #[test]
    fn a_request_for_more_than_there_is_is_alone_with_all_of_it() {
        let budget = PayloadBudget::new(10, 1);
        let other = poll(budget.hold_bytes(1));
        assert!(poll(budget.hold_bytes(usize::MAX)).is_pending());
        drop(other);
        let held = poll(budget.hold_bytes(usize::MAX));
        assert!(held.is_ready());
        assert!(poll(budget.hold_bytes(1)).is_pending());
    }

    #[test]
    fn a_request_for_nothing_does_not_wait() {
        let budget = PayloadBudget::new(10, 1);
        let _held = poll(budget.hold_bytes(10));
        assert!(poll(budget.hold_bytes(0)).is_ready());
    }

    #[test]
    fn a_large_request_is_not_passed_by() {
        let budget = PayloadBudget::new(10, 1);
        let held = poll(budget.hold_bytes(5));
        let mut much = pin!(budget.hold_bytes(10));
        assert!(
            much.as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
                .is_pending()
        );
        assert!(poll(budget.hold_bytes(1)).is_pending());
        drop(held);
        assert!(
            much.as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
                .is_ready()
        );
    }

    #[test]
    fn a_dropped_read_makes_room_for_another() {
        let budget = PayloadBudget::new(10, 2);
        {
            let mut one = pin!(budget.read_in_turn(pending::<()>()));
            let mut two = pin!(budget.read_in_turn(pending::<()>()));
            let mut context = Context::from_waker(Waker::noop());
            assert!(
                one.as_mut().poll(&mut context).is_pending()
                    && two.as_mut().poll(&mut context).is_pending()
            );
            assert!(poll(budget.read_in_turn(async {})).is_pending());
        }
        assert!(poll(budget.read_in_turn(async {})).is_ready());
    }
}
