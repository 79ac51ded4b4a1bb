//! Work that runs to its end, also when its client is gone: a server drops the future of such a
//! request.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;
use tracing::Instrument;

/// Work that continues as a task of its own when this is dropped before its end. Until then it is
/// done by the task that waits for it, so that a request does not move between threads.
pub struct CompletingWork<T: Send + 'static>(Option<Pin<Box<dyn Future<Output = T> + Send>>>);

impl<T: Send + 'static> CompletingWork<T> {
    /// Wraps the work, which begins with the first poll.
    pub fn new(work: impl Future<Output = T> + Send + 'static) -> Self {
        Self(Some(Box::pin(work)))
    }
}

impl<T: Send + 'static> Future for CompletingWork<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        // Work that panics is gone, and is not polled again.
        let Some(mut work) = self.0.take() else {
            return Poll::Pending;
        };
        let polled = work.as_mut().poll(context);
        if polled.is_pending() {
            self.0 = Some(work);
        }
        polled
    }
}

impl<T: Send + 'static> Drop for CompletingWork<T> {
    fn drop(&mut self) {
        // Without a runtime the process is being taken down, and the work with it.
        if let Some(work) = self.0.take()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(work.in_current_span());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::Notify;

    use super::*;

    /// Work that says when it has begun, waits until it may continue, and then says that it has
    /// ended.
    fn steps() -> ([Arc<Notify>; 3], CompletingWork<u8>) {
        let all = [0; 3].map(|_| Arc::new(Notify::new()));
        let [begun, may_go_on, ended] = all.clone();
        let work = async move {
            begun.notify_one();
            may_go_on.notified().await;
            ended.notify_one();
            7
        };
        (all, CompletingWork::new(work))
    }

    #[tokio::test]
    async fn work_that_is_waited_for_answers() {
        let ([_, may_go_on, _], work) = steps();
        may_go_on.notify_one();
        assert_eq!(work.await, 7);
    }

    #[tokio::test]
    async fn work_whose_caller_is_gone_goes_on() {
        let ([begun, may_go_on, ended], work) = steps();
        tokio::select! {
            _ = work => panic!("it may not end yet"),
            () = begun.notified() => {}
        }
        may_go_on.notify_one();
        ended.notified().await;
    }

    #[tokio::test]
    async fn work_that_panics_is_not_done_again() {
        let begun = Arc::new(Notify::new());
        let task = {
            let begun = Arc::clone(&begun);
            let work = async move {
                begun.notify_one();
                panic!("a fault");
            };
            tokio::spawn(CompletingWork::<()>::new(work))
        };
        assert!(task.await.unwrap_err().is_panic());
        begun.notified().await;
        tokio::task::yield_now().await;
    }
}
