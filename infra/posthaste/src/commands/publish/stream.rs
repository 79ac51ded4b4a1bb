//! Publishing a file of events at a pace: threads that read and send, around a [`PublishRun`] that
//! decides.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use posthaste_ports::{Clock, Entropy};
use posthaste_system::{SystemClock, SystemEntropy};
use tokio::runtime;

use super::batches::{EventBatch, EventBatches, EventSource};
use super::ending::RunEnding;
use super::events::EventsError;
use super::outcome::PublishOutcome;
use super::pipe::PipeHandle;
use super::progress::RunProgress;
use super::run::PublishRun;
use super::step::RunStep;
use super::target::PublishTarget;
use crate::signals::SignalListener;

/// Message of a thread.
enum ThreadMessage {
    Read(Result<Option<EventBatch>, EventsError>),
    Answered { first: u64, outcome: PublishOutcome },
    Interrupted { exit_code: u8 },
    Panicked,
}

/// Reports a panic of its thread, which otherwise would never be answered.
struct PanicAlarm(Sender<ThreadMessage>);

impl Drop for PanicAlarm {
    fn drop(&mut self) {
        if thread::panicking() {
            // Without a receiver the run is over.
            let _ = self.0.send(ThreadMessage::Panicked);
        }
    }
}

/// The target of the run's requests, and their names.
#[derive(Debug, Clone)]
pub(super) struct RunTarget {
    /// The topic's endpoint.
    pub(super) target: PublishTarget,
    /// The name of the run.
    pub(super) name: Arc<str>,
}

/// The threads of a run, and their messages.
struct RunThreads {
    sending: RunTarget,
    said: Receiver<ThreadMessage>,
    say: Sender<ThreadMessage>,
    read: Sender<()>,
}

/// Runs to the end, and returns the run. The pipe, if the batches come from one, is closed by a
/// signal and at the end.
pub(super) fn drive_run<S: EventSource + Send + 'static>(
    mut run: PublishRun,
    batches: EventBatches<S>,
    pipe: Option<&PipeHandle>,
    sending: RunTarget,
    mut progress: RunProgress,
) -> PublishRun {
    let threads = match RunThreads::start(batches, sending) {
        Ok(threads) => threads,
        Err(error) => {
            run.abandon(RunEnding::Thread(error));
            return run;
        }
    };
    loop {
        let now = SystemClock.monotonic();
        progress.show_if_due(&run, now);
        match run.next(now) {
            RunStep::Over => break,
            // The receiver ends after the last batch.
            RunStep::Read => drop(threads.read.send(())),
            RunStep::Send(batch) => {
                if let Err(error) = threads.send_batch(batch) {
                    run.abandon(RunEnding::Thread(error));
                }
            }
            RunStep::Wait(until) => {
                let until = until.into_iter().chain(progress.next_at()).min();
                if let Some(said) =
                    threads.next_message(until.map(|until| until.saturating_sub(now)))
                {
                    handle_message(&mut run, said, pipe, &progress);
                }
            }
        }
    }
    progress.end_line();
    pipe.inspect(|pipe| pipe.close());
    run
}

fn handle_message(
    run: &mut PublishRun,
    said: ThreadMessage,
    pipe: Option<&PipeHandle>,
    progress: &RunProgress,
) {
    match said {
        ThreadMessage::Read(batch) => run.take_batch(batch),
        ThreadMessage::Answered { first, outcome } => {
            run.take_outcome(
                SystemClock.monotonic(),
                first,
                outcome,
                SystemEntropy.fraction(),
            );
        }
        ThreadMessage::Interrupted { exit_code } => {
            run.take_signal(exit_code);
            pipe.inspect(|pipe| pipe.close());
            if let Some(what) = run.waits_for() {
                progress.print_message(&format!("{what}; interrupt again to go without that"));
            }
        }
        ThreadMessage::Panicked => run.abandon(RunEnding::Panicked),
    }
}

impl RunThreads {
    fn start<S: EventSource + Send + 'static>(
        mut batches: EventBatches<S>,
        sending: RunTarget,
    ) -> std::io::Result<Self> {
        let (say, said) = channel();
        let (read, asked) = channel::<()>();
        listen_for_signals(say.clone())?;
        let reader = PanicAlarm(say.clone());
        // Never waited for: a pipe may be silent for ever.
        thread::Builder::new().spawn(move || {
            while asked.recv().is_ok() && reader.0.send(ThreadMessage::Read(batches.next())).is_ok()
            {
            }
        })?;
        Ok(Self {
            sending,
            said,
            say,
            read,
        })
    }

    /// Sends a batch on a thread of its own; the run bounds how many there are.
    fn send_batch(&self, batch: Arc<EventBatch>) -> std::io::Result<()> {
        let alarm = PanicAlarm(self.say.clone());
        let RunTarget { target, name } = self.sending.clone();
        let send = move || {
            let answer = target.post(
                &batch.content_type,
                Some(batch.name(&name)),
                batch.body.clone(),
            );
            let outcome = PublishOutcome::from_response(answer, SystemClock.now());
            // Without a receiver the run is over.
            let _ = alarm.0.send(ThreadMessage::Answered {
                first: batch.first,
                outcome,
            });
        };
        thread::Builder::new().spawn(send).map(drop)
    }

    /// The next message of a thread, if it comes in time.
    fn next_message(&self, length: Option<Duration>) -> Option<ThreadMessage> {
        match length {
            // There is always a sender: this one's own.
            Some(length) => self.said.recv_timeout(length).ok(),
            None => self.said.recv().ok(),
        }
    }
}

/// Listens for signals on a thread of its own: from now on they do not end the process by
/// themselves.
fn listen_for_signals(say: Sender<ThreadMessage>) -> std::io::Result<()> {
    let runtime = runtime::Builder::new_current_thread().enable_io().build()?;
    let mut signals = {
        let _inside = runtime.enter();
        SignalListener::listen_with_hangup()?
    };
    let listen = move || {
        loop {
            let exit_code = u8::try_from(runtime.block_on(signals.next())).unwrap_or(u8::MAX);
            if say.send(ThreadMessage::Interrupted { exit_code }).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().spawn(listen).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_panics_says_so_and_one_that_ends_does_not() {
        let (say, said) = channel();
        let quiet = PanicAlarm(say.clone());
        let loud = PanicAlarm(say);
        thread::spawn(move || drop(quiet)).join().unwrap();
        assert!(said.try_recv().is_err());
        let panics = move || {
            let _alarm = loud;
            panic!("as it should");
        };
        thread::spawn(panics).join().unwrap_err();
        assert!(matches!(said.try_recv(), Ok(ThreadMessage::Panicked)));
    }
}
