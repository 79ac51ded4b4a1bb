//! The threads of a process. tokio panics where the system gives it none, so they are tried first.

use std::env;
use std::io;
use std::sync::mpsc;
use std::thread::{self, JoinHandle, available_parallelism};

use tokio::runtime::{self, Runtime};

/// The variable that gives the number of threads for connections and deliveries, as tokio has it.
const WORKERS_VARIABLE: &str = "TOKIO_WORKER_THREADS";

/// Threads beside those: one that commits to the store, one of the upkeep, and one for work that
/// blocks for each of the two. That of the log is there already.
const OTHERS: usize = 4;

/// Most worker threads: more than any machine has cores, and fewer than the system allows.
const WORKERS_MAX: usize = 1024;

/// Why a process has not the threads that it needs.
#[derive(Debug, thiserror::Error)]
enum ThreadsError {
    #[error(
        "of the {needed} threads that are needed beside the first, the system allows {started}; raise the \
         limit of processes and threads (ulimit -u, TasksMax of systemd, the container's limit of PIDs)"
    )]
    Few {
        needed: usize,
        started: usize,
        #[source]
        source: io::Error,
    },
    #[error("{WORKERS_VARIABLE} is {0:?}, expected a whole number from 1 to {WORKERS_MAX}")]
    Workers(String),
}

/// Makes a runtime for a server: one core is left to the thread that commits, and to the kernel.
/// Threads wake each other whenever there is work for one, so one too many costs up to a fifth of
/// the processor time (decision 0163).
///
/// # Errors
///
/// The system allows fewer threads than are needed, or `TOKIO_WORKER_THREADS` is no number.
pub fn server_runtime() -> io::Result<Runtime> {
    let cores = available_parallelism().map_or(1, |cores| cores.get() - 1);
    let given = env::var_os(WORKERS_VARIABLE).map(|given| given.to_string_lossy().into_owned());
    let workers = worker_count(given, cores).map_err(io::Error::other)?;
    try_threads(workers + OTHERS, |work| thread::Builder::new().spawn(work))
        .map_err(io::Error::other)?;
    runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_all()
        .build()
}

/// The number that is given, or else a thread for each of these cores.
fn worker_count(given: Option<String>, cores: usize) -> Result<usize, ThreadsError> {
    let Some(given) = given else {
        return Ok(cores.max(1));
    };
    let number = given.parse().ok();
    let number = number.filter(|number| (1..=WORKERS_MAX).contains(number));
    number.ok_or(ThreadsError::Workers(given))
}

/// The work of a thread that is tried.
type ThreadWork = Box<dyn FnOnce() + Send>;

/// Starts so many threads at once, and ends them.
fn try_threads(
    needed: usize,
    start: impl Fn(ThreadWork) -> io::Result<JoinHandle<()>>,
) -> Result<(), ThreadsError> {
    let mut threads = Vec::with_capacity(needed);
    let mut all = Ok(());
    for started in 0..needed {
        // Each waits until its sender is dropped.
        let (end, ended) = mpsc::channel::<()>();
        let wait: ThreadWork = Box::new(move || {
            let _ = ended.recv();
        });
        match start(wait) {
            Ok(thread) => threads.push((end, thread)),
            Err(source) => {
                all = Err(ThreadsError::Few {
                    needed,
                    started,
                    source,
                });
                break;
            }
        }
    }
    for (end, thread) in threads {
        drop(end);
        // A thread that only waits does not panic.
        let _ = thread.join();
    }
    all
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn threads_that_are_missing_are_counted() {
        let check = |allowed: usize, needed, expected: Option<usize>| {
            let left = Cell::new(allowed);
            let tried = try_threads(needed, |work| match left.get() {
                0 => Err(io::ErrorKind::WouldBlock.into()),
                number => {
                    left.set(number - 1);
                    thread::Builder::new().spawn(work)
                }
            });
            let missing = tried.err().map(|error| match error {
                ThreadsError::Few { started, .. } => started,
                ThreadsError::Workers(_) => panic!("{error}"),
            });
            assert_eq!(missing, expected, "{allowed} of {needed}");
        };
        check(0, 3, Some(0));
        check(2, 3, Some(2));
        check(3, 3, None);
    }

    #[test]
    fn worker_threads_are_as_given_or_one_less_than_cores() {
        let check = |given: Option<&str>, cores, expected: Option<usize>| {
            let workers = worker_count(given.map(str::to_owned), cores);
            assert_eq!(workers.ok(), expected, "{given:?}");
        };
        check(None, 0, Some(1));
        check(None, 7, Some(7));
        check(Some("3"), 7, Some(3));
        check(Some("1024"), 7, Some(1024));
        for refused in ["0", "", "-1", "two", "1025", "1.5"] {
            check(Some(refused), 7, None);
        }
    }
}
