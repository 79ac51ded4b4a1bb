//! The invocations of one loop that are under way.
//!
//! The loop itself drives the last of them while it waits for more messages. So a message that
//! comes alone is worked on where it was received, without a change of the thread. An invocation
//! that is not over when the next begins goes on as a task of its own.

use std::future::Future;
use std::pin::{Pin, pin};

use futures_util::future::{Either, select};
use tokio::task::JoinSet;

/// The invocations of one loop. Dropping this drops them.
#[derive(Default)]
pub(super) struct LoopInvocations {
    own: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    others: JoinSet<()>,
}

impl LoopInvocations {
    /// Begins an invocation, which must not panic. It is driven by the next call of another method.
    pub(super) fn begin(&mut self, invocation: impl Future<Output = ()> + Send + 'static) {
        if let Some(before) = self.own.replace(Box::pin(invocation)) {
            self.others.spawn(before);
        }
    }

    /// Waits for `work`, and drives the last invocation meanwhile. The invocation comes first: the
    /// work may be ready again and again.
    pub(super) async fn drive_beside<T>(&mut self, work: impl Future<Output = T>) -> T {
        while self.others.try_join_next().is_some() {}
        let work = pin!(work);
        let Some(own) = self.own.as_mut() else {
            return work.await;
        };
        match select(own, work).await {
            Either::Left(((), work)) => {
                self.own = None;
                work.await
            }
            Either::Right((done, _)) => done,
        }
    }

    /// The number that began and were not seen to end yet.
    pub(super) fn len(&self) -> usize {
        self.others.len() + usize::from(self.own.is_some())
    }

    /// Waits until fewer than `count` are under way.
    pub(super) async fn wait_for_fewer_than(&mut self, count: usize) {
        while self.len() >= count {
            match self.own.as_mut() {
                None => drop(self.others.join_next().await),
                Some(own) => {
                    tokio::select! {
                        () = own.as_mut() => self.own = None,
                        Some(_) = self.others.join_next() => {}
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn the_last_invocation_is_driven_while_the_loop_waits() {
        let mut invocations = LoopInvocations::default();
        let (done, is_done) = oneshot::channel();
        invocations.begin(async move { done.send(7).unwrap() });
        assert_eq!(invocations.drive_beside(is_done).await, Ok(7));
        invocations.wait_for_fewer_than(1).await;
    }

    #[tokio::test]
    async fn an_invocation_that_is_not_over_goes_on_beside_the_next() {
        let mut invocations = LoopInvocations::default();
        let (go_on, waits) = oneshot::channel();
        let (done, is_done) = oneshot::channel();
        invocations.begin(async move {
            waits.await.unwrap();
            done.send(1).unwrap();
        });
        invocations.drive_beside(ready(())).await;
        invocations.begin(async move { go_on.send(()).unwrap() });
        // The second lets the first end.
        assert_eq!(invocations.drive_beside(is_done).await, Ok(1));
        invocations.wait_for_fewer_than(1).await;
    }

    #[tokio::test]
    async fn a_loop_with_a_bound_waits_for_any_of_its_invocations() {
        let mut invocations = LoopInvocations::default();
        invocations.begin(pending());
        invocations.drive_beside(ready(())).await;
        invocations.begin(ready(()));
        invocations.wait_for_fewer_than(2).await;
        invocations.begin(pending());
        invocations.begin(ready(()));
        invocations.wait_for_fewer_than(3).await;
    }
}
