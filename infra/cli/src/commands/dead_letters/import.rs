//! `dead-letters import`: the objects of exported files, some of them in a request.

use std::collections::BTreeSet;
use std::path::PathBuf;

use posthaste_core::api::ImportResponse;
use posthaste_core::model::{DEAD_LETTER_IMPORT_BYTES_MAX, DEAD_LETTER_IMPORT_OBJECTS_MAX};
use posthaste_core::stored::dead_letter::MovedObject;
use serde_json::json;
use ureq::http::Method;

use super::file::ExportedObjects;
use crate::cli::DeadLettersImportArgs;
use crate::client::ClientError;
use crate::commands::AdminSession;
use crate::commands::replays::count_with_noun;
use crate::error::{CommandError, CommandFailure};
use crate::output::CommandReply;

/// Error of an import that the server ends.
#[derive(Debug, thiserror::Error)]
#[error("the import ended before its end, at the object {object}; what was put in stays")]
struct ImportError {
    /// The first object that was not put in.
    object: String,
    source: ClientError,
}

impl CommandFailure for ImportError {
    fn hint(&self) -> Option<String> {
        let hint = match &self.source {
            ClientError::Refused(refusal) if refusal.status == 413 => {
                "the file without the lines of this object, which is too large for a request"
            }
            ClientError::Refused(refusal) if refusal.status < 500 => return None,
            _ => "the same command again: it leaves what is there already",
        };
        Some(hint.to_owned())
    }
}

/// Most bytes of a request of several objects as text within JSON: a Lambda function gets it like
/// that, and takes 6 MB with the headers.
/// <https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>
const TEXT_BYTES_MAX: usize = 6 * 1024 * 1024 - 64 * 1024;

/// Objects of the next request.
#[derive(Debug, Default)]
struct ImportBatch {
    keys: BTreeSet<String>,
    /// The first of them.
    first: String,
    /// Their JSON, with commas between.
    json: Vec<u8>,
    /// The characters of that which get a backslash where it is text within JSON.
    escaped: usize,
}

/// The beginning and the end of a request.
const AROUND: [&str; 2] = [r#"{"objects":["#, "]}"];

pub(super) fn run(
    session: &AdminSession,
    arguments: &DeadLettersImportArgs,
) -> Result<CommandReply, CommandError> {
    // Nothing is put in before every line was read.
    let found = count_objects(&arguments.files)?;
    if arguments.dry_run {
        return Ok(import_reply(&found, "would put in"));
    }
    let mut total = ImportResponse::default();
    let put_in = put_all(session, &arguments.files, &mut total);
    let done = import_reply(&total, "put in");
    match put_in {
        Ok(()) => Ok(done),
        Err(error) => Err(error.with_done(done)),
    }
}

/// The numbers of what the files hold.
fn count_objects(files: &[PathBuf]) -> Result<ImportResponse, CommandError> {
    let mut found = ImportResponse::default();
    for file in files {
        let mut objects = ExportedObjects::open(file)?;
        while let Some((object, states)) = objects.next()? {
            found.objects += 1;
            found.dead_letters += object.letters.len() as u64;
            found.resolved += states.places.len() as u64;
        }
    }
    Ok(found)
}

fn put_all(
    session: &AdminSession,
    files: &[PathBuf],
    total: &mut ImportResponse,
) -> Result<(), CommandError> {
    let mut batch = ImportBatch::default();
    for file in files {
        let mut objects = ExportedObjects::open(file)?;
        while let Some((object, _)) = objects.next()? {
            // Plain data with text keys: serialising it cannot fail.
            let json = serde_json::to_vec(&object).unwrap_or_default();
            if !batch.has_room(&object, &json) {
                std::mem::take(&mut batch).send(session, total)?;
            }
            batch.add_object(object, &json);
        }
    }
    batch.send(session, total)
}

impl ImportBatch {
    fn has_room(&self, object: &MovedObject, json: &[u8]) -> bool {
        let around = AROUND.map(str::len).iter().sum::<usize>();
        let bytes = self.json.len() + ",".len() + json.len() + around;
        self.keys.len() < DEAD_LETTER_IMPORT_OBJECTS_MAX
            && bytes <= DEAD_LETTER_IMPORT_BYTES_MAX
            && bytes + self.escaped + count_escaped_bytes(json) <= TEXT_BYTES_MAX
            && !self.keys.contains(&object.object)
    }

    fn add_object(&mut self, object: MovedObject, json: &[u8]) {
        if self.keys.is_empty() {
            self.first.clone_from(&object.object);
        } else {
            self.json.push(b',');
        }
        self.json.extend_from_slice(json);
        self.escaped += count_escaped_bytes(json);
        self.keys.insert(object.object);
    }

    fn send(self, session: &AdminSession, total: &mut ImportResponse) -> Result<(), CommandError> {
        if self.keys.is_empty() {
            return Ok(());
        }
        let object = self.first;
        let [begin, end] = AROUND.map(str::as_bytes);
        let body = [begin, &self.json, end].concat();
        let call = session
            .call(Method::POST, &["dead-letters", "import"])
            .body("application/json", body);
        let answer: ImportResponse = session
            .client
            .send_for_json(call)
            .map_err(|source| ImportError { object, source })?;
        total.objects += answer.objects;
        total.dead_letters += answer.dead_letters;
        total.resolved += answer.resolved;
        total.left_objects += answer.left_objects;
        total.left_dead_letters += answer.left_dead_letters;
        Ok(())
    }
}

fn count_escaped_bytes(json: &[u8]) -> usize {
    let is_escaped = |byte: &&u8| matches!(byte, b'"' | b'\\');
    json.iter().filter(is_escaped).count()
}

fn import_reply(counts: &ImportResponse, done: &str) -> CommandReply {
    let letters = count_with_noun(counts.dead_letters, "dead letter");
    let objects = count_with_noun(counts.objects, "object");
    let resolved = counts.resolved;
    let reply = CommandReply::new(json!(counts));
    let reply = reply.line(format!(
        "{done} {letters} of {objects}, {resolved} of them resolved"
    ));
    if counts.left_objects == 0 {
        return reply;
    }
    let letters = count_with_noun(counts.left_dead_letters, "dead letter");
    let objects = count_with_noun(counts.left_objects, "object");
    reply.line(format!(
        "there already, and left as they are: {letters} of {objects}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of objects of 512 KiB, whose letter is this text again and again, in a request.
    fn objects_in_a_request(text: &str) -> usize {
        let letter = format!("[{}0]", text.repeat(512 * 1024 / text.len()));
        let mut batch = ImportBatch::default();
        for index in 0.. {
            let object = MovedObject {
                object: format!("ORDERS/BILLING/2026/11/29/16/{index}.json"),
                letters: vec![serde_json::from_str(&letter).unwrap()],
                resolved: None,
            };
            let json = serde_json::to_vec(&object).unwrap();
            if !batch.has_room(&object, &json) {
                return index;
            }
            batch.add_object(object, &json);
        }
        unreachable!("a batch has no end")
    }

    #[test]
    fn request_fits_in_what_lambda_takes_as_text() {
        assert_eq!(objects_in_a_request("1234567,"), 8);
        assert_eq!(objects_in_a_request(r#""1234","#), 8);
        // Half of it are quotes, so it is half as much again as text.
        assert_eq!(objects_in_a_request(r#""1","#), 7);
    }
}
