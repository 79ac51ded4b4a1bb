//! Work that waits for the commit thread: jobs whose caller waits for them, and acknowledgements
//! without a waiting caller.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use posthaste_core::model::Timestamp;
use posthaste_ports::{ErrorKind, PutCondition, QueueName};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::failure::EngineError;
use super::index::WornOutMessage;

/// Most KiB of waiting jobs. More callers wait until there is room.
const WAITING_KIB_MAX: u32 = 256 * 1024;

/// Memory of a job in addition to its bytes.
const JOB_KIB: usize = 1;

/// Most jobs and bytes of one commit. With more, the callers of the first jobs would wait for the
/// last.
const COMMIT_JOBS_MAX: usize = 1024;
const COMMIT_BYTES_MAX: usize = 8 << 20;

/// Most acknowledgements of one commit.
const COMMIT_DELETES_MAX: usize = 8192;

/// Time that acknowledgements and records of the delivery log wait for other work to share its
/// commit. It is real time and not the clock port's: it gathers writes, and no caller can see it.
pub const SHARING_DELAY: Duration = Duration::from_millis(25);

/// Records of this many bytes do not wait: they are worth a commit of their own. Until it is made,
/// their messages stay in flight.
const SHARING_BYTES_MAX: usize = 64 * 1024;

/// Least time from the start of one commit to the start of the next while several callers come at
/// once: a commit costs more than its jobs do, and callers that wait a little longer share one. It
/// is real time as well. A lone caller, whose next job comes after the result of the last, waits
/// for nothing. `PostgreSQL` has the same rule:
/// <https://www.postgresql.org/docs/current/runtime-config-wal.html#GUC-COMMIT-DELAY>
const SPACING: Duration = Duration::from_micros(700);

/// Jobs with which a commit begins at once.
const SPACED_JOBS_MAX: usize = 64;

/// A message on its way into the engine.
#[derive(Debug)]
pub(super) struct NewMessage {
    pub(super) to: QueueName,
    pub(super) group: Option<String>,
    pub(super) sent_at: Timestamp,
    pub(super) due: Timestamp,
    pub(super) body: Bytes,
}

/// Work to do in a commit.
#[derive(Debug)]
pub(super) enum CommitWork {
    /// Stores messages, and deletes one in the same transaction.
    Messages {
        messages: Vec<NewMessage>,
        instead_of: Option<(QueueName, u64)>,
        /// Whether they become durable first and are shown later, when the caller says so.
        is_withheld: bool,
    },
    /// Moves messages to the redrive queue.
    Redrive {
        from: QueueName,
        messages: Vec<WornOutMessage>,
    },
    /// Writes a state object.
    Put {
        key: String,
        bytes: Bytes,
        condition: PutCondition,
        modified_at: Timestamp,
    },
    /// Deletes a state object.
    Delete { key: String },
}

impl CommitWork {
    /// Whether this may wait for other work. A few records are not urgent: their requests have
    /// ended, and only the end of the deliveries waits for them.
    fn may_wait(&self) -> bool {
        let Self::Messages {
            messages,
            instead_of: None,
            ..
        } = self
        else {
            return false;
        };
        messages
            .iter()
            .all(|message| message.to == QueueName::Records)
            && self.size_bytes() < SHARING_BYTES_MAX
    }

    fn size_bytes(&self) -> usize {
        match self {
            Self::Messages { messages, .. } => {
                messages.iter().map(|message| message.body.len()).sum()
            }
            Self::Put { bytes, .. } => bytes.len(),
            Self::Redrive { .. } | Self::Delete { .. } => 0,
        }
    }
}

/// The result of a job that was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CompletedJob {
    /// The first sequence number of the messages, or the version of the object.
    pub(super) number: u64,
    /// Whether there was an object of the key before.
    pub(super) was_there: bool,
}

/// Why a job was not done. One failure of the engine is shared by all jobs of the commit.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the commit failed")]
pub(super) struct JobFailure {
    pub(super) kind: ErrorKind,
    #[source]
    pub(super) cause: Option<Arc<EngineError>>,
}

impl JobFailure {
    fn store_closed() -> Self {
        Self {
            kind: ErrorKind::Other,
            cause: Some(Arc::new(EngineError::Closed)),
        }
    }
}

/// The end of a job: it was done or not.
pub(super) type JobResult = Result<CompletedJob, JobFailure>;

/// The channel on which a caller waits for the result.
pub(super) type JobReplySender = oneshot::Sender<JobResult>;

/// Work, its caller, and the room that it takes until it is done.
#[derive(Debug)]
pub(super) struct CommitJob {
    pub(super) work: CommitWork,
    answer: JobReplySender,
    _room: Option<OwnedSemaphorePermit>,
}

impl CommitJob {
    /// Splits a job into its work and the channel to its caller.
    pub(super) fn into_parts(self) -> (CommitWork, JobReplySender) {
        (self.work, self.answer)
    }
}

/// The work of one commit.
#[derive(Debug, Default)]
pub(super) struct CommitBatch {
    pub(super) jobs: Vec<CommitJob>,
    /// Sequence numbers of acknowledged messages.
    pub(super) deletes: Vec<u64>,
}

impl CommitBatch {
    /// The number of parts that can be done separately.
    pub(super) fn len(&self) -> usize {
        self.jobs.len() + self.deletes.len()
    }

    /// Whether the batch stores a message.
    pub(super) fn stores_messages(&self) -> bool {
        self.jobs.iter().any(|job| {
            matches!(&job.work, CommitWork::Messages { messages, .. } if !messages.is_empty())
        })
    }

    /// The two halves, in their order.
    pub(super) fn split_in_half(mut self) -> (Self, Self) {
        let half = self.len() / 2;
        // Acknowledgements come first, as in a whole batch.
        let deletes = self.deletes.split_off(half.min(self.deletes.len()));
        let jobs = self.jobs.split_off(half - self.deletes.len());
        (self, Self { jobs, deletes })
    }
}

#[derive(Debug, Default)]
struct WaitingWork {
    jobs: VecDeque<CommitJob>,
    deletes: Vec<u64>,
    is_closed: bool,
    /// True while a commit is put off for jobs that are likely to come.
    is_spaced: bool,
    /// The start of the last commit that several jobs shared.
    shared_at: Option<Instant>,
}

/// The queue of work for the commit thread.
#[derive(Debug)]
pub(super) struct CommitInbox {
    waiting: Mutex<WaitingWork>,
    arrived: Condvar,
    room: Arc<Semaphore>,
}

impl CommitInbox {
    pub(super) fn new() -> Self {
        let room = Arc::new(Semaphore::new(WAITING_KIB_MAX as usize));
        Self {
            waiting: Mutex::default(),
            arrived: Condvar::new(),
            room,
        }
    }

    /// Waits until there is room for a job of this many bytes.
    pub(super) async fn reserve_room(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let kib = u32::try_from(bytes / 1024 + JOB_KIB).unwrap_or(u32::MAX);
        // `None` only if the semaphore were closed, which it never is.
        self.room
            .clone()
            .acquire_many_owned(kib.min(WAITING_KIB_MAX))
            .await
            .ok()
    }

    /// Hands work to the commit thread. It is done even if the caller is gone.
    pub(super) fn push(
        &self,
        work: CommitWork,
        room: Option<OwnedSemaphorePermit>,
    ) -> oneshot::Receiver<JobResult> {
        let (answer, answered) = oneshot::channel();
        let mut waiting = self.waiting.lock();
        if waiting.is_closed {
            // The receiver is still here.
            let _ = answer.send(Err(JobFailure::store_closed()));
            return answered;
        }
        let may_wait = work.may_wait();
        waiting.jobs.push_back(CommitJob {
            work,
            answer,
            _room: room,
        });
        let is_noticed = if waiting.is_spaced {
            waiting.jobs.len() == SPACED_JOBS_MAX
        } else {
            !may_wait || matches!(waiting.jobs.len(), 1 | COMMIT_JOBS_MAX)
        };
        drop(waiting);
        if is_noticed {
            self.arrived.notify_one();
        }
        answered
    }

    /// Notes an acknowledged message, to be deleted with the next commit.
    pub(super) fn queue_delete(&self, sequence: u64) {
        let mut waiting = self.waiting.lock();
        waiting.deletes.push(sequence);
        let is_due = match waiting.deletes.len() {
            1 => !waiting.is_spaced && waiting.jobs.is_empty(),
            deletes => deletes == COMMIT_DELETES_MAX,
        };
        drop(waiting);
        if is_due {
            self.arrived.notify_one();
        }
    }

    /// Queues the acknowledgements of a failed commit again.
    pub(super) fn queue_deletes_again(&self, sequences: &[u64]) {
        self.waiting.lock().deletes.extend_from_slice(sequences);
    }

    /// Takes acknowledgements for a commit of their own.
    pub(super) fn take_deletes(&self) -> Vec<u64> {
        let mut waiting = self.waiting.lock();
        let deletes = waiting.deletes.len().min(COMMIT_DELETES_MAX);
        waiting.deletes.drain(..deletes).collect()
    }

    /// Refuses new work; waiting work is still done.
    pub(super) fn close(&self) {
        self.waiting.lock().is_closed = true;
        self.arrived.notify_one();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.waiting.lock().is_closed
    }

    /// Waits for work and takes what one commit takes; `None` once closed and empty.
    #[expect(clippy::disallowed_methods, reason = "no caller can see this time")]
    pub(super) fn next(&self) -> Option<CommitBatch> {
        let mut waiting = self.waiting.lock();
        if let Some(last) = waiting.shared_at.take() {
            // One wait, instead of a wake-up by the first job and another one at the end.
            waiting.is_spaced = true;
            self.arrived.wait_while_until(
                &mut waiting,
                |waiting| waiting.may_be_spaced(),
                last + SPACING,
            );
            waiting.is_spaced = false;
        }
        while waiting.is_empty() {
            if waiting.is_closed {
                return None;
            }
            self.arrived.wait(&mut waiting);
        }
        self.arrived
            .wait_while_for(&mut waiting, |waiting| waiting.may_wait(), SHARING_DELAY);
        waiting.shared_at = (waiting.jobs.len() > 1).then(Instant::now);
        Some(waiting.take_batch())
    }

    /// Waits before the next try after a failure. Calls in the meantime wait, too.
    pub(super) fn pause(&self, length: Duration) {
        // Only the passing of time matters.
        self.arrived.wait_while_for(
            &mut self.waiting.lock(),
            |waiting| !waiting.is_closed,
            length,
        );
    }

    /// Refuses all waiting jobs when the thread ends.
    pub(super) fn refuse_all(&self) {
        let jobs = std::mem::take(&mut self.waiting.lock().jobs);
        for job in jobs {
            // A caller that gave up needs no reply.
            let _: Result<_, _> = job.answer.send(Err(JobFailure::store_closed()));
        }
    }
}

impl WaitingWork {
    fn is_empty(&self) -> bool {
        self.jobs.is_empty() && self.deletes.is_empty()
    }

    /// Whether all of it may wait for other work.
    fn may_wait(&self) -> bool {
        !self.is_closed
            && self.jobs.len() < COMMIT_JOBS_MAX
            && self.deletes.len() < COMMIT_DELETES_MAX
            && self.jobs.iter().all(|job| job.work.may_wait())
    }

    /// Whether a commit of it may be put off for jobs that are likely to come.
    fn may_be_spaced(&self) -> bool {
        !self.is_closed
            && self.jobs.len() < SPACED_JOBS_MAX
            && self.deletes.len() < COMMIT_DELETES_MAX
    }

    fn take_batch(&mut self) -> CommitBatch {
        let mut bytes = 0;
        // One job always fits, however large.
        let jobs = self
            .jobs
            .iter()
            .take(COMMIT_JOBS_MAX)
            .take_while(|job| {
                bytes += job.work.size_bytes();
                bytes <= COMMIT_BYTES_MAX
            })
            .count()
            .max(1);
        let deletes = self.deletes.len().min(COMMIT_DELETES_MAX);
        CommitBatch {
            jobs: self.jobs.drain(..jobs.min(self.jobs.len())).collect(),
            deletes: self.deletes.drain(..deletes).collect(),
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the inbox waits in real time")]
mod tests {
    use super::*;

    fn push(inbox: &CommitInbox) {
        drop(inbox.push(
            CommitWork::Delete {
                key: "topics/a.json".to_owned(),
            },
            None,
        ));
    }

    #[test]
    fn the_last_commit_takes_everything() {
        let inbox = CommitInbox::new();
        push(&inbox);
        inbox.queue_delete(1);
        inbox.close();
        let batch = inbox.next().unwrap();
        assert_eq!((batch.jobs.len(), batch.deletes), (1, vec![1]));
        assert!(inbox.next().is_none());
    }

    #[test]
    fn a_commit_after_a_shared_one_waits_for_many_jobs() {
        let inbox = CommitInbox::new();
        // The spacing would last for an hour. Only the jobs can end it.
        inbox.waiting.lock().shared_at = Some(Instant::now() + Duration::from_hours(1));
        std::thread::scope(|scope| {
            let batch = scope.spawn(|| inbox.next().unwrap());
            (0..SPACED_JOBS_MAX).for_each(|_| push(&inbox));
            assert_eq!(batch.join().unwrap().jobs.len(), SPACED_JOBS_MAX);
        });
    }

    #[test]
    fn only_a_shared_commit_spaces_the_next_one() {
        let inbox = CommitInbox::new();
        for (jobs, is_shared) in [(2, true), (1, false), (1, false), (3, true)] {
            (0..jobs).for_each(|_| push(&inbox));
            assert_eq!(inbox.next().unwrap().jobs.len(), jobs);
            assert_eq!(
                inbox.waiting.lock().shared_at.is_some(),
                is_shared,
                "{jobs}"
            );
        }
    }
}
