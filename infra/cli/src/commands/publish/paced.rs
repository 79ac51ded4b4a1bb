//! `publish --rate`: from the arguments to a run, and from its end to what is said of it.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use posthaste_ports::{Clock, Entropy};
use posthaste_publisher::{
    EVENT, EventBatch, EventBatches, EventReader, EventsError, PackingSettings, PipeHandle,
    PublishOutcome, PublishPace, PublishRun, RateDriver, SourceItem, open_pipe,
};
use posthaste_system::{SystemClock, SystemEntropy};
use serde_json::json;
use tokio::runtime::{self, Runtime};

use super::ending::{PacedPublishError, UnfinishedRun};
use super::number::count_with_noun;
use super::outcome::outcome_of;
use super::progress::{ProcessHost, counts_summary};
use super::report::render_report;
use super::target::PublishTarget;
use crate::cli::{GlobalOptions, PublishArgs, PublishRate};
use crate::client::ClientError;
use crate::commands::InputError;
use crate::error::CommandError;
use crate::output::CommandReply;
use crate::signals::SignalListener;
use crate::terminal::{StandardStream, TerminalText, tell_user};

type EventSource = Box<dyn Iterator<Item = Result<SourceItem, EventsError>> + Send>;

pub(super) fn run(
    global: &GlobalOptions,
    arguments: PublishArgs,
    rate: PublishRate,
) -> Result<CommandReply, CommandError> {
    let content_type = arguments.content_type.clone();
    if let Some(found) = content_type.as_ref().filter(|it| is_single_event_type(it)) {
        return Err(PacedPublishError::SingleEventType(found.clone()).into());
    }
    let (source, pipe) = open_input(&arguments.file).map_err(|source| InputError {
        path: arguments.file.clone(),
        source,
    })?;
    let target = PublishTarget::find(global, &arguments)?;
    let pace = arguments.pace;
    let name = pace.run.unwrap_or_else(|| SystemEntropy.uuid().to_string());
    let packing = PackingSettings {
        events_max: pace.batch,
        from: pace.from,
        content_type,
    };
    let cap = match rate {
        PublishRate::Auto => None,
        PublishRate::PerSecond(events) => Some(events.get()),
    };
    let run = PublishRun::new(PublishPace::new(cap), pace.from, pace.give_up_after);
    let run = run.of_pipe(pipe.is_some());
    let driver = RateDriver {
        clock: SystemClock,
        entropy: SystemEntropy,
        publish: Arc::new(publish_call(target, name.clone())),
    };
    print_run_name(global.json, &name);
    let began = SystemClock.monotonic();
    let (runtime, signals) = listen_for_signals().map_err(PacedPublishError::Process)?;
    let mut host = ProcessHost::new(signals, pipe, global.json);
    let batches = EventBatches::new(source, packing);
    let run = runtime.block_on(driver.drive(run, batches, &mut host));
    host.end_line();
    // What still reads or sends is not waited for: a pipe may be silent for ever.
    runtime.shutdown_background();
    let took = SystemClock.monotonic().saturating_sub(began);
    let done = run_reply(&run, &arguments.topic, &name, took);
    let next = run.resume_at();
    let Some(ending) = run.into_ending() else {
        return Ok(done);
    };
    let again = format!(
        "the same command with --from {next} --batch {} --run {name} goes on there",
        pace.batch
    );
    let resume = match host.pipe {
        None => {
            format!("{again}; what was published beyond is not published again within a day")
        }
        Some(pipe) => resume_pipe(next, pipe.taken_count(), &again),
    };
    let done = done.line(format!(
        "event {next} (the first is 0) is the first that is not known to be published"
    ));
    Err(CommandError::from(UnfinishedRun { ending, resume }).with_done(done))
}

/// Prints the run's name before anything is sent. A process that is killed prints nothing, and
/// only with the name can the same events be sent again without a second publication.
fn print_run_name(is_json: bool, name: &str) {
    if is_json {
        let name = TerminalText::from_json(json!({ "run": name }));
        // The run goes on without a reader.
        let _ = StandardStream::Error.write_line(&name);
    } else {
        tell_user(&format!("run {name}"));
    }
}

/// A call that publishes a batch of the run with this name.
fn publish_call(
    target: PublishTarget,
    name: String,
) -> impl Fn(&EventBatch) -> PublishOutcome<ClientError> + Send + Sync + 'static {
    move |batch| {
        let name = Some(batch.name(&name));
        let answer = target.post(&batch.content_type, name, batch.body.clone());
        let mut outcome = outcome_of(answer, SystemClock.now());
        if let PublishOutcome::Final { index, error } = &mut outcome
            && let ClientError::Refused(refusal) = error
        {
            // An event that the server names has its number in the file.
            refusal.index = index.map(|index| batch.first + index);
        }
        outcome
    }
}

/// Listens for signals: from now on they do not end the process by themselves.
fn listen_for_signals() -> io::Result<(Runtime, SignalListener)> {
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let signals = runtime.block_on(async { SignalListener::listen_with_hangup() })?;
    Ok((runtime, signals))
}

/// The events that cannot be read from the pipe again, and how to go on with the same events from
/// elsewhere.
fn resume_pipe(next: u64, taken: u64, again: &str) -> String {
    let lost = match taken.saturating_sub(next) {
        0 => "every event that was taken from the pipe was published".to_owned(),
        1 => format!(
            "event {next} (the first is 0) was taken from the pipe and is not known to be published"
        ),
        _ => format!(
            "the events {next} to {} (the first is 0) were taken from the pipe and are not known to be \
             published",
            taken - 1
        ),
    };
    format!(
        "{lost}; given the same events from the first on, {again}, and what was published beyond is not \
         published again within a day, unless the pipe paused there"
    )
}

/// True for the content type of a single event, which no request of many can have.
fn is_single_event_type(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case(EVENT)
}

/// The events of a file, or of the pipe that standard input is.
fn open_input(path: &Path) -> io::Result<(EventSource, Option<PipeHandle>)> {
    if path == Path::new("-") {
        let (pipe, events) = open_pipe(io::stdin())?;
        return Ok((Box::new(events), Some(pipe)));
    }
    let file = BufReader::new(File::open(path)?);
    Ok((Box::new(EventReader::new(file)), None))
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
    let summary = counts_summary(counts, per_second);
    let reply = CommandReply::new(json).line(format!("published {events} to {topic}: {summary}"));
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
            let found = resume_pipe(next, taken, "AGAIN goes on there");
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
