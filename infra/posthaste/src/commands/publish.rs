//! `publish`: sends the bytes of a file to a topic as they are, or its events at a pace that obeys
//! back pressure.

mod batches;
mod content_type;
mod ending;
mod events;
mod meter;
mod number;
mod outcome;
mod pace;
mod paced;
mod pipe;
mod pressure_header;
mod progress;
mod report;
mod run;
mod step;
mod stream;
mod target;
mod unacknowledged;

use serde_json::json;

use super::source;
use crate::cli::{GlobalOptions, PublishArgs};
use crate::error::CommandError;
use crate::output::CommandReply;
use content_type::content_type_of;
use report::PublishReport;
use target::PublishTarget;

pub(crate) fn run(
    global: &GlobalOptions,
    arguments: PublishArgs,
) -> Result<CommandReply, CommandError> {
    match arguments.pace.rate {
        Some(rate) => paced::run(global, arguments, rate),
        None => publish_file(global, arguments),
    }
}

/// The file as it is.
fn publish_file(
    global: &GlobalOptions,
    arguments: PublishArgs,
) -> Result<CommandReply, CommandError> {
    let bytes = source::read_input(&arguments.file)?;
    let target = PublishTarget::find(global, &arguments)?;
    let content_type = arguments
        .content_type
        .unwrap_or_else(|| content_type_of(&bytes).to_owned());
    let size = bytes.len();
    let report = PublishReport::from_response(&target.post(&content_type, None, bytes)?);
    let json = json!({ "published": {
        "topic": arguments.topic,
        "bytes": size,
        "contentType": content_type,
        "acceptedEvents": report.map(|report| report.accepted),
        "matchedSubscriptions": report.map(|report| report.subscriptions_max),
        "unmatchedEvents": report.map(|report| report.unmatched),
    } });
    let done = format!(
        "published {size} bytes to {} as {content_type}",
        arguments.topic
    );
    let text = report.map_or(done, |report| report.render_text(&arguments.topic));
    Ok(CommandReply::new(json).line(text))
}
