//! The commit thread: it takes all waiting work, does it in one transaction, fsyncs once, then
//! replies to all callers.

mod effects;
mod room;
mod transaction;

use std::sync::Arc;

use posthaste_ports::ErrorKind;
use tokio::sync::watch;

use super::engine::{LastCommit, OpeningNumbers};
use super::failure::EngineError;
use super::inbox::{CommitBatch, CommitJob, CommitWork, JobFailure, JobReplySender, JobResult};
use super::live::LiveBytes;
use super::lock::FolderLock;
use super::shared::SharedStore;

/// Most commits of one batch that may end by damage before the rest of it is given up: each costs
/// an opening of the file.
const DAMAGED_COMMITS_MAX: u32 = 64;

/// The fate of a transaction that failed.
enum TransactionFate {
    /// The transaction took no effect.
    Undone,
    /// The transaction took effect, though it might not survive a power cut.
    TookEffect,
    /// The engine could not be opened again.
    Unknown,
}

/// A transaction that failed, after the engine was opened again where it could be.
struct FailedTransaction {
    error: EngineError,
    fate: TransactionFate,
    /// The first number that its messages could have.
    first: u64,
    /// The outcomes of the jobs that were looked at.
    outcomes: Vec<JobResult>,
    /// The bytes that the folder holds if it took effect.
    live: LiveBytes,
}

/// A transaction that took effect or not: the engine cannot tell until it is opened again.
struct UnresolvedTransaction {
    /// The first number that its messages could have.
    first: u64,
    jobs: Vec<(CommitWork, JobResult)>,
    deletes: Vec<u64>,
    /// The bytes that the folder holds if it took effect.
    live: LiveBytes,
}

/// Refuses waiting and later work when the thread ends, also by a panic: no caller waits for a
/// thread that is gone.
struct RefusalGuard(Arc<SharedStore>);

impl Drop for RefusalGuard {
    fn drop(&mut self) {
        self.0.inbox.close();
        self.0.inbox.refuse_all();
    }
}

/// The state that only the commit thread uses.
pub(super) struct CommitThread {
    shared: Arc<SharedStore>,
    next_sequence: u64,
    /// The number of the last commit that stored no message.
    commit: u64,
    live: LiveBytes,
    unresolved: Option<UnresolvedTransaction>,
    // Released when the thread ends, after the engine is closed.
    _lock: FolderLock,
}

impl CommitThread {
    /// Starts the thread. The sender of the returned channel is dropped when the thread has ended
    /// and the folder is free.
    pub(super) fn spawn(
        shared: Arc<SharedStore>,
        begin: OpeningNumbers,
        live: LiveBytes,
        lock: FolderLock,
    ) -> Result<watch::Receiver<()>, EngineError> {
        let (runs, ended) = watch::channel(());
        let committer = Self {
            shared,
            next_sequence: begin.first_sequence,
            commit: begin.commit,
            live,
            unresolved: None,
            _lock: lock,
        };
        let refused = RefusalGuard(Arc::clone(&committer.shared));
        std::thread::Builder::new()
            .name("posthaste-commit".to_owned())
            .spawn(move || {
                // These are dropped from the last to the first, also by a panic.
                let _runs = runs;
                let _refused = refused;
                let mut committer = committer;
                committer.run();
            })
            .map_err(EngineError::Thread)?;
        Ok(ended)
    }

    fn run(&mut self) {
        while let Some(batch) = self.shared.inbox.next() {
            let is_done = self.commit_batch(batch);
            if !is_done {
                if self.shared.inbox.is_closed() {
                    // Acknowledged messages that cannot be deleted now are received again after the
                    // next start.
                    break;
                }
                self.shared
                    .inbox
                    .pause(self.shared.engine.disk().retry_pause());
                // Without the jobs: deletes make room, and the jobs may not have fitted.
                let deletes = self.shared.inbox.take_deletes();
                self.commit_batch(CommitBatch {
                    jobs: Vec::new(),
                    deletes,
                });
            }
        }
        self.shared.engine.close();
    }

    /// Commits a batch, and returns whether it could be done.
    fn commit_batch(&mut self, batch: CommitBatch) -> bool {
        let mut remaining_attempts = DAMAGED_COMMITS_MAX;
        self.commit_or_split(batch, &mut remaining_attempts)
    }

    /// Commits a batch. If damage in the file ends it, its halves are committed apart, down to the
    /// one job that meets the damage, as long as `tries` lasts: the other jobs must not fail with
    /// that one.
    fn commit_or_split(&mut self, batch: CommitBatch, tries: &mut u32) -> bool {
        if let Err(error) = self.resume_engine() {
            self.fail_batch(batch, error);
            return false;
        }
        let batch = self.refuse_for_lack_of_room(batch);
        if batch.jobs.is_empty() && batch.deletes.is_empty() {
            return true;
        }
        let syncs = self.shared.engine.sync_count();
        let live = self.live;
        let first = self.next_sequence;
        match self.write_batch(&batch) {
            Ok(outcomes) => {
                self.commit += u64::from(!batch.stores_messages());
                self.settle_success(batch, outcomes);
                true
            }
            Err((error, outcomes)) => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "a commit failed; the store is reopened"
                );
                let was_refused =
                    error.kind() == ErrorKind::Full && self.shared.engine.sync_count() == syncs;
                let recovered = self.reopen_after_failure(was_refused, first);
                let after = self.live;
                if !matches!(recovered, TransactionFate::TookEffect) {
                    self.live = live;
                }
                let is_damage = error.is_damage() && matches!(recovered, TransactionFate::Undone);
                if is_damage && batch.len() > 1 && *tries > 0 {
                    *tries -= 1;
                    let (first, second) = batch.split_in_half();
                    let is_first_done = self.commit_or_split(first, tries);
                    return self.commit_or_split(second, tries) && is_first_done;
                }
                if let ([], [sequence]) = (&batch.jobs[..], &batch.deletes[..])
                    && is_damage
                {
                    tracing::error!(
                        sequence,
                        "a settled message cannot be deleted: it comes again after a start"
                    );
                    return true;
                }
                let failed = FailedTransaction {
                    error,
                    fate: recovered,
                    first,
                    outcomes,
                    live: after,
                };
                self.settle_failure(batch, failed);
                false
            }
        }
    }

    /// Opens the engine again if it is closed, and finds out what became of the last transaction.
    fn resume_engine(&mut self) -> Result<(), EngineError> {
        if self.shared.engine.is_open() {
            return Ok(());
        }
        let last = self.shared.engine.reopen()?;
        let Some(unresolved) = self.unresolved.take() else {
            return Ok(());
        };
        if self.took_effect(last, unresolved.first) {
            self.live = unresolved.live;
            self.apply_unheard(unresolved.jobs);
        } else {
            self.undo_all(unresolved);
        }
        Ok(())
    }

    /// Opens the engine again. A transaction that was refused for lack of room, before anything was
    /// synced, is known to have taken no effect even if that fails.
    fn reopen_after_failure(&mut self, was_refused: bool, first: u64) -> TransactionFate {
        match self.shared.engine.reopen() {
            Ok(last) if self.took_effect(last, first) => TransactionFate::TookEffect,
            Ok(_) => TransactionFate::Undone,
            Err(error) => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "the store cannot be reopened yet"
                );
                if was_refused {
                    TransactionFate::Undone
                } else {
                    TransactionFate::Unknown
                }
            }
        }
    }

    /// Whether the file shows a transaction that failed, and whose messages could have numbers from
    /// `first`.
    fn took_effect(&mut self, last: LastCommit, first: u64) -> bool {
        let before = std::mem::replace(&mut self.commit, last.number);
        last.number > before || last.message.is_some_and(|message| message >= first)
    }

    fn settle_success(&self, batch: CommitBatch, outcomes: Vec<JobResult>) {
        let jobs = batch
            .jobs
            .into_iter()
            .map(CommitJob::into_parts)
            .zip(outcomes);
        let parts =
            jobs.map(|((work, answer), outcome)| ((work, outcome.clone()), (answer, outcome)));
        let (works, answers): (Vec<_>, Vec<_>) = parts.unzip();
        effects::apply_finished(&self.shared, works);
        for (answer, outcome) in answers {
            let _: Result<_, _> = answer.send(outcome);
        }
    }

    /// Shows the effects of a transaction whose callers were told that it failed.
    fn apply_unheard(&self, jobs: Vec<(CommitWork, JobResult)>) {
        effects::delete_withheld(&self.shared, &jobs);
        effects::apply_finished(&self.shared, jobs);
    }

    /// Tells the callers that their transaction failed, and lets memory follow the disk.
    fn settle_failure(&mut self, batch: CommitBatch, transaction: FailedTransaction) {
        // `Full` promises that nothing was written.
        let kind = if matches!(transaction.fate, TransactionFate::Undone) {
            transaction.error.kind()
        } else {
            ErrorKind::Other
        };
        let failed = JobFailure {
            kind,
            cause: Some(Arc::new(transaction.error)),
        };
        let outcomes = transaction
            .outcomes
            .into_iter()
            .chain(std::iter::repeat_with(|| Err(failed.clone())));
        let (works, answers): (Vec<_>, Vec<_>) =
            batch.jobs.into_iter().map(CommitJob::into_parts).unzip();
        let jobs = works.into_iter().zip(outcomes).collect();
        let ended = UnresolvedTransaction {
            first: transaction.first,
            jobs,
            deletes: batch.deletes,
            live: transaction.live,
        };
        match transaction.fate {
            TransactionFate::Undone => self.undo_all(ended),
            TransactionFate::TookEffect => self.apply_unheard(ended.jobs),
            TransactionFate::Unknown => self.unresolved = Some(ended),
        }
        answer_all(answers, &failed);
    }

    /// Refuses work as `Full` if there is no room for it.
    fn refuse_for_lack_of_room(&self, batch: CommitBatch) -> CommitBatch {
        let CommitBatch { jobs, deletes } = batch;
        let (jobs, refused) = room::split_by_room(jobs, &self.shared, self.live);
        let no_room = JobFailure {
            kind: ErrorKind::Full,
            cause: None,
        };
        self.refuse_jobs(refused, &no_room);
        CommitBatch { jobs, deletes }
    }

    /// Refuses jobs. Memory is restored before their callers hear of it: they may try again at
    /// once.
    fn refuse_jobs(&self, jobs: Vec<CommitJob>, failed: &JobFailure) {
        let (works, answers): (Vec<_>, Vec<_>) =
            jobs.into_iter().map(CommitJob::into_parts).unzip();
        for work in works {
            effects::undo_work(&self.shared, work);
        }
        answer_all(answers, failed);
    }

    /// Restores memory as it was before a transaction that took no effect.
    fn undo_all(&self, undone: UnresolvedTransaction) {
        for (work, _) in undone.jobs {
            effects::undo_work(&self.shared, work);
        }
        self.shared.inbox.queue_deletes_again(&undone.deletes);
    }

    /// Refuses a batch that was not begun, because the engine could not be opened.
    fn fail_batch(&self, batch: CommitBatch, error: EngineError) {
        let failed = JobFailure {
            kind: error.kind(),
            cause: Some(Arc::new(error)),
        };
        self.refuse_jobs(batch.jobs, &failed);
        self.shared.inbox.queue_deletes_again(&batch.deletes);
    }
}

fn answer_all(answers: Vec<JobReplySender>, failed: &JobFailure) {
    for answer in answers {
        // A caller that gave up needs no reply.
        let _: Result<_, _> = answer.send(Err(failed.clone()));
    }
}
