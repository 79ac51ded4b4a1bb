//! `man`: manual pages, one for each command, made of the same texts as `--help`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::builder::Resettable;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use serde_json::json;

use crate::cli::CommandLine;
use crate::error::{CommandError, CommandFailure};
use crate::output::CommandReply;

/// Error of a page that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("failed to write {}", path.display())]
struct ManError {
    path: PathBuf,
    source: io::Error,
}

impl ManError {
    fn failed_at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self {
            path: path.to_owned(),
            source,
        }
    }
}

impl CommandFailure for ManError {}

/// A page: the name of its file, and its text.
struct ManPage {
    file: String,
    text: Vec<u8>,
}

/// Writes all pages into a folder, which is made if it is not there.
pub fn run(folder: &Path) -> Result<CommandReply, CommandError> {
    fs::create_dir_all(folder).map_err(ManError::failed_at(folder))?;
    let mut files = Vec::new();
    for command in with_subcommands(root_command()) {
        let page = man_page(command).map_err(ManError::failed_at(folder))?;
        let path = folder.join(&page.file);
        fs::write(&path, page.text).map_err(ManError::failed_at(&path))?;
        files.push(page.file);
    }
    let line = format!("wrote {} pages to {}", files.len(), folder.display());
    Ok(CommandReply::new(json!({ "folder": folder, "pages": files })).line(line))
}

/// The program, with what its commands inherit from it.
fn root_command() -> Command {
    let mut root = without_help(CommandLine::command());
    root.build();
    root
}

/// A command without `help`, which needs no page: it shows the others.
fn without_help(command: Command) -> Command {
    command
        .disable_help_subcommand(true)
        .mut_subcommands(without_help)
}

/// A command, and all below it.
fn with_subcommands(command: Command) -> Vec<Command> {
    let below: Vec<_> = command
        .get_subcommands()
        .cloned()
        .flat_map(with_subcommands)
        .collect();
    [vec![command], below].concat()
}

fn man_page(command: Command) -> io::Result<ManPage> {
    let sections = command
        .get_after_help()
        .map(ToString::to_string)
        .unwrap_or_default();
    let source = concat!("posthaste ", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command.after_help(Resettable::Reset))
        .source(source)
        .manual("posthaste");
    let file = man.get_filename();
    let mut text = Vec::new();
    man.render(&mut text)?;
    sections
        .split("\n\n")
        .filter(|it| !it.is_empty())
        .for_each(|it| text.extend(roff_section(it)));
    Ok(ManPage { file, text })
}

/// A section of the text below the options: a heading with a colon, and lines that stay as they
/// are.
fn roff_section(text: &str) -> Vec<u8> {
    let mut roff = Roff::new();
    let (heading, lines) = text.split_once('\n').unwrap_or((text, ""));
    roff.control(
        "SH",
        [heading.trim_end_matches(':').to_uppercase().as_str()],
    )
    .control("nf", []);
    for line in lines.lines() {
        roff.text([roman(line)]);
    }
    roff.control("fi", []);
    roff.to_roff().into_bytes()
}
