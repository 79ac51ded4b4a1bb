//! `publish --rate`: from the arguments to a run, and from its end to what is said of it.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::time::Duration;

use posthaste_local::{SystemClock, SystemEntropy};
use posthaste_ports::{Clock, Entropy};
use serde_json::json;

use super::EVENT;
use super::batches::{Batches, Packing};
use super::door::Door;
use super::events::Events;
use super::pace::Pace;
use super::progress::{Progress, grouped, summary};
use super::run::Run;
use super::stream::{Sending, drive};
use crate::cli::{Global, PublishArgs, Rate};
use crate::commands::CommandError;
use crate::output::Reply;

pub(super) fn run(global: &Global, arguments: PublishArgs, rate: Rate) -> Result<Reply, CommandError> {
    if let Some(content_type) = arguments.content_type.as_deref().filter(|it| is_of_one(it)) {
        return Err(CommandError::ContentType { found: content_type.to_owned() });
    }
    let input = open(&arguments.file)?;
    let door = Door::find(global, &arguments)?;
    let pace = arguments.pace;
    let name = pace.run.unwrap_or_else(|| SystemEntropy.uuid().to_string());
    let packing = Packing { events_max: pace.batch, from: pace.from, content_type: arguments.content_type };
    let cap = match rate {
        Rate::Auto => None,
        Rate::PerSecond(events) => Some(events.get()),
    };
    let began = SystemClock.monotonic();
    let run = drive(
        Run::new(Pace::new(cap), pace.from, pace.give_up_after),
        Batches::of(Events::of(input), packing),
        Sending { door, name: name.as_str().into() },
        Progress::on_stderr(global.json, began),
    );
    let took = SystemClock.monotonic().saturating_sub(began);
    let (done, next) = (told(&run, &arguments.topic, &name, took), run.resume_at());
    match run.into_ending() {
        None => Ok(done),
        Some(ending) => {
            let done = done.line(format!(
                "event {next} (the first is 0) is the first that is not known to be published"
            ));
            let resume = format!(
                "the same command with --from {next} --batch {} --run {name} goes on there; what was published beyond is \
                 not published again within a day",
                pace.batch
            );
            Err(CommandError::Unfinished { ending: Box::new(ending), resume, done: Box::new(done) })
        }
    }
}

/// Whether this is the content type of a single event, which no request of many can have.
fn is_of_one(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case(EVENT)
}

fn open(path: &Path) -> Result<Box<dyn BufRead + Send>, CommandError> {
    if path == Path::new("-") {
        return Ok(Box::new(BufReader::new(io::stdin())));
    }
    let file = File::open(path).map_err(|source| CommandError::Input { path: path.to_owned(), source })?;
    Ok(Box::new(BufReader::new(file)))
}

/// How it stands.
fn told(run: &Run, topic: &str, name: &str, took: Duration) -> Reply {
    let counts = run.counts();
    let json = json!({ "published": {
        "topic": topic,
        "run": name,
        "events": counts.events,
        "requests": counts.requests,
        "heldRequests": counts.held,
        "refusedRequests": counts.refused,
        "retriedRequests": counts.retried,
        "nextEvent": run.resume_at(),
        "seconds": took.as_secs_f64(),
    } });
    // As many events as a double is exact for take longer than anybody waits.
    let per_second =
        u32::try_from(counts.events).map_or(f64::INFINITY, f64::from) / took.as_secs_f64().max(1.0);
    let text =
        format!("published {} events to {topic}: {}", grouped(counts.events), summary(counts, per_second));
    Reply::new(json).line(text)
}
