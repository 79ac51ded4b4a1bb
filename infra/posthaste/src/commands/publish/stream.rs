//! Publishing a file of events at a pace: threads that read and send, around a [`Run`] that
//! decides.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use posthaste_ports::{Clock, Entropy};
use posthaste_system::{SystemClock, SystemEntropy};
use tokio::runtime;

use super::batches::{Batch, Batches, Source};
use super::ending::Ending;
use super::events::EventsError;
use super::outcome::Outcome;
use super::pipe::Pipe;
use super::progress::Progress;
use super::run::Run;
use super::step::Step;
use super::target::Target;
use crate::signals::Signals;

/// Message of a thread.
enum Said {
    Read(Result<Option<Batch>, EventsError>),
    Answered { first: u64, outcome: Outcome },
    Interrupted { exit_code: u8 },
    Panicked,
}

/// Reports a panic of its thread, which otherwise would never be answered.
struct Alarm(Sender<Said>);

impl Drop for Alarm {
    fn drop(&mut self) {
        if thread::panicking() {
            // Without a receiver the run is over.
            let _ = self.0.send(Said::Panicked);
        }
    }
}

/// The target of the run's requests, and their names.
#[derive(Debug, Clone)]
pub(super) struct Sending {
    /// The topic's endpoint.
    pub(super) target: Target,
    /// The name of the run.
    pub(super) name: Arc<str>,
}

/// The threads of a run, and their messages.
struct Threads {
    sending: Sending,
    said: Receiver<Said>,
    say: Sender<Said>,
    read: Sender<()>,
}

/// Runs to the end, and returns the run. The pipe, if the batches come from one, is closed by a
/// signal and at the end.
pub(super) fn drive<S: Source + Send + 'static>(
    mut run: Run,
    batches: Batches<S>,
    pipe: Option<&Pipe>,
    sending: Sending,
    mut progress: Progress,
) -> Run {
    let threads = match Threads::start(batches, sending) {
        Ok(threads) => threads,
        Err(error) => {
            run.abandon(Ending::Thread(error));
            return run;
        }
    };
    loop {
        let now = SystemClock.monotonic();
        progress.show(&run, now);
        match run.next(now) {
            Step::Over => break,
            // The receiver ends after the last batch.
            Step::Read => drop(threads.read.send(())),
            Step::Send(batch) => {
                if let Err(error) = threads.send(batch) {
                    run.abandon(Ending::Thread(error));
                }
            }
            Step::Wait(until) => {
                let until = until.into_iter().chain(progress.next_at()).min();
                if let Some(said) = threads.wait(until.map(|until| until.saturating_sub(now))) {
                    hear(&mut run, said, pipe, &progress);
                }
            }
        }
    }
    progress.end();
    pipe.inspect(|pipe| pipe.close());
    run
}

fn hear(run: &mut Run, said: Said, pipe: Option<&Pipe>, progress: &Progress) {
    match said {
        Said::Read(batch) => run.read(batch),
        Said::Answered { first, outcome } => {
            run.answered(
                SystemClock.monotonic(),
                first,
                outcome,
                SystemEntropy.fraction(),
            );
        }
        Said::Interrupted { exit_code } => {
            run.interrupted(exit_code);
            pipe.inspect(|pipe| pipe.close());
            if let Some(what) = run.waits_for() {
                progress.note(&format!("{what}; interrupt again to go without that"));
            }
        }
        Said::Panicked => run.abandon(Ending::Panicked),
    }
}

impl Threads {
    fn start<S: Source + Send + 'static>(
        mut batches: Batches<S>,
        sending: Sending,
    ) -> std::io::Result<Self> {
        let (say, said) = channel();
        let (read, asked) = channel::<()>();
        listen(say.clone())?;
        let reader = Alarm(say.clone());
        // Never waited for: a pipe may be silent for ever.
        thread::Builder::new().spawn(move || {
            while asked.recv().is_ok() && reader.0.send(Said::Read(batches.next())).is_ok() {}
        })?;
        Ok(Self {
            sending,
            said,
            say,
            read,
        })
    }

    /// Sends a batch on a thread of its own; the run bounds how many there are.
    fn send(&self, batch: Arc<Batch>) -> std::io::Result<()> {
        let alarm = Alarm(self.say.clone());
        let Sending { target, name } = self.sending.clone();
        let send = move || {
            let answer = target.post(
                &batch.content_type,
                Some(batch.name(&name)),
                batch.body.clone(),
            );
            let outcome = Outcome::read(answer, SystemClock.now());
            // Without a receiver the run is over.
            let _ = alarm.0.send(Said::Answered {
                first: batch.first,
                outcome,
            });
        };
        thread::Builder::new().spawn(send).map(drop)
    }

    /// The next message of a thread, if it comes in time.
    fn wait(&self, length: Option<Duration>) -> Option<Said> {
        match length {
            // There is always a sender: this one's own.
            Some(length) => self.said.recv_timeout(length).ok(),
            None => self.said.recv().ok(),
        }
    }
}

/// Listens for signals on a thread of its own: from now on they do not end the process by
/// themselves.
fn listen(say: Sender<Said>) -> std::io::Result<()> {
    let runtime = runtime::Builder::new_current_thread().enable_io().build()?;
    let mut signals = {
        let _inside = runtime.enter();
        Signals::listen_with_hangup()?
    };
    let listen = move || {
        loop {
            let exit_code = u8::try_from(runtime.block_on(signals.next())).unwrap_or(u8::MAX);
            if say.send(Said::Interrupted { exit_code }).is_err() {
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
        let quiet = Alarm(say.clone());
        let loud = Alarm(say);
        thread::spawn(move || drop(quiet)).join().unwrap();
        assert!(said.try_recv().is_err());
        let panics = move || {
            let _alarm = loud;
            panic!("as it should");
        };
        thread::spawn(panics).join().unwrap_err();
        assert!(matches!(said.try_recv(), Ok(Said::Panicked)));
    }
}
