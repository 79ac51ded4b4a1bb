//! From a command to its code.

use crate::cli::{Cli, Command};
use crate::commands::{
    Session, apply, check, data_dir, dead_letters, links, pressure, publish, replays, subscriptions, topics,
};
use crate::error::CommandError;
use crate::output::Reply;
use crate::{demo, serve};

/// Runs a command to its end.
pub(crate) fn run(cli: Cli) -> Result<Reply, CommandError> {
    let Cli { global, command } = cli;
    let open = |key| Session::open(&global, key);
    match command {
        Command::Serve(arguments) => serve::run(&global, &arguments).map(|()| Reply::silent()),
        Command::Check(arguments) => check::run(&arguments.data.unwrap_or_else(|| data_dir(&global))),
        Command::Demo => demo::run(&global),
        Command::Apply(arguments) => {
            let files = apply::check_files(&arguments.files)?;
            apply::run(&open(arguments.admin.key)?, &files)
        }
        Command::Publish(arguments) => publish::run(&global, arguments),
        Command::Topics(arguments) => topics::run(&open(arguments.admin.key)?, arguments.command),
        Command::Subscriptions(arguments) => {
            subscriptions::run(&open(arguments.admin.key)?, &arguments.command)
        }
        Command::DeadLetters(arguments) => dead_letters::run(&open(arguments.admin.key)?, &arguments.command),
        Command::Replays(arguments) => replays::run(&open(arguments.admin.key)?, arguments.command),
        Command::Links(arguments) => links::run(&open(arguments.admin.key)?),
        Command::Pressure(arguments) => pressure::run(&open(arguments.admin.key)?),
    }
}
