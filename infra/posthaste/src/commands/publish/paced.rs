//! `publish --rate`: from the arguments to a run, and from its end to what is said of it.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;
use std::time::Duration;

use posthaste_ports::{Clock, Entropy};
use posthaste_system::{SystemClock, SystemEntropy};
use serde_json::json;

use super::batches::{EventBatches, EventSource, PackingSettings};
use super::content_type::EVENT;
use super::ending::{SingleEventTypeError, UnfinishedRun};
use super::events::EventReader;
use super::number::count_with_noun;
use super::pace::PublishPace;
use super::pipe::PipeHandle;
use super::progress::{RunProgress, counts_summary};
use super::run::PublishRun;
use super::stream::{RunTarget, drive_run};
use super::target::PublishTarget;
use crate::cli::{GlobalOptions, PublishArgs, PublishRate};
use crate::commands::InputError;
use crate::error::CommandError;
use crate::output::CommandReply;

pub(super) fn run(
    global: &GlobalOptions,
    arguments: PublishArgs,
    rate: PublishRate,
) -> Result<CommandReply, CommandError> {
    if let Some(content_type) = arguments
        .content_type
        .as_deref()
        .filter(|it| is_single_event_type(it))
    {
        return Err(SingleEventTypeError {
            found: content_type.to_owned(),
        }
        .into());
    }
    let (source, pipe) = open_input(&arguments.file)?;
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
    let run = PublishRun::new(PublishPace::new(cap), pace.from, pace.give_up_after);
    let run = drive_run(
        if pipe.is_some() { run.of_pipe() } else { run },
        EventBatches::new(source, packing),
        pipe.as_ref(),
        RunTarget {
            target,
            name: name.as_str().into(),
        },
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
    let resume = match pipe {
        None => {
            format!(
                "{again} goes on there; what was published beyond is not published again within a day"
            )
        }
        Some(pipe) => resume_pipe(next, pipe.taken_count(), &again),
    };
    Err(CommandError::from(UnfinishedRun { ending, resume }).with_done(done))
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

type SourceAndPipe = (Box<dyn EventSource + Send>, Option<PipeHandle>);

fn open_input(path: &Path) -> Result<SourceAndPipe, InputError> {
    let refuse = |source| InputError {
        path: path.to_owned(),
        source,
    };
    if path == Path::new("-") {
        let (pipe, events) = PipeHandle::open(io::stdin()).map_err(refuse)?;
        return Ok((Box::new(events), Some(pipe)));
    }
    let file = File::open(path).map_err(refuse)?;
    Ok((Box::new(EventReader::new(BufReader::new(file))), None))
}

/// The state of the run.
fn run_reply(run: &PublishRun, topic: &str, name: &str, took: Duration) -> CommandReply {
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
        Some(report) => reply.line(report.render_text(topic)),
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
