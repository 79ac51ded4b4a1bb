//! `publish --rate`: from the arguments to a run, and from its end to what is said of it.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;
use std::time::Duration;

use posthaste_ports::{Clock, Entropy};
use posthaste_system::{SystemClock, SystemEntropy};
use serde_json::json;

use super::batches::{Batches, Packing, Source};
use super::content_type::EVENT;
use super::ending::{ManyOfOne, Unfinished};
use super::events::Events;
use super::number::count;
use super::pace::Pace;
use super::pipe::Pipe;
use super::progress::{Progress, summary};
use super::run::Run;
use super::stream::{Sending, drive};
use super::target::Target;
use crate::cli::{Global, PublishArgs, Rate};
use crate::commands::InputError;
use crate::error::CommandError;
use crate::output::Reply;

pub(super) fn run(
    global: &Global,
    arguments: PublishArgs,
    rate: Rate,
) -> Result<Reply, CommandError> {
    if let Some(content_type) = arguments.content_type.as_deref().filter(|it| is_of_one(it)) {
        return Err(ManyOfOne {
            found: content_type.to_owned(),
        }
        .into());
    }
    let (source, pipe) = open(&arguments.file)?;
    let target = Target::find(global, &arguments)?;
    let pace = arguments.pace;
    let name = pace.run.unwrap_or_else(|| SystemEntropy.uuid().to_string());
    let packing = Packing {
        events_max: pace.batch,
        from: pace.from,
        content_type: arguments.content_type,
    };
    let cap = match rate {
        Rate::Auto => None,
        Rate::PerSecond(events) => Some(events.get()),
    };
    Progress::begin(global.json, &name);
    let began = SystemClock.monotonic();
    let run = Run::new(Pace::new(cap), pace.from, pace.give_up_after);
    let run = drive(
        if pipe.is_some() { run.of_pipe() } else { run },
        Batches::of(source, packing),
        pipe.as_ref(),
        Sending {
            target,
            name: name.as_str().into(),
        },
        Progress::on_stderr(global.json, began),
    );
    let took = SystemClock.monotonic().saturating_sub(began);
    let done = reply(&run, &arguments.topic, &name, took);
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
        Some(pipe) => resume_pipe(next, pipe.taken(), &again),
    };
    Err(CommandError::from(Unfinished { ending, resume }).after(done))
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
fn is_of_one(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case(EVENT)
}

type Input = (Box<dyn Source + Send>, Option<Pipe>);

fn open(path: &Path) -> Result<Input, InputError> {
    let refuse = |source| InputError {
        path: path.to_owned(),
        source,
    };
    if path == Path::new("-") {
        let (pipe, events) = Pipe::open(io::stdin()).map_err(refuse)?;
        return Ok((Box::new(events), Some(pipe)));
    }
    let file = File::open(path).map_err(refuse)?;
    Ok((Box::new(Events::of(BufReader::new(file))), None))
}

/// The state of the run.
fn reply(run: &Run, topic: &str, name: &str, took: Duration) -> Reply {
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
    let events = count(counts.events, "event");
    let text = format!(
        "published {events} to {topic}: {}",
        summary(counts, per_second)
    );
    let reply = Reply::new(json).line(text);
    match counts.report {
        Some(report) => reply.line(report.text(topic)),
        None => reply,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_from_a_pipe_and_not_published_is_said_by_number() {
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
