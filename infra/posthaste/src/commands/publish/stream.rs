//! Publishing a file of events at a pace: threads that read and send, around a [`Run`] that decides.

use std::io::BufRead;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use posthaste_local::{SystemClock, SystemEntropy};
use posthaste_ports::{Clock, Entropy};
use tokio::runtime;

use super::batches::{Batch, Batches};
use super::door::Door;
use super::ending::Ending;
use super::events::EventsError;
use super::outcome::Outcome;
use super::progress::Progress;
use super::run::{Run, Step};
use crate::serve::signals::Signals;

/// What a thread has to say.
enum Said {
    Read(Result<Option<Batch>, EventsError>),
    Answered { first: u64, outcome: Outcome },
    Interrupted { exit_code: u8 },
}

/// Where the run's requests go, and under which names.
#[derive(Debug, Clone)]
pub(super) struct Sending {
    /// The topic's door.
    pub(super) door: Door,
    /// The name of the run.
    pub(super) name: Arc<str>,
}

/// The threads of a run, and what they say.
struct Threads {
    sending: Sending,
    said: Receiver<Said>,
    say: Sender<Said>,
    read: Sender<()>,
}

/// Runs to the end, and answers how it stands then.
pub(super) fn drive<R: BufRead + Send + 'static>(
    mut run: Run,
    batches: Batches<R>,
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
            // Its receiver ends when the batch was read that is the last.
            Step::Read => drop(threads.read.send(())),
            Step::Send(batch) => {
                if let Err(error) = threads.send(batch) {
                    run.abandon(Ending::Thread(error));
                }
            }
            Step::Wait(until) => {
                let until = until.into_iter().chain(progress.next_at()).min();
                if let Some(said) = threads.wait(until.map(|until| until.saturating_sub(now))) {
                    hear(&mut run, said, &progress);
                }
            }
        }
    }
    progress.end();
    run
}

fn hear(run: &mut Run, said: Said, progress: &Progress) {
    match said {
        Said::Read(batch) => run.read(batch),
        Said::Answered { first, outcome } => {
            run.answered(SystemClock.monotonic(), first, outcome, SystemEntropy.fraction());
        }
        Said::Interrupted { exit_code } => {
            run.interrupted(exit_code);
            if run.in_flight() > 0 {
                progress.note("waiting for the answers to what was sent; interrupt again to go without them");
            }
        }
    }
}

impl Threads {
    fn start<R: BufRead + Send + 'static>(
        mut batches: Batches<R>,
        sending: Sending,
    ) -> std::io::Result<Self> {
        let (say, said) = channel();
        let (read, asked) = channel::<()>();
        listen(say.clone())?;
        let reader = say.clone();
        // Never waited for: a pipe may be silent for ever.
        thread::Builder::new().spawn(move || {
            while asked.recv().is_ok() && reader.send(Said::Read(batches.next())).is_ok() {}
        })?;
        Ok(Self { sending, said, say, read })
    }

    /// Sends a batch on a thread of its own; the run bounds how many there are.
    fn send(&self, batch: Arc<Batch>) -> std::io::Result<()> {
        let (say, Sending { door, name }) = (self.say.clone(), self.sending.clone());
        let send = move || {
            let key = format!("{name}-{}", batch.first);
            let answer = door.post(&batch.content_type, Some(key), batch.body.clone());
            let outcome = Outcome::read(answer, SystemClock.now());
            // The run is over if nobody listens.
            let _ = say.send(Said::Answered { first: batch.first, outcome });
        };
        thread::Builder::new().spawn(send).map(drop)
    }

    /// The next thing that a thread says, if it does so in time.
    fn wait(&self, length: Option<Duration>) -> Option<Said> {
        match length {
            // Never without a sender: this one's own is there.
            Some(length) => self.said.recv_timeout(length).ok(),
            None => self.said.recv().ok(),
        }
    }
}

/// Listens for signals on a thread of its own: from now on they do not end the process by themselves.
fn listen(say: Sender<Said>) -> std::io::Result<()> {
    let runtime = runtime::Builder::new_current_thread().enable_io().build()?;
    let mut signals = {
        let _inside = runtime.enter();
        Signals::listen()?
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
