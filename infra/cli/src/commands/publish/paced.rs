//! `publish --rate`: from the arguments to a run, and from its end to what is said of it.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use posthaste_ports::{Clock, Entropy};
use posthaste_publisher::{
    EVENT, EventBatch, EventBatches, EventReader, EventsError, PackingSettings, PipeHandle,
    PublishOutcome, PublishPace, PublishRun, RateDriver, RunEnding, RunHost, SourceItem, open_pipe,
};
use posthaste_system::{SystemClock, SystemEntropy};
use serde_json::json;
use tokio::runtime::{self, Runtime};

use super::ending::{SingleEventTypeError, UnfinishedRun};
use super::number::count_with_noun;
use super::outcome::outcome_of;
use super::progress::{RunProgress, counts_summary};
use super::report::render_report;
use super::target::PublishTarget;
use crate::cli::{GlobalOptions, PublishArgs, PublishRate};
use crate::client::ClientError;
use crate::commands::InputError;
use crate::error::CommandError;
use crate::output::CommandReply;
use crate::signals::SignalListener;

type EventSource = Box<dyn Iterator<Item = Result<SourceItem, EventsError>> + Send>;

/// The input of a run.
struct RunInput {
    source: EventSource,
    pipe: Option<PipeHandle>,
}

/// Signals and progress of a run.
struct ProcessHost {
    signals: SignalListener,
    progress: RunProgress,
}

impl RunHost<ClientError> for ProcessHost {
    async fn next_signal(&mut self) -> u8 {
        u8::try_from(self.signals.next().await).unwrap_or(u8::MAX)
    }

    fn show_progress(&mut self, run: &PublishRun<ClientError>, now: Duration) -> Option<Duration> {
        self.progress.show_if_due(run, now)
    }

    fn tell(&mut self, text: &str) {
        self.progress.print_message(text);
    }
}

pub(super) fn run(
    global: &GlobalOptions,
    arguments: PublishArgs,
    rate: PublishRate,
) -> Result<CommandReply, CommandError> {
    if let Some(found) = arguments
        .content_type
        .as_ref()
        .filter(|it| is_single_event_type(it))
    {
        let found = found.clone();
        return Err(SingleEventTypeError { found }.into());
    }
    let input = open_input(&arguments.file)?;
    let target = PublishTarget::find(global, &arguments)?;
    let pace = arguments.pace;
    let name = pace.run.unwrap_or_else(|| SystemEntropy.uuid().to_string());
    let packing = PackingSettings {
        events_max: pace.batch,
        from: pace.from,
        content_type: arguments.content_type,
    };
    let cap = match rate {
        PublishRate::Auto => None,
        PublishRate::PerSecond(events) => Some(events.get()),
    };
    RunProgress::print_run_name(global.json, &name);
    let began = SystemClock.monotonic();
    let run = PublishRun::new(PublishPace::new(cap), pace.from, pace.give_up_after)
        .of_pipe(input.pipe.is_some());
    let run = drive_run(
        run,
        EventBatches::new(input.source, packing),
        input.pipe.as_ref(),
        publish_call(target, name.clone()),
        RunProgress::on_stderr(global.json, began),
    );
    let took = SystemClock.monotonic().saturating_sub(began);
    let done = run_reply(&run, &arguments.topic, &name, took);
    let next = run.resume_at();
    let Some(ending) = run.into_ending() else {
        return Ok(done);
    };
    let done = done.line(format!(
        "event {next} (the first is 0) is the first that is not known to be published"
    ));
    let again = format!(
        "the same command with --from {next} --batch {} --run {name}",
        pace.batch
    );
    let resume = match input.pipe {
        None => {
            format!(
                "{again} goes on there; what was published beyond is not published again within a day"
            )
        }
        Some(pipe) => resume_pipe(next, pipe.taken_count(), &again),
    };
    Err(CommandError::from(UnfinishedRun::new(ending, resume)).with_done(done))
}

/// A call that publishes a batch of the run with this name.
fn publish_call(
    target: PublishTarget,
    name: String,
) -> impl Fn(&EventBatch) -> PublishOutcome<ClientError> + Send + Sync + 'static {
    move |batch| {
        let name = Some(batch.name(&name));
        let answer = target.post(&batch.content_type, name, batch.body.clone());
        outcome_of(answer, SystemClock.now())
    }
}

/// Runs to the end, and returns the run.
fn drive_run(
    mut run: PublishRun<ClientError>,
    batches: EventBatches<EventSource>,
    pipe: Option<&PipeHandle>,
    publish: impl Fn(&EventBatch) -> PublishOutcome<ClientError> + Send + Sync + 'static,
    progress: RunProgress,
) -> PublishRun<ClientError> {
    let (runtime, signals) = match listen_for_signals() {
        Ok(listening) => listening,
        Err(error) => {
            run.abandon(RunEnding::Thread(error));
            return run;
        }
    };
    let driver = RateDriver {
        clock: SystemClock,
        entropy: SystemEntropy,
        publish: Arc::new(publish),
    };
    let mut host = ProcessHost { signals, progress };
    let run = runtime.block_on(driver.drive(run, batches, pipe, &mut host));
    host.progress.end_line();
    // What still reads or sends is not waited for: a pipe may be silent for ever.
    runtime.shutdown_background();
    run
}

/// Listens for signals: from now on they do not end the process by themselves.
fn listen_for_signals() -> io::Result<(Runtime, SignalListener)> {
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let signals = {
        let _inside = runtime.enter();
        SignalListener::listen_with_hangup()?
    };
    Ok((runtime, signals))
}

/// The events that cannot be read from the pipe again, and how to go on with the same events from
/// elsewhere.
fn resume_pipe(next: u64, taken: u64, again: &str) -> String {
    let lost = match taken.saturating_sub(next) {
        0 => "every event that was taken from the pipe was published".to_owned(),
        1 => {
            format!(
                "event {next} (the first is 0) was taken from the pipe and is not known to be published"
            )
        }
        _ => {
            let last = taken - 1;
            format!(
                "the events {next} to {last} (the first is 0) were taken from the pipe and are not known to \
                    be published"
            )
        }
    };
    format!(
        "{lost}; given the same events from the first on, {again} goes on there, and what was published \
         beyond is not published again within a day, unless the pipe paused there"
    )
}

/// True for the content type of a single event, which no request of many can have.
fn is_single_event_type(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case(EVENT)
}

fn open_input(path: &Path) -> Result<RunInput, InputError> {
    let opened = if path == Path::new("-") {
        open_pipe(io::stdin()).map(|(pipe, events)| RunInput {
            source: Box::new(events),
            pipe: Some(pipe),
        })
    } else {
        File::open(path).map(|file| RunInput {
            source: Box::new(EventReader::new(BufReader::new(file))),
            pipe: None,
        })
    };
    opened.map_err(|source| InputError {
        path: path.to_owned(),
        source,
    })
}

/// The state of the run.
fn run_reply(
    run: &PublishRun<ClientError>,
    topic: &str,
    name: &str,
    took: Duration,
) -> CommandReply {
    let counts = run.counts();
    let json = json!({ "published": {
        "topic": topic,
        "run": name,
        "events": counts.events,
        "requests": counts.requests,
        "delayedRequests": counts.delayed,
        "refusedRequests": counts.refused,
        "retriedRequests": counts.retried,
        "unmatchedEvents": counts.report.map(|report| report.unmatched),
        "matchedSubscriptionsMax": counts.report.map(|report| report.subscriptions_max),
        "nextEvent": run.resume_at(),
        "seconds": took.as_secs_f64(),
    } });
    // A double is exact for more events than a run can have.
    let per_second =
        u32::try_from(counts.events).map_or(f64::INFINITY, f64::from) / took.as_secs_f64().max(1.0);
    let events = count_with_noun(counts.events, "event");
    let text = format!(
        "published {events} to {topic}: {}",
        counts_summary(counts, per_second)
    );
    let reply = CommandReply::new(json).line(text);
    match counts.report {
        Some(report) => reply.line(render_report(report, topic)),
        None => reply,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unpublished_events_of_a_pipe_are_named_by_number() {
        let check = |next, taken, expected: &str| {
            let found = resume_pipe(next, taken, "AGAIN");
            let rest = "; given the same events from the first on, AGAIN goes on there, and what was \
                published beyond is not published again within a day, unless the pipe paused there";
            assert_eq!(found, format!("{expected}{rest}"), "{next} of {taken}");
        };
        check(
            150,
            150,
            "every event that was taken from the pipe was published",
        );
        check(
            7,
            8,
            "event 7 (the first is 0) was taken from the pipe and is not known to be published",
        );
        check(
            7,
            10,
            "the events 7 to 9 (the first is 0) were taken from the pipe and are not known to be published",
        );
    }
}
