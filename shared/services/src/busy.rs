//! Work that takes the processor for more than a few milliseconds: it leaves the thread that answers
//! requests to others.

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

/// Does the work while another thread goes on with the tasks of this one, where there may be another
/// one. That costs some ten microseconds.
pub fn off_the_worker<T>(work: impl FnOnce() -> T) -> T {
    let flavor = Handle::try_current().map(|runtime| runtime.runtime_flavor());
    if matches!(flavor, Ok(RuntimeFlavor::MultiThread)) {
        block_in_place(work)
    } else {
        work()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    /// The only worker is busy until another task has run.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn other_tasks_run_while_work_takes_the_processor() {
        let (other, ran) = channel();
        let busy = tokio::spawn(async move {
            tokio::spawn(async move { other.send(7) });
            off_the_worker(move || ran.recv())
        });
        assert_eq!(busy.await.unwrap(), Ok(7));
    }

    #[tokio::test]
    async fn work_is_done_where_there_is_one_thread_alone() {
        assert_eq!(off_the_worker(|| 7), 7);
    }
}
