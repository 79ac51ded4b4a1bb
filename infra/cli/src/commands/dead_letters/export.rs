//! `dead-letters export`: a line of JSON for each dead letter. One object is held at a time.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use posthaste_core::api::{DeadLetterView, ReplayFailure};
use posthaste_core::model::FormatError;
use posthaste_core::stored::dead_letter::{LetterLine, MovedObject};
use posthaste_core::stored::{ResolvedLetters, layout};
use posthaste_local::{make_folder, private};
use serde_json::json;

use super::pages::{PAGE_MAX, dead_letter_call, read_page};
use crate::cli::DeadLettersExportArgs;
use crate::client::ClientError;
use crate::commands::AdminSession;
use crate::commands::replays::{self, count_with_noun};
use crate::error::{CommandError, CommandFailure};
use crate::output::CommandReply;
use crate::terminal::{StandardStream, TerminalText};

/// The file of an export in its folder, and its name until it is whole.
const FILE: &str = "dead-letters.jsonl";
const PART: &str = "dead-letters.jsonl.part";

/// Error of an export.
#[derive(Debug, thiserror::Error)]
enum ExportError {
    /// A file cannot be written.
    #[error("failed to write {}", path.display())]
    Write { path: PathBuf, source: io::Error },
    /// There is an export already.
    #[error("{} is there already", path.display())]
    Exists { path: PathBuf },
    /// Standard output takes no more.
    #[error("failed to write to standard output")]
    Output(#[source] io::Error),
    /// The list of what is resolved was written by a newer version.
    #[error("what is resolved in {object} cannot be read")]
    Resolved { object: String, source: FormatError },
    /// Objects are missing.
    #[error("{} could not be exported; the others were", count_with_noun(*objects as u64, "object"))]
    Incomplete { objects: usize },
    /// The list of subscriptions was cut.
    #[error("the export is not whole: {note}")]
    Cut { note: String },
}

impl CommandFailure for ExportError {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Exists { .. } => "another folder; nothing was changed",
            Self::Incomplete { .. } => {
                "copy these objects with the tools of their folder or bucket"
            }
            Self::Cut { .. } => "`posthaste dead-letters export TOPIC`, topic by topic",
            _ => return None,
        };
        Some(hint.to_owned())
    }
}

/// The numbers of an export.
#[derive(Debug, Default)]
struct ExportCounts {
    objects: u64,
    letters: u64,
    resolved: u64,
    failures: Vec<ReplayFailure>,
}

pub(super) fn run(
    session: &AdminSession,
    arguments: &DeadLettersExportArgs,
) -> Result<CommandReply, CommandError> {
    let mut out = ExportOutput::open(&arguments.output)?;
    let mut exported = ExportCounts::default();
    let mut cursor = None;
    let mut last = String::new();
    let mut note = None;
    loop {
        let page = read_page(session, &arguments.which, PAGE_MAX, cursor.clone())?;
        for rows in page.dead_letters.chunk_by(|a, b| a.object == b.object) {
            // The rows of an object may be on two pages.
            if rows[0].object != last {
                last.clone_from(&rows[0].object);
                export_object(session, rows, &mut out, &mut exported)?;
            }
        }
        exported.failures.extend(page.failures);
        note = page.note.or(note);
        // A page without anything may have a cursor, but never the same one.
        let is_stuck = page.dead_letters.is_empty() && page.cursor == cursor;
        cursor = page.cursor;
        if is_stuck || cursor.is_none() {
            break;
        }
    }
    let path = out.finish()?;
    let reply = export_reply(&exported, path.as_deref());
    if let Some(note) = note {
        return Err(CommandError::from(ExportError::Cut { note }).with_done(reply));
    }
    match exported.failures.len() {
        0 => Ok(reply),
        objects => Err(CommandError::from(ExportError::Incomplete { objects }).with_done(reply)),
    }
}

/// The status for an object that is larger than an answer of Lambda may be.
const TOO_LARGE: u16 = 422;

/// Exports the object of these rows of a list.
fn export_object(
    session: &AdminSession,
    rows: &[DeadLetterView],
    out: &mut ExportOutput,
    exported: &mut ExportCounts,
) -> Result<(), CommandError> {
    let object = &rows[0].object;
    let bytes = match read_object(session, object) {
        Ok(Some(bytes)) => bytes,
        // It was deleted since it was listed.
        Ok(None) => return Ok(()),
        Err(ClientError::Refused(refusal)) if refusal.status == TOO_LARGE => {
            exported.failures.push(ReplayFailure {
                key: object.clone(),
                index: None,
                detail: refusal.to_string(),
            });
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    let states = read_resolved_letters(session, object)?;
    let moved = match MovedObject::read(object, &bytes, &states) {
        Ok(moved) => moved,
        Err(error) => {
            exported.failures.push(ReplayFailure {
                key: object.clone(),
                index: None,
                detail: error.to_string(),
            });
            return Ok(());
        }
    };
    for line in moved.letter_lines(&states) {
        out.write_line(&line)?;
    }
    exported.objects += 1;
    exported.letters += moved.letters.len() as u64;
    exported.resolved += states.places.len() as u64;
    Ok(())
}

/// An object of the dead letters, as it is stored. `None` if there is none.
fn read_object(session: &AdminSession, key: &str) -> Result<Option<Vec<u8>>, ClientError> {
    match session.client.send(dead_letter_call(session, key)) {
        Ok(answer) => Ok(Some(answer.body)),
        Err(ClientError::Refused(refusal)) if refusal.status == 404 => Ok(None),
        Err(error) => Err(error),
    }
}

/// The letters of an object that are resolved. A damaged list is none, as everywhere: a letter too
/// many is better than one too few.
fn read_resolved_letters(
    session: &AdminSession,
    object: &str,
) -> Result<ResolvedLetters, CommandError> {
    let Some(list) = read_object(session, &layout::resolved_letters_key(object))? else {
        return Ok(ResolvedLetters::default());
    };
    match ResolvedLetters::parse(&list) {
        Err(FormatError::Malformed(..)) => Ok(ResolvedLetters::default()),
        read => read.map_err(|source| {
            let object = object.to_owned();
            ExportError::Resolved { object, source }.into()
        }),
    }
}

fn export_reply(exported: &ExportCounts, path: Option<&Path>) -> CommandReply {
    let ExportCounts {
        objects,
        letters,
        resolved,
        failures,
    } = exported;
    let said = format!(
        "exported {} of {}, {resolved} of them resolved",
        count_with_noun(*letters, "dead letter"),
        count_with_noun(*objects, "object")
    );
    match path {
        Some(path) => {
            let reply = CommandReply::new(json!({
                "file": path, "objects": objects, "deadLetters": letters, "resolved": resolved,
                "failures": failures,
            }));
            let reply = reply.line(format!("{}: {said}", path.display()));
            replays::add_failures(reply, "cannot be exported", failures)
        }
        // Standard output has the lines alone.
        None => failures
            .iter()
            .fold(CommandReply::without_json().note(said), |reply, failure| {
                reply.note(format!(
                    "cannot be exported: {}: {}",
                    failure.key, failure.detail
                ))
            }),
    }
}

/// The destination of the lines.
enum ExportOutput {
    Output,
    File {
        folder: PathBuf,
        part: BufWriter<File>,
    },
}

impl ExportOutput {
    fn open(to: &Path) -> Result<Self, ExportError> {
        if to == Path::new("-") {
            return Ok(Self::Output);
        }
        let path = to.join(FILE);
        if path.exists() {
            return Err(ExportError::Exists { path });
        }
        make_folder(to).map_err(write_error(to))?;
        let part = to.join(PART);
        let mut options = OpenOptions::new();
        let file = private::open(options.write(true).create(true).truncate(true), &part);
        Ok(Self::File {
            folder: to.to_owned(),
            part: BufWriter::new(file.map_err(write_error(&part))?),
        })
    }

    fn write_line(&mut self, line: &LetterLine) -> Result<(), CommandError> {
        // Plain data with text keys: serialising it cannot fail.
        let json = serde_json::to_string(line).unwrap_or_default();
        let written = match self {
            Self::Output => print_line(&json).map_err(ExportError::Output),
            Self::File { folder, part } => {
                writeln!(part, "{json}").map_err(write_error(&folder.join(PART)))
            }
        };
        Ok(written?)
    }

    /// Makes the file durable, under its name.
    fn finish(self) -> Result<Option<PathBuf>, ExportError> {
        let Self::File { folder, part } = self else {
            return Ok(None);
        };
        let path = folder.join(FILE);
        let written = part
            .into_inner()
            .map_err(io::IntoInnerError::into_error)
            .and_then(|file| file.sync_all())
            .and_then(|()| fs::rename(folder.join(PART), &path))
            .and_then(|()| File::open(&folder)?.sync_all());
        written.map_err(write_error(&path))?;
        Ok(Some(path))
    }
}

/// Prints a line. On a terminal, what nobody sees is escaped; a pipe gets each byte as it is stored.
fn print_line(json: &str) -> io::Result<()> {
    if StandardStream::Output.is_terminal() {
        StandardStream::Output.write_line(&TerminalText::from_json(json))
    } else {
        StandardStream::Output.write_exactly(format!("{json}\n").as_bytes())
    }
}

fn write_error(path: &Path) -> impl FnOnce(io::Error) -> ExportError {
    let path = path.to_owned();
    move |source| ExportError::Write { path, source }
}
