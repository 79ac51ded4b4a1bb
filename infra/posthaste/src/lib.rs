#![doc = include_str!("../README.md")]

pub mod backup;
pub mod cli;
pub mod client;
pub mod commands;
pub mod demo;
pub mod error;
mod listen;
pub mod output;
pub mod serve;
mod signals;
mod signature;
pub mod terminal;
mod threads;
pub mod yaml;

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use crate::cli::{AdminKey, Cli, Command, WRONG_LINE, WrongLine, asks_for_json};
use crate::commands::{
    Session, apply, attempts, audit, backup as back_up, check, completions, data_dir, dead_letters,
    doctor, events, health, links, man, pressure, publish, replays, restore, subscriptions, topics,
};
use crate::error::CommandError;
use crate::output::{Reply, Style};
use crate::terminal::{Shown, Stream, print_help, tell};

/// Runs one command line, the program's name included, and returns the exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<_> = arguments.into_iter().collect();
    let cli = match Cli::read(arguments.iter().cloned()) {
        Ok(cli) => cli,
        Err(error) => {
            if let Some(wrong) = WrongLine::of(&error) {
                serve::log::say(&if asks_for_json(&arguments) {
                    Shown::json(wrong.json())
                } else {
                    Shown::text(&wrong.report())
                });
                return ExitCode::from(WRONG_LINE);
            }
            // Help and version are "errors" of clap as well. It knows their stream and exit code.
            print_help(&error);
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let style = Style::of_stdout(cli.global.json);
    let code = finish(execute(cli), style);
    serve::log::flush();
    code
}

/// Runs a command to its end.
fn execute(Cli { global, command }: Cli) -> Result<Reply, CommandError> {
    let open = |admin: AdminKey| Session::open(&global, admin.key.as_deref());
    match command {
        Command::Serve(arguments) => serve::run(&global, &arguments).map(|()| Reply::silent()),
        Command::Check { data } => check::run(&data.unwrap_or_else(|| data_dir(&global))),
        Command::Backup {
            folder,
            data,
            admin,
        } => match data {
            Some(data) => back_up::of_stopped(&data, &folder),
            None => back_up::of_running(&open(admin)?, &folder),
        },
        Command::Restore { backup, data } => {
            restore::run(&backup, &data.unwrap_or_else(|| data_dir(&global)))
        }
        Command::Demo => demo::run(&global),
        Command::Listen(arguments) => listen::run(&global, &arguments),
        Command::Apply {
            files,
            dry_run,
            prune,
            keep,
            confirmed,
            admin,
        } => {
            let files = if keep {
                apply::check_parts_of_files(&files)?
            } else {
                apply::check_files(&files)?
            };
            let way = apply::Way {
                dry_run,
                prune,
                is_confirmed: confirmed.yes,
            };
            apply::run(&open(admin)?, &files, way)
        }
        Command::Publish(arguments) => publish::run(&global, arguments),
        Command::Topics { command, admin } => topics::run(&open(admin)?, command),
        Command::Subscriptions { command, admin } => subscriptions::run(&open(admin)?, &command),
        Command::Events { command, admin } => events::run(&open(admin)?, &command),
        Command::Attempts { command, admin } => attempts::run(&open(admin)?, &command, global.json),
        Command::DeadLetters { command, admin } => dead_letters::run(&open(admin)?, &command),
        Command::Replays { command, admin } => replays::run(&open(admin)?, command),
        Command::Audit { which, admin } => audit::run(&open(admin)?, &which),
        Command::Links(admin) => links::run(&open(admin)?),
        Command::Health => health::run(&global),
        Command::Doctor { endpoints, admin } => doctor::run(&global, &admin, endpoints),
        Command::Pressure(admin) => pressure::run(&open(admin)?),
        Command::Completions { shell } => Ok(completions::run(shell)),
        Command::Man { folder } => man::run(&folder),
    }
}

fn finish(outcome: Result<Reply, CommandError>, style: Style) -> ExitCode {
    let error = match outcome {
        Ok(reply) => return show(&reply, style),
        Err(error) => error,
    };
    if let Some(done) = error.done() {
        show(done, style);
    }
    // With standard error closed, only the exit code is left to say it.
    serve::log::say(&if style == Style::Json {
        Shown::json(error.json())
    } else {
        Shown::text(&error.report())
    });
    ExitCode::from(error.exit_code())
}

fn show(reply: &Reply, style: Style) -> ExitCode {
    for note in reply.notes(style) {
        tell(note);
    }
    match Stream::Output.write(&reply.render(style)) {
        Ok(()) => ExitCode::SUCCESS,
        // A reader that has seen enough, such as `head`, is no failure.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            tell(&format!(
                "error: failed to write to standard output: {error}"
            ));
            ExitCode::FAILURE
        }
    }
}
