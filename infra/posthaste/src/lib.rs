#![doc = include_str!("../README.md")]

pub mod cli;
pub mod client;
pub mod commands;
pub mod demo;
pub mod error;
pub mod output;
mod run;
pub mod serve;
mod signals;
pub mod yaml;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use crate::cli::Cli;
use crate::error::CommandError;
use crate::output::{Reply, Style};

/// Runs one command line, the program's name included, and answers how it ended.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::read(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are "errors" of clap as well; it knows which stream and exit code they take.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let style = Style::of_stdout(cli.global.json);
    finish(run::run(cli), style)
}

fn finish(outcome: Result<Reply, CommandError>, style: Style) -> ExitCode {
    let error = match outcome {
        Ok(reply) => return show(&reply, style),
        Err(error) => error,
    };
    if let Some(done) = error.done() {
        show(done, style);
    }
    let text = if style == Style::Json { error.json().to_string() } else { error.report() };
    // Nothing is left to tell it to when standard error is closed; the exit code says it too.
    let _ = writeln!(io::stderr(), "{text}");
    ExitCode::from(error.exit_code())
}

fn show(reply: &Reply, style: Style) -> ExitCode {
    let mut stdout = io::stdout();
    match stdout.write_all(reply.render(style).as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        // A reader that has seen enough, such as `head`, is no failure.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: failed to write to standard output: {error}");
            ExitCode::FAILURE
        }
    }
}
