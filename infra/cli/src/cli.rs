//! The command line and its documentation. No command is run here.

mod audit;
mod dead_letters;
mod events;
mod examples;
mod global;
mod listen;
mod publish;
mod serve;
mod topics;
mod wrong_line;

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::Resettable;
use clap::{Arg, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;

pub use audit::AuditArgs;
pub use dead_letters::{
    DeadLetterFilterArgs, DeadLetterSelectionArgs, DeadLettersCommand, DeadLettersDeleteArgs,
    DeadLettersExportArgs, DeadLettersImportArgs, DeadLettersListArgs, DeadLettersReplayArgs,
    LetterWorkCommand, ReplayRunArgs, ReplaysCommand, SubscriptionDeadLettersArgs,
};
pub use events::{
    AttemptsCommand, AttemptsListArgs, EventsCancelArgs, EventsCommand, EventsListArgs,
    EventsReplayArgs, EventsResendArgs, EventsShowArgs, RecordFilterArgs,
};
pub use global::{AdminKey, DATA_DIR_DEFAULT, GlobalOptions};
pub use listen::ListenArgs;
pub use publish::{DeclaredTier, LaterTime, PaceArgs, PublishArgs, PublishRate};
pub use serve::ServeArgs;
pub use topics::{ConfirmedArg, SubscriptionArgs, SubscriptionsCommand, TopicArg, TopicsCommand};
pub use wrong_line::{WRONG_LINE, WrongLine, asks_for_json};

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
  130, 143  ended by Ctrl-C (SIGINT) or SIGTERM; publish --rate says where to go on
  129  publish --rate ended by SIGHUP: the terminal is gone
  serve ends with 0 after each of these signals";

/// Columns of help at most, also in a wider terminal.
const HELP_COLUMNS_MAX: usize = 100;

/// Webhook delivery: every subscriber gets each event, or you find it in the dead letters.
#[derive(Debug, Parser)]
#[command(name = "posthaste", version, propagate_version = true, max_term_width = HELP_COLUMNS_MAX)]
#[command(after_help = format!("{}\n\n{EXIT_CODES}", examples::FIRST_STEPS))]
pub struct CommandLine {
    /// The options of every command.
    #[command(flatten)]
    pub global: GlobalOptions,
    /// The command.
    #[command(subcommand)]
    pub command: CliCommand,
}

impl CommandLine {
    /// Reads a command line, the program's name included. An empty variable of the environment
    /// counts as not set: compose files and service units leave such variables behind.
    pub fn from_arguments(
        arguments: impl IntoIterator<Item = OsString>,
    ) -> Result<Self, clap::Error> {
        let arguments: Vec<_> = arguments.into_iter().collect();
        let command = without_empty_variables(Self::command());
        let parsed = command
            .clone()
            .try_get_matches_from(&arguments)
            .and_then(|matches| Ok((Self::from_arg_matches(&matches)?, matches)));
        let (mut cli, matches) =
            parsed.map_err(|error| wrong_line::with_usage(error, command, &arguments))?;
        if let (CliCommand::Publish(publish), Some((_, given))) =
            (&mut cli.command, matches.subcommand())
        {
            publish.forget_ambient_admin_key(given);
        }
        Ok(cli)
    }
}

fn without_empty_variables(command: clap::Command) -> clap::Command {
    command
        .mut_args(|arg| {
            if has_empty_variable(&arg) {
                arg.env(Resettable::Reset)
            } else {
                arg
            }
        })
        .mut_subcommands(without_empty_variables)
}

fn has_empty_variable(arg: &Arg) -> bool {
    arg.get_env()
        .and_then(env::var_os)
        .is_some_and(|value| value.is_empty())
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum CliCommand {
    /// Run the server: accept events, deliver them, keep dead letters, and serve the management
    /// API.
    #[command(after_help = examples::SERVE)]
    Serve(Box<ServeArgs>),
    /// Read everything in a data folder and name what is damaged. No server may run on it; nothing
    /// changes.
    #[command(after_help = examples::CHECK)]
    Check {
        /// The data folder [default: that of --data-dir].
        #[arg(value_name = "DATA")]
        data: Option<PathBuf>,
    },
    /// Copy all that a server keeps into a folder, while it goes on: queues, topics, keys, dead
    /// letters and the delivery log, of one moment.
    #[command(after_help = examples::BACKUP)]
    Backup {
        /// The folder for the backup. It must be empty or not there.
        #[arg(value_name = "BACKUP")]
        folder: PathBuf,
        /// Copy this data folder, which no server uses, instead of asking the one at --url.
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
        #[command(flatten)]
        admin: AdminKey,
    },
    /// Make a data folder of a backup. Every file is compared with what was backed up.
    #[command(after_help = examples::RESTORE)]
    Restore {
        /// The folder of the backup.
        #[arg(value_name = "BACKUP")]
        backup: PathBuf,
        /// The data folder to make, empty or not there [default: that of --data-dir].
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
    },
    /// See it work in a few seconds: a server, subscribers and events of its own, on this machine.
    Demo,
    /// Receive webhooks on this machine: verify their signatures, print them, and answer.
    #[command(after_help = examples::LISTEN)]
    Listen(ListenArgs),
    /// Create or replace the topics and subscriptions that a YAML file declares. Others stay as
    /// they are, unless --prune is given.
    #[command(after_help = examples::APPLY)]
    Apply {
        /// The YAML file, or - for standard input. May be given more than once; all files are
        /// checked before anything is sent.
        #[arg(short, long = "file", required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Only say what would change, member by member. The exit code is 0 then too.
        #[arg(long)]
        dry_run: bool,
        /// Delete the topics that no file declares, and subscriptions of declared topics that no
        /// file declares. It says what that gives up, and asks first.
        #[arg(long)]
        prune: bool,
        /// Keep the value of every member that the files do not name, as JSON merge patch does:
        /// null takes a value away. Without it, a member that is left out gets its default.
        #[arg(long, conflicts_with = "prune")]
        keep: bool,
        #[command(flatten)]
        confirmed: ConfirmedArg,
        #[command(flatten)]
        admin: AdminKey,
    },
    /// Publish the events of a file to a topic: in one request, or with --rate as fast as the
    /// server allows.
    #[command(after_help = examples::PUBLISH)]
    Publish(PublishArgs),
    /// List topics, show or delete one, and handle its publish keys.
    Topics {
        // `list` when left out.
        #[command(subcommand)]
        command: Option<TopicsCommand>,
        #[command(flatten)]
        admin: AdminKey,
    },
    /// List a topic's subscriptions, show one, or act on it: test, pause, resume, rotate its secret
    /// and more.
    Subscriptions {
        #[command(subcommand)]
        command: SubscriptionsCommand,
        #[command(flatten)]
        admin: AdminKey,
    },
    /// Find out what became of events, and deliver one again.
    Events {
        #[command(subcommand)]
        command: EventsCommand,
        #[command(flatten)]
        admin: AdminKey,
    },
    /// List the attempts of a subscription, or watch them.
    Attempts {
        #[command(subcommand)]
        command: AttemptsCommand,
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
    /// List who changed what, the newest change first: by which key, from where, and what differs
    /// since.
    #[command(after_help = examples::AUDIT)]
    Audit {
        #[command(flatten)]
        which: AuditArgs,
        #[command(flatten)]
        admin: AdminKey,
    },
    /// Show the links and subscriptions that fail, and those whose events are held.
    Links(AdminKey),
    /// Ask whether the server takes requests. Needs no key. The exit code is 0 if it does, and 7 if
    /// it does not yet, or not any more.
    Health,
    /// Check an installation from outside and inside: reachability, certificates, clocks, disk,
    /// open files, pressure, versions. The exit code is 1 if a check fails.
    #[command(after_help = examples::DOCTOR)]
    Doctor {
        /// Let the server connect to the endpoint of every subscription too, without a request:
        /// names, addresses, TLS.
        #[arg(long)]
        endpoints: bool,
        #[command(flatten)]
        admin: AdminKey,
    },
    /// Show how busy the server is, and whether producers have to wait or are refused.
    Pressure(AdminKey),
    /// Print the script by which a shell completes commands and options.
    #[command(after_help = examples::COMPLETIONS)]
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Write manual pages, one for each command.
    #[command(after_help = examples::MAN)]
    Man {
        /// The folder to write them to. It is made if it is not there.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_may_begin_with_a_hyphen() {
        let read =
            |line: &str| CommandLine::from_arguments(line.split(' ').map(OsString::from)).is_ok();
        assert!(read("posthaste topics --key -k"));
        assert!(read(
            "posthaste publish orders --file - --key -k --admin-key --k"
        ));
    }

    #[test]
    fn the_definitions_agree_with_each_other() {
        CommandLine::command().debug_assert();
    }
}
