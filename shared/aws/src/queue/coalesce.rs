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
pub(super) trait LaneRequest: Send + Sync + 'static {
    type Item: Clone + Send;

    /// The name of the operation, as it fits "failed to …".
    const DOING: &'static str;

    /// Bytes that an item takes of a request's size.
    fn item_bytes(item: &Self::Item) -> usize;

    /// Sends one request for all items. Returns one result per item, in order.
    fn call(
        &self,
        items: Vec<Self::Item>,
    ) -> impl Future<Output = Result<Vec<Result<(), PortError>>, PortError>> + Send;
}

/// Reasons for which an item was not done.
#[derive(Debug)]
pub(super) enum ItemFailure {
    /// The request had a response, which names this error for the item.
    Item(PortError),
    /// The request failed as a whole.
    Request(Arc<PortError>),
}

impl From<ItemFailure> for PortError {
    fn from(failed: ItemFailure) -> Self {
        match failed {
            ItemFailure::Item(error) => error,
            ItemFailure::Request(error) => Self::with_cause(error.doing, error.kind, error),
        }
    }
}

/// Items of one kind and their requests.
#[derive(Debug)]
pub(super) struct RequestLane<R: LaneRequest, C> {
    request: R,
    clock: C,
    gathered: Mutex<GatheredItems<R::Item>>,
}

#[derive(Debug)]
struct GatheredItems<T> {
    waiting: VecDeque<WaitingItem<T>>,
    /// Size of all that wait.
    bytes: usize,
    /// Tasks that linger or have a request under way.
    tasks: usize,
    /// A task lingers, and will take the waiting items.
    is_lingering: bool,
}

#[derive(Debug)]
struct WaitingItem<T> {
    item: T,
    bytes: usize,
    answer: oneshot::Sender<Result<(), ItemFailure>>,
}

/// The first step of a task.
enum TaskStart<T> {
    Linger,
    Call(Vec<WaitingItem<T>>),
}

impl<R: LaneRequest, C: Clock> RequestLane<R, C> {
    pub(super) fn new(request: R, clock: C) -> Self {
        let gathered = GatheredItems {
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
    pub(super) async fn submit(self: &Arc<Self>, item: R::Item) -> Result<(), ItemFailure> {
        let (answer, answered) = oneshot::channel();
        self.gathered.lock().push(WaitingItem {
            bytes: R::item_bytes(&item),
            item,
            answer,
        });
        self.start_tasks();
        answered.await.unwrap_or_else(|_| {
            let cause = "the request that it shared ended without an answer";
            Err(ItemFailure::Item(PortError::with_cause(
                R::DOING,
                ErrorKind::Other,
                cause,
            )))
        })
    }

    /// Starts the tasks that are needed.
    fn start_tasks(self: &Arc<Self>) {
        // Every turn starts a task, and their number is bounded.
        while let Some(begin) = self.gathered.lock().next() {
            tokio::spawn(Arc::clone(self).run(begin));
        }
    }

    async fn run(self: Arc<Self>, begin: TaskStart<R::Item>) {
        let together = match begin {
            TaskStart::Call(together) => together,
            TaskStart::Linger => {
                self.clock.sleep(LINGER).await;
                let together = self.gathered.lock().end_linger();
                // Items that did not fit need another task.
                self.start_tasks();
                together
            }
        };
        // The panic hook logs a panic; the waiting callers get the error that their result is lost.
        let _ = AssertUnwindSafe(self.call(together)).catch_unwind().await;
        self.gathered.lock().tasks -= 1;
        self.start_tasks();
    }

    async fn call(&self, together: Vec<WaitingItem<R::Item>>) {
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
                    one.send_result(Err(ItemFailure::Request(Arc::clone(&error))));
                }
            }
        }
    }

    /// Repeats a refused request item by item, so that only the item at fault is refused.
    async fn call_apart(&self, together: Vec<WaitingItem<R::Item>>) {
        for one in together {
            match self.request.call(vec![one.item.clone()]).await {
                Ok(results) => answer_each(R::DOING, vec![one], results),
                Err(error) => one.send_result(Err(ItemFailure::Request(Arc::new(error)))),
            }
        }
    }
}

/// Sends each caller its result. An item without a result is unknown, which is never a success.
fn answer_each<T>(
    doing: &'static str,
    together: Vec<WaitingItem<T>>,
    results: Vec<Result<(), PortError>>,
) {
    let mut results = results.into_iter();
    for one in together {
        let result = results
            .next()
            .unwrap_or_else(|| Err(PortError::new(doing, ErrorKind::Other)));
        one.send_result(result.map_err(ItemFailure::Item));
    }
}

impl<T> WaitingItem<T> {
    fn send_result(self, result: Result<(), ItemFailure>) {
        // The caller may be gone; its item stays done.
        let _ = self.answer.send(result);
    }
}

impl<T> GatheredItems<T> {
    fn push(&mut self, one: WaitingItem<T>) {
        self.bytes += one.bytes;
        self.waiting.push_back(one);
    }

    /// The first step of the next task, if one is needed and allowed. The task is counted.
    fn next(&mut self) -> Option<TaskStart<T>> {
        if self.tasks == REQUESTS_AT_ONCE_MAX || self.waiting.is_empty() {
            return None;
        }
        let begin = if self.is_full() {
            TaskStart::Call(self.take_fitting())
        } else if self.is_lingering {
            return None;
        } else {
            self.is_lingering = true;
            TaskStart::Linger
        };
        self.tasks += 1;
        Some(begin)
    }

    fn end_linger(&mut self) -> Vec<WaitingItem<T>> {
        self.is_lingering = false;
        self.take_fitting()
    }

    fn is_full(&self) -> bool {
        self.waiting.len() >= SQS_BATCH_ENTRIES_MAX || self.bytes >= SQS_MESSAGE_BYTES_MAX
    }

    /// Takes the oldest items that fit into one request. An item that is too large by itself goes
    /// alone and is refused: if it stayed here, it would be taken again and again.
    fn take_fitting(&mut self) -> Vec<WaitingItem<T>> {
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

    impl LaneRequest for Sizes {
        type Item = usize;
        const DOING: &'static str = "ask for sizes";

        fn item_bytes(item: &usize) -> usize {
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
    async fn oversized_item_is_refused_and_holds_up_no_other() {
        let clock = ManualClock::new(Timestamp::EPOCH);
        let lane = Arc::new(RequestLane::new(Sizes, clock.clone()));
        let (one, other) = tokio::join!(lane.submit(SQS_MESSAGE_BYTES_MAX + 1), async {
            let asked = lane.submit(1);
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
