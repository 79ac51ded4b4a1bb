#![doc = include_str!("../README.md")]

pub mod demo;

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use posthaste_cli::cli::{
    AdminKey, CliCommand, CommandLine, GlobalOptions, WRONG_LINE, WrongLine, asks_for_json,
};
use posthaste_cli::commands::{
    AdminSession, apply, attempts, audit, backup as back_up, check, completions, data_dir,
    dead_letters, doctor, events, health, links, man, pressure, publish, replays, restore,
    subscriptions, topics,
};
use posthaste_cli::error::CommandError;
use posthaste_cli::listen;
use posthaste_cli::output::{CommandReply, OutputStyle};
use posthaste_cli::terminal::{StandardStream, TerminalText, print_help, tell_user};
use posthaste_server::log;

/// Runs one command line, the program's name included, and returns the exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<_> = arguments.into_iter().collect();
    let cli = match CommandLine::from_arguments(arguments.iter().cloned()) {
        Ok(cli) => cli,
        Err(error) => {
            if let Some(wrong) = WrongLine::from_clap(&error) {
                log::print_line(&if asks_for_json(&arguments) {
                    TerminalText::from_json(wrong.to_json())
                } else {
                    TerminalText::from_text(&wrong.report())
                });
                return ExitCode::from(WRONG_LINE);
            }
            // Help and version are "errors" of clap as well. It knows their stream and exit code.
            print_help(&error);
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let style = OutputStyle::for_stdout(cli.global.json);
    let code = print_outcome(execute_command(cli), style);
    log::flush();
    code
}

/// Runs a command to its end.
fn execute_command(
    CommandLine { global, command }: CommandLine,
) -> Result<CommandReply, CommandError> {
    match command {
        CliCommand::Serve(arguments) => {
            posthaste_server::run(&global, &arguments).map(|()| CommandReply::without_json())
        }
        CliCommand::Check { data } => check::run(&data.unwrap_or_else(|| data_dir(&global))),
        CliCommand::Backup {
            folder,
            data,
            admin,
        } => match data {
            Some(data) => back_up::of_stopped(&data, &folder),
            None => back_up::of_running(&open_session(&global, &admin)?, &folder),
        },
        CliCommand::Restore { backup, data } => {
            restore::run(&backup, &data.unwrap_or_else(|| data_dir(&global)))
        }
        CliCommand::Demo => demo::run(&global),
        CliCommand::Listen(arguments) => listen::run(&global, &arguments),
        CliCommand::Apply {
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
            let way = apply::ApplyOptions {
                dry_run,
                prune,
                is_confirmed: confirmed.yes,
            };
            apply::run(&open_session(&global, &admin)?, &files, way)
        }
        CliCommand::Publish(arguments) => publish::run(&global, arguments),
        CliCommand::Topics { command, admin } => {
            topics::run(&open_session(&global, &admin)?, command)
        }
        CliCommand::Subscriptions { command, admin } => {
            subscriptions::run(&open_session(&global, &admin)?, &command)
        }
        CliCommand::Events { command, admin } => {
            events::run(&open_session(&global, &admin)?, &command)
        }
        CliCommand::Attempts { command, admin } => {
            attempts::run(&open_session(&global, &admin)?, &command, global.json)
        }
        CliCommand::DeadLetters { command, admin } => {
            dead_letters::run(&open_session(&global, &admin)?, &command)
        }
        CliCommand::Replays { command, admin } => {
            replays::run(&open_session(&global, &admin)?, command)
        }
        CliCommand::Audit { which, admin } => audit::run(&open_session(&global, &admin)?, &which),
        CliCommand::Links(admin) => links::run(&open_session(&global, &admin)?),
        CliCommand::Health => health::run(&global),
        CliCommand::Doctor { endpoints, admin } => doctor::run(&global, &admin, endpoints),
        CliCommand::Pressure(admin) => pressure::run(&open_session(&global, &admin)?),
        CliCommand::Completions { shell } => Ok(completions::run(shell)),
        CliCommand::Man { folder } => man::run(&folder),
    }
}

fn open_session(global: &GlobalOptions, admin: &AdminKey) -> Result<AdminSession, CommandError> {
    AdminSession::open(global, admin.key.as_deref())
}

fn print_outcome(outcome: Result<CommandReply, CommandError>, style: OutputStyle) -> ExitCode {
    let error = match outcome {
        Ok(reply) => return print_reply(&reply, style),
        Err(error) => error,
    };
    if let Some(done) = error.done() {
        print_reply(done, style);
    }
    // With standard error closed, only the exit code is left to say it.
    log::print_line(&if style == OutputStyle::Json {
        TerminalText::from_json(error.to_json())
    } else {
        TerminalText::from_text(&error.report())
    });
    ExitCode::from(error.exit_code())
}

fn print_reply(reply: &CommandReply, style: OutputStyle) -> ExitCode {
    for note in reply.notes(style) {
        tell_user(note);
    }
    match StandardStream::Output.write(&reply.render(style)) {
        Ok(()) => ExitCode::SUCCESS,
        // A reader that has seen enough, such as `head`, is no failure.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            tell_user(&format!(
                "error: failed to write to standard output: {error}"
            ));
            ExitCode::FAILURE
        }
    }
}
