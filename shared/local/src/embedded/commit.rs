//! The commit thread: it takes all waiting work, does it in one transaction, fsyncs once, then
//! answers all callers.

mod effects;
mod room;
mod transaction;

use std::sync::Arc;

use posthaste_ports::ErrorKind;
use tokio::sync::watch;

use super::engine::{Begin, LastCommit};
use super::failure::EngineError;
use super::inbox::{Answer, Batch, Done, Failed, Job, Work};
use super::live::Live;
use super::lock::FolderLock;
use super::shared::Shared;

/// Most commits of one batch that may end by damage before the rest of it is given up: each costs
/// an opening of the file.
const DAMAGED_COMMITS_MAX: u32 = 64;

/// The result of a job within a transaction.
type Outcome = Result<Done, Failed>;

/// The fate of a transaction that failed.
enum Recovered {
    /// The transaction took no effect.
    Undone,
    /// The transaction took effect, though it might not survive a power cut.
    TookEffect,
    /// The engine could not be opened again.
    Unknown,
}

/// A transaction that took effect or not: the engine cannot tell until it is opened again.
struct Unresolved {
    /// The first number that its messages could have.
    first: u64,
    jobs: Vec<(Work, Outcome)>,
    deletes: Vec<u64>,
    /// The bytes that the folder holds if it took effect.
    live: Live,
}

/// Refuses waiting and later work when the thread ends, also by a panic: no caller waits for a
/// thread that is gone.
struct Refused(Arc<Shared>);

impl Drop for Refused {
    fn drop(&mut self) {
        self.0.inbox.close();
        self.0.inbox.refuse_all();
    }
}

/// The thread's own.
pub(super) struct Committer {
    shared: Arc<Shared>,
    next_sequence: u64,
    /// The number of the last commit that stored no message.
    commit: u64,
    live: Live,
    unresolved: Option<Unresolved>,
    // Given back when the thread ends, after the engine is closed.
    _lock: FolderLock,
}

impl Committer {
    /// Starts the thread; the sender of what is answered is gone when it has ended and the folder
    /// is free.
    pub(super) fn spawn(
        shared: Arc<Shared>,
        begin: Begin,
        live: Live,
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
        let refused = Refused(Arc::clone(&committer.shared));
        let run = move || {
            // Dropped from the last to the first, also by a panic.
            let _runs = runs;
            let _refused = refused;
            let mut committer = committer;
            committer.run();
        };
        std::thread::Builder::new()
            .name("posthaste-commit".to_owned())
            .spawn(run)
            .map_err(EngineError::Thread)?;
        Ok(ended)
    }

    fn run(&mut self) {
        while let Some(batch) = self.shared.inbox.next() {
            let is_done = self.commit(batch);
            if !is_done {
                if self.shared.inbox.is_closed() {
                    // Acknowledged messages that cannot be deleted now are received again after the
                    // next start.
                    break;
                }
                self.shared
                    .inbox
                    .pause(self.shared.engine.disk().retry_pause());
                // Alone, because they make room, and what came with them may not have fitted.
                let deletes = self.shared.inbox.take_deletes();
                self.commit(Batch {
                    jobs: Vec::new(),
                    deletes,
                });
            }
        }
        self.shared.engine.close();
    }

    /// Does a batch; whether it could be done.
    fn commit(&mut self, batch: Batch) -> bool {
        self.commit_within(batch, &mut { DAMAGED_COMMITS_MAX })
    }

    /// Does a batch. Where damage in the file ends it, its halves are done apart, down to the one
    /// job that meets the damage, as long as `tries` lasts: its neighbours are not to fail with
    /// it.
    fn commit_within(&mut self, batch: Batch, tries: &mut u32) -> bool {
        if let Err(error) = self.resume() {
            self.fail(batch, error);
            return false;
        }
        let batch = self.refuse_for_lack_of_room(batch);
        if batch.jobs.is_empty() && batch.deletes.is_empty() {
            return true;
        }
        let syncs = self.shared.engine.syncs();
        let live = self.live;
        let first = self.next_sequence;
        match self.write(&batch) {
            Ok(outcomes) => {
                self.commit += u64::from(!batch.stores_messages());
                self.succeed(batch, outcomes);
                true
            }
            Err((error, outcomes)) => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "a commit failed; the store is reopened"
                );
                let was_refused =
                    error.kind() == ErrorKind::Full && self.shared.engine.syncs() == syncs;
                let recovered = self.recover(was_refused, first);
                let after = self.live;
                if !matches!(recovered, Recovered::TookEffect) {
                    self.live = live;
                }
                let is_damage = error.is_damage() && matches!(recovered, Recovered::Undone);
                if is_damage && batch.len() > 1 && *tries > 0 {
                    *tries -= 1;
                    let (first, second) = batch.halves();
                    let is_first_done = self.commit_within(first, tries);
                    return self.commit_within(second, tries) && is_first_done;
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
                self.settle_failure(batch, error, outcomes, &recovered, (first, after));
                false
            }
        }
    }

    /// Without an engine, tries to get it back, and finds out what became of the last transaction.
    fn resume(&mut self) -> Result<(), EngineError> {
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
    fn recover(&mut self, was_refused: bool, first: u64) -> Recovered {
        match self.shared.engine.reopen() {
            Ok(last) if self.took_effect(last, first) => Recovered::TookEffect,
            Ok(_) => Recovered::Undone,
            Err(error) => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "the store cannot be reopened yet"
                );
                if was_refused {
                    Recovered::Undone
                } else {
                    Recovered::Unknown
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

    fn succeed(&self, batch: Batch, outcomes: Vec<Outcome>) {
        let jobs = batch.jobs.into_iter().map(Job::into_parts).zip(outcomes);
        let parts =
            jobs.map(|((work, answer), outcome)| ((work, outcome.clone()), (answer, outcome)));
        let (works, answers): (Vec<_>, Vec<_>) = parts.unzip();
        self.apply(works);
        for (answer, outcome) in answers {
            let _: Result<_, _> = answer.send(outcome);
        }
    }

    /// Shows what a transaction did whose callers were told that it failed.
    fn apply_unheard(&self, jobs: Vec<(Work, Outcome)>) {
        self.delete_withheld(&jobs);
        self.apply(jobs);
    }

    /// Answers the callers of a failed transaction, and lets memory follow the disk.
    fn settle_failure(
        &mut self,
        batch: Batch,
        error: EngineError,
        outcomes: Vec<Outcome>,
        recovered: &Recovered,
        (first, live): (u64, Live),
    ) {
        // `Full` promises that nothing was written.
        let kind = if matches!(recovered, Recovered::Undone) {
            error.kind()
        } else {
            ErrorKind::Other
        };
        let failed = Failed {
            kind,
            cause: Some(Arc::new(error)),
        };
        let refuse = || Err(failed.clone());
        let outcomes = outcomes.into_iter().chain(std::iter::repeat_with(refuse));
        let (works, answers): (Vec<_>, Vec<_>) =
            batch.jobs.into_iter().map(Job::into_parts).unzip();
        let jobs = works.into_iter().zip(outcomes).collect();
        let deletes = batch.deletes;
        let ended = Unresolved {
            first,
            jobs,
            deletes,
            live,
        };
        match recovered {
            Recovered::Undone => self.undo_all(ended),
            Recovered::TookEffect => self.apply_unheard(ended.jobs),
            Recovered::Unknown => self.unresolved = Some(ended),
        }
        answer_all(answers, &failed);
    }

    /// Refuses jobs. Memory is as before when their callers hear of it: they may try again at once.
    fn refuse(&self, jobs: Vec<Job>, failed: &Failed) {
        let (works, answers): (Vec<_>, Vec<_>) = jobs.into_iter().map(Job::into_parts).unzip();
        for work in works {
            self.undo(work);
        }
        answer_all(answers, failed);
    }

    /// Restores the memory of before a transaction that took no effect.
    fn undo_all(&self, undone: Unresolved) {
        for (work, _) in undone.jobs {
            self.undo(work);
        }
        self.shared.inbox.delete_again(&undone.deletes);
    }

    /// There is no engine: nothing was begun.
    fn fail(&self, batch: Batch, error: EngineError) {
        let failed = Failed {
            kind: error.kind(),
            cause: Some(Arc::new(error)),
        };
        self.refuse(batch.jobs, &failed);
        self.shared.inbox.delete_again(&batch.deletes);
    }
}

fn answer_all(answers: Vec<Answer>, failed: &Failed) {
    for answer in answers {
        // A caller that gave up needs no answer.
        let _: Result<_, _> = answer.send(Err(failed.clone()));
    }
}
