//! The command line: what may be written, and its documentation. Nothing is done here.

mod publish;
mod replay;
mod serve;

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, Resettable};
use clap::{Arg, Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use posthaste_core::api::KeyName;

pub use publish::{PaceArgs, PublishArgs, Rate, Tier};
pub use replay::{ReplayArgs, ReplaysArgs, ReplaysCommand};
pub use serve::{LogFormat, PressureProfile, ServeArgs};

/// The folder that is used where none is named.
pub const DATA_DIR_DEFAULT: &str = "./posthaste-data";

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
  130, 143  ended by SIGINT (Ctrl-C) or SIGTERM: publish --rate says where to go on, serve goes in order
  129  publish --rate ended by SIGHUP: the terminal is gone";

/// Webhook delivery: publish events, and every subscriber gets them, or you find them in the dead letters.
#[derive(Debug, Parser)]
#[command(name = "posthaste", version, after_help = EXIT_CODES, propagate_version = true)]
pub struct Cli {
    /// What every command understands.
    #[command(flatten)]
    pub global: Global,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// Reads a command line, the program's name included. A variable of the environment that is set to nothing counts
    /// as not set: compose files and service units leave such behind.
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

/// The names of a topic's publish keys.
fn key_names() -> PossibleValuesParser {
    KeyName::ALL.map(KeyName::as_str).into()
}

/// What every command understands.
#[derive(Debug, Clone, Args)]
pub struct Global {
    /// Where the server is.
    #[arg(long, global = true, env = "POSTHASTE_URL", default_value = "http://127.0.0.1:8080")]
    pub url: String,
    /// The server's data folder on this machine [default: ./posthaste-data, for demo ./posthaste-data/demo]. The
    /// admin key is read from it where no key is given.
    #[arg(long, global = true, env = "POSTHASTE_DATA_DIR", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Answer in JSON.
    #[arg(long, global = true)]
    pub json: bool,
}

/// The admin key, for commands that manage.
#[derive(Debug, Clone, Args)]
pub struct AdminKey {
    /// The admin key [default: what <data-dir>/admin.key holds].
    // A key may begin with a hyphen.
    #[arg(long, global = true, env = "POSTHASTE_KEY", hide_env_values = true, allow_hyphen_values = true)]
    pub key: Option<String>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the server: publish, deliver, dead-letter and manage in one process, on one data folder.
    Serve(Box<ServeArgs>),
    /// Read all that a data folder holds, while no server runs on it, and say what is damaged. Nothing is changed.
    Check(CheckArgs),
    /// See it work: a server, subscribers and events of its own, on this machine, in a few seconds.
    Demo,
    /// Create or replace the topics and subscriptions that a YAML file declares. Others stay as they are.
    Apply(ApplyArgs),
    /// Publish the events of a file to a topic: as one request, or with --rate at a pace that obeys back pressure.
    Publish(PublishArgs),
    /// List topics, or show or delete one.
    Topics(TopicsArgs),
    /// List a topic's subscriptions, show one, or act on it: pause, resume, force, rotate its secret, delete it and the like.
    Subscriptions(SubscriptionsArgs),
    /// List dead letters, show one, or deliver them again.
    DeadLetters(DeadLettersArgs),
    /// List replays of dead letters, show one, or cancel it.
    Replays(ReplaysArgs),
    /// Show the links and subscriptions that are not well, and those whose events are held.
    Links(LinksArgs),
    /// Show what the monitor measures and whether producers are held or refused.
    Pressure(PressureArgs),
}

/// `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The data folder [default: that of --data-dir].
    #[arg(value_name = "DATA")]
    pub data: Option<PathBuf>,
}

/// `apply`.
#[derive(Debug, Args)]
pub struct ApplyArgs {
    /// The YAML file, or - for standard input. May be given more than once; all files are checked before anything
    /// is sent.
    #[arg(short, long = "file", required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// The admin key.
    #[command(flatten)]
    pub admin: AdminKey,
}

/// `topics`.
#[derive(Debug, Args)]
pub struct TopicsArgs {
    /// What to do; `list` when left out.
    #[command(subcommand)]
    pub command: Option<TopicsCommand>,
    /// The admin key.
    #[command(flatten)]
    pub admin: AdminKey,
}

/// What can be done with topics.
#[derive(Debug, Subcommand)]
pub enum TopicsCommand {
    /// List all topics.
    List,
    /// Show a topic and its subscriptions.
    Show {
        /// The topic.
        topic: String,
    },
    /// Delete a topic and its subscriptions. Events that still wait are dead-lettered.
    Delete {
        /// The topic.
        topic: String,
    },
    /// Show a topic's publish keys: key1 and key2, and those of other tiers that were made.
    Keys {
        /// The topic.
        topic: String,
    },
    /// Make a publish key of a topic, or make it anew; the others stay valid. Producers with an internal key may publish
    /// where back pressure refuses others, those with a bulk key are refused first.
    RegenerateKey {
        /// The topic.
        topic: String,
        /// The key.
        // Not `key`: an argument is known by its field's name, and that one is the admin key's.
        #[arg(value_name = "KEY", value_parser = key_names())]
        name: String,
    },
    /// Take a publish key of another tier away from a topic.
    DeleteKey {
        /// The topic.
        topic: String,
        /// The key. There is no topic without key1 and key2.
        // Not `key`: an argument is known by its field's name, and that one is the admin key's.
        #[arg(value_name = "KEY", value_parser = key_names())]
        name: String,
    },
}

/// `subscriptions`.
#[derive(Debug, Args)]
pub struct SubscriptionsArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: SubscriptionsCommand,
    /// The admin key.
    #[command(flatten)]
    pub admin: AdminKey,
}

/// A subscription on the command line.
#[derive(Debug, Args)]
pub struct SubscriptionArgs {
    /// The topic.
    pub topic: String,
    /// The subscription.
    pub name: String,
}

/// What can be done with subscriptions.
#[derive(Debug, Subcommand)]
pub enum SubscriptionsCommand {
    /// List a topic's subscriptions.
    List {
        /// The topic.
        topic: String,
    },
    /// Show a subscription, its secrets masked.
    Show {
        /// The topic.
        topic: String,
        /// The subscription.
        name: String,
    },
    /// Send one event to the endpoint at once, and show the request and its answer. Nothing is tried again.
    Test {
        /// The topic.
        topic: String,
        /// The subscription.
        name: String,
        /// A file with an event in the schema that the subscription receives, or - for standard input [default: a sample].
        #[arg(short, long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Make a new signing secret and print it, this once. The old ones go on signing for the overlap.
    RotateSecret {
        /// The topic.
        topic: String,
        /// The subscription.
        name: String,
        /// How long the old secrets of the same kind go on signing, such as PT12H; PT0S ends them at once [default:
        /// P1D, at most P7D].
        #[arg(long, value_name = "DURATION")]
        overlap: Option<String>,
        /// The kind of secret to make: v1 (HMAC) or v1a (ed25519) [default: that of the first present one].
        #[arg(long, value_parser = ["v1", "v1a"])]
        kind: Option<String>,
    },
    /// Delete a subscription. Events that still wait for it are dead-lettered.
    Delete {
        /// The topic.
        topic: String,
        /// The subscription.
        name: String,
    },
    /// Ask a subscription's endpoint again whether it wants events, and print what came of it.
    Validate(SubscriptionArgs),
    /// Let the events of an active subscription wait. They expire as others do.
    Pause(SubscriptionArgs),
    /// Deliver the events of a paused subscription again.
    Resume(SubscriptionArgs),
    /// Deliver the events of a disabled or failed subscription again; its endpoint is asked, where that is set.
    Enable(SubscriptionArgs),
    /// Let new events pass by a subscription. Events that still wait for it are dead-lettered.
    Disable(SubscriptionArgs),
    /// Deliver the events of an active subscription now: end the hold of a failing endpoint, and release what waits.
    Force(SubscriptionArgs),
}

/// `dead-letters`.
#[derive(Debug, Args)]
pub struct DeadLettersArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: DeadLettersCommand,
    /// The admin key.
    #[command(flatten)]
    pub admin: AdminKey,
}

/// What can be done with dead letters.
#[derive(Debug, Subcommand)]
pub enum DeadLettersCommand {
    /// List a subscription's dead letters.
    List(DeadLettersListArgs),
    /// Deliver a subscription's dead letters again, to it alone. It begins within a minute.
    Replay(ReplayArgs),
    /// Print a dead-letter object as it is stored.
    Show {
        /// The key of the object, as `list` shows it.
        object: String,
    },
}

/// `dead-letters list`.
#[derive(Debug, Args)]
pub struct DeadLettersListArgs {
    /// The topic.
    pub topic: String,
    /// The subscription.
    pub subscription: String,
    /// Only those written at or after this time, such as 2026-11-21T10:00:00Z.
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    /// Only those written before this time.
    #[arg(long, value_name = "TIME")]
    pub to: Option<String>,
    /// Only those with this reason, such as `MaxDeliveryAttemptsExceeded`.
    #[arg(long)]
    pub reason: Option<String>,
    /// At most so many.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub limit: u32,
}

/// `links`.
#[derive(Debug, Args)]
pub struct LinksArgs {
    /// The admin key.
    #[command(flatten)]
    pub admin: AdminKey,
}

/// `pressure`.
#[derive(Debug, Args)]
pub struct PressureArgs {
    /// The admin key.
    #[command(flatten)]
    pub admin: AdminKey,
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
