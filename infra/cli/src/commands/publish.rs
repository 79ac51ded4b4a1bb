//! `publish`: sends the bytes of a file to a topic as they are, or its events at a pace that obeys
//! back pressure.

mod ending;
mod number;
mod outcome;
mod paced;
mod progress;
mod report;
mod target;

use posthaste_publisher::{PublishReport, content_type_of};
use serde_json::json;

use super::source;
use crate::cli::{GlobalOptions, PublishArgs};
use crate::error::CommandError;
use crate::output::CommandReply;
use report::render_report;
use target::PublishTarget;

pub fn run(global: &GlobalOptions, arguments: PublishArgs) -> Result<CommandReply, CommandError> {
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
    let report = PublishReport::parse(&target.post(&content_type, None, bytes)?.body);
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
    let text = report.map_or(done, |report| render_report(report, &arguments.topic));
    Ok(CommandReply::new(json).line(text))
}
