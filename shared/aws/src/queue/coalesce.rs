//! Sharing of batch requests among concurrent callers: items that are asked for within a moment go
//! together.
//!
//! A full request is sent at once. A request that is not full waits a moment for more items, or,
//! when as many requests as are allowed are under way, until one of them returns. Requests run in
//! tasks of their own, so a caller that is dropped or panics takes nothing from the others.

use std::collections::VecDeque;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use parking_lot::Mutex;
use posthaste_core::model::{SQS_BATCH_ENTRIES_MAX, SQS_MESSAGE_BYTES_MAX};
use posthaste_ports::{Clock, ErrorKind, PortError};
use tokio::sync::oneshot;

/// Time that the first item of a request waits for others. The events behind it have failed and
/// back off for ten seconds at least, so the moment delays no event; a request saved is worth some
/// 120 ms of a 256 MB function.
pub(super) const LINGER: Duration = Duration::from_millis(20);

/// Most requests of one lane that are under way at once.
pub(super) const REQUESTS_AT_ONCE_MAX: usize = 8;

/// The request of a lane, for items that go together.
pub(super) trait Request: Send + Sync + 'static {
    type Item: Clone + Send;

    /// The name of the operation, as it fits "failed to …".
    const DOING: &'static str;

    /// Bytes that an item takes of a request's size.
    fn bytes(item: &Self::Item) -> usize;

    /// Sends one request for all items. The answer has one result per item, in order.
    fn call(
        &self,
        items: Vec<Self::Item>,
    ) -> impl Future<Output = Result<Vec<Result<(), PortError>>, PortError>> + Send;
}

/// Why an item was not done.
#[derive(Debug)]
pub(super) enum Failed {
    /// The request was answered, and the answer names this error for the item.
    Item(PortError),
    /// The request failed as a whole.
    Request(Arc<PortError>),
}

impl From<Failed> for PortError {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Item(error) => error,
            Failed::Request(error) => Self::with_cause(error.doing, error.kind, error),
        }
    }
}

/// Items of one kind and their requests.
#[derive(Debug)]
pub(super) struct Lane<R: Request, C> {
    request: R,
    clock: C,
    gathered: Mutex<Gathered<R::Item>>,
}

#[derive(Debug)]
struct Gathered<T> {
    waiting: VecDeque<Waiting<T>>,
    /// Size of all that wait.
    bytes: usize,
    /// Tasks that linger or have a request under way.
    tasks: usize,
    /// A task lingers, and will take the waiting items.
    is_lingering: bool,
}

#[derive(Debug)]
struct Waiting<T> {
    item: T,
    bytes: usize,
    answer: oneshot::Sender<Result<(), Failed>>,
}

/// The first step of a task.
enum Begin<T> {
    Linger,
    Call(Vec<Waiting<T>>),
}

impl<R: Request, C: Clock> Lane<R, C> {
    pub(super) fn new(request: R, clock: C) -> Self {
        let gathered = Gathered {
            waiting: VecDeque::new(),
            bytes: 0,
            tasks: 0,
            is_lingering: false,
        };
        Self {
            request,
            clock,
            gathered: Mutex::new(gathered),
        }
    }

    /// Does one item together with others. It is done even if the caller is dropped.
    pub(super) async fn ask(self: &Arc<Self>, item: R::Item) -> Result<(), Failed> {
        let (answer, answered) = oneshot::channel();
        self.gathered.lock().push(Waiting {
            bytes: R::bytes(&item),
            item,
            answer,
        });
        self.dispatch();
        answered.await.unwrap_or_else(|_| {
            let cause = "the request that it shared ended without an answer";
            Err(Failed::Item(PortError::with_cause(
                R::DOING,
                ErrorKind::Other,
                cause,
            )))
        })
    }

    /// Starts the tasks that are needed.
    fn dispatch(self: &Arc<Self>) {
        // Every turn starts a task, and their number is bounded.
        while let Some(begin) = self.gathered.lock().next() {
            tokio::spawn(Arc::clone(self).run(begin));
        }
    }

    async fn run(self: Arc<Self>, begin: Begin<R::Item>) {
        let together = match begin {
            Begin::Call(together) => together,
            Begin::Linger => {
                self.clock.sleep(LINGER).await;
                let together = self.gathered.lock().end_linger();
                // Items that did not fit need another task.
                self.dispatch();
                together
            }
        };
        // The panic hook logs a panic; the waiting callers get the error that their answer is lost.
        let _ = AssertUnwindSafe(self.call(together)).catch_unwind().await;
        self.gathered.lock().tasks -= 1;
        self.dispatch();
    }

    async fn call(&self, together: Vec<Waiting<R::Item>>) {
        if together.is_empty() {
            return;
        }
        let items = together
            .iter()
            .map(|waiting| waiting.item.clone())
            .collect();
        match self.request.call(items).await {
            Ok(results) => answer_each(R::DOING, together, results),
            Err(error) if error.kind == ErrorKind::Invalid && together.len() > 1 => {
                self.call_apart(together).await;
            }
            Err(error) => {
                let error = Arc::new(error);
                for one in together {
                    one.tell(Err(Failed::Request(Arc::clone(&error))));
                }
            }
        }
    }

    /// Repeats a refused request item by item, so that only the item at fault is refused.
    async fn call_apart(&self, together: Vec<Waiting<R::Item>>) {
        for one in together {
            match self.request.call(vec![one.item.clone()]).await {
                Ok(results) => answer_each(R::DOING, vec![one], results),
                Err(error) => one.tell(Err(Failed::Request(Arc::new(error)))),
            }
        }
    }
}

/// Sends each caller its result. An item without a result is unknown, which is never a success.
fn answer_each<T>(
    doing: &'static str,
    together: Vec<Waiting<T>>,
    results: Vec<Result<(), PortError>>,
) {
    let mut results = results.into_iter();
    for one in together {
        let unknown = || Err(PortError::new(doing, ErrorKind::Other));
        one.tell(results.next().unwrap_or_else(unknown).map_err(Failed::Item));
    }
}

impl<T> Waiting<T> {
    fn tell(self, result: Result<(), Failed>) {
        // The caller may be gone; its item stays done.
        let _ = self.answer.send(result);
    }
}

impl<T> Gathered<T> {
    fn push(&mut self, one: Waiting<T>) {
        self.bytes += one.bytes;
        self.waiting.push_back(one);
    }

    /// The first step of the next task, if one is needed and allowed. The task is counted.
    fn next(&mut self) -> Option<Begin<T>> {
        if self.tasks == REQUESTS_AT_ONCE_MAX || self.waiting.is_empty() {
            return None;
        }
        let begin = if self.is_full() {
            Begin::Call(self.take())
        } else if self.is_lingering {
            return None;
        } else {
            self.is_lingering = true;
            Begin::Linger
        };
        self.tasks += 1;
        Some(begin)
    }

    fn end_linger(&mut self) -> Vec<Waiting<T>> {
        self.is_lingering = false;
        self.take()
    }

    fn is_full(&self) -> bool {
        self.waiting.len() >= SQS_BATCH_ENTRIES_MAX || self.bytes >= SQS_MESSAGE_BYTES_MAX
    }

    /// Takes the oldest items that fit into one request. An item that is too large by itself goes
    /// alone and is refused: if it stayed here, it would be taken again and again.
    fn take(&mut self) -> Vec<Waiting<T>> {
        let mut together = Vec::new();
        let mut bytes = 0;
        while together.len() < SQS_BATCH_ENTRIES_MAX
            && let Some(one) = self.waiting.pop_front_if(|one| {
                together.is_empty() || bytes + one.bytes <= SQS_MESSAGE_BYTES_MAX
            })
        {
            bytes += one.bytes;
            together.push(one);
        }
        self.bytes -= bytes;
        together
    }
}

#[cfg(test)]
mod tests {
    use posthaste_core::model::Timestamp;
    use posthaste_testkit::ManualClock;

    use super::*;

    /// A request of sizes, which refuses what is too large for it.
    struct Sizes;

    impl Request for Sizes {
        type Item = usize;
        const DOING: &'static str = "ask for sizes";

        fn bytes(item: &usize) -> usize {
            *item
        }

        async fn call(&self, items: Vec<usize>) -> Result<Vec<Result<(), PortError>>, PortError> {
            if items.iter().sum::<usize>() > SQS_MESSAGE_BYTES_MAX {
                return Err(PortError::new(Self::DOING, ErrorKind::Invalid));
            }
            Ok(items.into_iter().map(|_| Ok(())).collect())
        }
    }

    #[tokio::test]
    async fn an_item_that_is_too_large_by_itself_is_refused_and_holds_up_no_other() {
        let clock = ManualClock::new(Timestamp::EPOCH);
        let lane = Arc::new(Lane::new(Sizes, clock.clone()));
        let (one, other) = tokio::join!(lane.ask(SQS_MESSAGE_BYTES_MAX + 1), async {
            let asked = lane.ask(1);
            tokio::pin!(asked);
            loop {
                tokio::select! {
                    answer = &mut asked => return answer,
                    () = tokio::task::yield_now() => clock.advance(LINGER),
                }
            }
        });
        let kind = one.map_err(|failed| PortError::from(failed).kind);
        assert_eq!((kind, other.is_ok()), (Err(ErrorKind::Invalid), true));
    }
}
