//! Work that takes the processor for more than a few milliseconds: it leaves the thread that serves
//! requests to others.

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

/// Does the work while another thread continues with the tasks of this one, if there is another
/// one. That costs some ten microseconds.
pub fn run_off_worker<T>(work: impl FnOnce() -> T) -> T {
    let flavor = Handle::try_current().map(|runtime| runtime.runtime_flavor());
    if matches!(flavor, Ok(RuntimeFlavor::MultiThread)) {
        block_in_place(work)
    } else {
        work()
    }
}

/// Bytes of JSON from which on another thread reads, writes or signs it: an eighth of the largest
/// body that publish takes.
pub const BUSY_BYTES_MIN: usize = 128 * 1024;

/// Does work on so many bytes of JSON, off the worker where there are many of them.
pub fn run_off_worker_if_large<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    if bytes < BUSY_BYTES_MIN {
        work()
    } else {
        run_off_worker(work)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    /// Far longer than another task takes to run.
    const PATIENCE: Duration = Duration::from_mins(1);

    /// The only worker is busy until another task has run.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn other_tasks_run_while_work_takes_the_processor() {
        let (other, ran) = channel();
        let busy = tokio::spawn(async move {
            tokio::spawn(async move { other.send(7) });
            run_off_worker(move || ran.recv())
        });
        assert_eq!(busy.await.unwrap(), Ok(7));
    }

    /// The thread of some work on the only worker, which is another one than the worker if another
    /// task could run meanwhile.
    async fn is_left_to_others(bytes: usize) -> bool {
        let (other, ran) = channel();
        let busy = tokio::spawn(async move {
            tokio::spawn(async move { other.send(7) });
            let patience = match bytes {
                BUSY_BYTES_MIN.. => PATIENCE,
                _ => Duration::ZERO,
            };
            run_off_worker_if_large(bytes, move || ran.recv_timeout(patience).is_ok())
        });
        busy.await.unwrap()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn many_bytes_leave_the_worker_and_few_do_not() {
        assert!(!is_left_to_others(BUSY_BYTES_MIN - 1).await);
        assert!(is_left_to_others(BUSY_BYTES_MIN).await);
    }

    #[tokio::test]
    async fn work_is_done_where_there_is_one_thread_alone() {
        assert_eq!(run_off_worker(|| 7), 7);
    }
}
