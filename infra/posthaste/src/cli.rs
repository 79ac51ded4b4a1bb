//! The command line and its documentation. No command is run here.

mod dead_letters;
mod global;
mod listen;
mod publish;
mod serve;
mod topics;

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::Resettable;
use clap::{Arg, CommandFactory, FromArgMatches, Parser, Subcommand};

pub use dead_letters::{DeadLettersCommand, DeadLettersListArgs, ReplayArgs, ReplaysCommand};
pub use global::{AdminKey, DATA_DIR_DEFAULT, Global};
pub use listen::ListenArgs;
pub use publish::{PaceArgs, PublishArgs, Rate, Tier};
pub use serve::ServeArgs;
pub use topics::{SubscriptionArgs, SubscriptionsCommand, TopicArg, TopicsCommand};

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  failed
  2  the command line is wrong
  3  the input was refused, by a check on this side or by the server (4xx)
  4  there is no such thing
  5  the key was not accepted
  6  refused by back pressure: try again after the time the message names
  7  the server is not there, or not able to answer now
  130, 143  ended by SIGINT (Ctrl-C) or SIGTERM: publish --rate says where to go on; serve ends with 0
  129  publish --rate ended by SIGHUP: the terminal is gone";

/// Webhook delivery: publish events, and every subscriber gets them, or you find them in the dead letters.
#[derive(Debug, Parser)]
#[command(name = "posthaste", version, after_help = EXIT_CODES, propagate_version = true)]
pub struct Cli {
    /// The options of every command.
    #[command(flatten)]
    pub global: Global,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// Reads a command line, the program's name included. An empty variable of the environment counts as not
    /// set: compose files and service units leave such variables behind.
    pub fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let matches = without_empty_variables(Self::command()).try_get_matches_from(arguments)?;
        let mut cli = Self::from_arg_matches(&matches)?;
        if let (Command::Publish(publish), Some((_, given))) = (&mut cli.command, matches.subcommand()) {
            publish.forget_ambient_admin_key(given);
        }
        Ok(cli)
    }
}

fn without_empty_variables(command: clap::Command) -> clap::Command {
    let is_empty = |arg: &Arg| arg.get_env().and_then(env::var_os).is_some_and(|value| value.is_empty());
    command
        .mut_args(|arg| if is_empty(&arg) { arg.env(Resettable::Reset) } else { arg })
        .mut_subcommands(without_empty_variables)
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the server: publish, deliver, dead-letter and manage in one process, on one data folder.
    Serve(Box<ServeArgs>),
    /// Read all that a data folder holds, while no server runs on it, and say what is damaged. Nothing is
    /// changed.
    Check {
        /// The data folder [default: that of --data-dir].
        #[arg(value_name = "DATA")]
        data: Option<PathBuf>,
    },
    /// See it work: a server, subscribers and events of its own, on this machine, in a few seconds.
    Demo,
    /// Receive webhooks on this machine: verify their signatures, print them, and answer.
    Listen(ListenArgs),
    /// Create or replace the topics and subscriptions that a YAML file declares. Others stay as they are.
    Apply {
        /// The YAML file, or - for standard input. May be given more than once; all files are checked before
        /// anything is sent.
        #[arg(short, long = "file", required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        #[command(flatten)]
        admin: AdminKey,
    },
    /// Publish the events of a file to a topic: as one request, or with --rate at a pace that obeys back
    /// pressure.
    Publish(PublishArgs),
    /// List topics, or show or delete one.
    Topics {
        // `list` when left out.
        #[command(subcommand)]
        command: Option<TopicsCommand>,
        #[command(flatten)]
        admin: AdminKey,
    },
    /// List a topic's subscriptions, show one, or act on it: pause, resume, force, rotate its secret, delete
    /// it and the like.
    Subscriptions {
        #[command(subcommand)]
        command: SubscriptionsCommand,
        #[command(flatten)]
        admin: AdminKey,
    },
    /// List dead letters, show one, or deliver them again.
    DeadLetters {
        #[command(subcommand)]
        command: DeadLettersCommand,
        #[command(flatten)]
        admin: AdminKey,
    },
    /// List replays of dead letters, show one, or cancel it.
    Replays {
        // `list` when left out.
        #[command(subcommand)]
        command: Option<ReplaysCommand>,
        #[command(flatten)]
        admin: AdminKey,
    },
    /// Show the links and subscriptions that are not well, and those whose events are held.
    Links(AdminKey),
    /// Show what the monitor measures and whether producers are held or refused.
    Pressure(AdminKey),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_may_begin_with_a_hyphen() {
        let read = |line: &str| Cli::read(line.split(' ').map(OsString::from)).is_ok();
        assert!(read("posthaste topics --key -k"));
        assert!(read("posthaste publish orders --file - --key -k --admin-key --k"));
    }

    #[test]
    fn the_definitions_agree_with_each_other() {
        Cli::command().debug_assert();
    }
}
