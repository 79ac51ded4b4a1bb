//! The commands: each loads what it needs, calls the server, and answers what to show.

mod apply;
mod check;
mod dead_letters;
mod error;
mod links;
mod pressure;
mod publish;
mod replays;
mod source;
mod subscriptions;
mod test_event;
mod topics;

use std::path::{Path, PathBuf};

use posthaste_core::model::secret::Secret;

use crate::cli::{Cli, Command, DATA_DIR_DEFAULT, Global};
use crate::client::Client;
use crate::output::Reply;
use crate::{demo, serve};

pub use apply::{Applied, ApplyError, Checked, Place, YamlError, check, check_files, put};
pub(crate) use apply::{At, locate};
pub use error::CommandError;
pub use publish::{Ending, EventsError};
pub(crate) use source::read as read_input;

/// The name of the file in the data folder that holds the admin key.
pub const ADMIN_KEY_FILE: &str = "admin.key";

/// Runs a command to its end.
pub fn run(cli: Cli) -> Result<Reply, CommandError> {
    let Cli { global, command } = cli;
    match command {
        Command::Serve(arguments) => serve::run(&global, &arguments).map(|()| Reply::silent()),
        Command::Check(arguments) => check::run(&arguments.data.unwrap_or_else(|| data_dir(&global))),
        Command::Demo => demo::run(&global),
        Command::Apply(arguments) => {
            let files = check_files(&arguments.files)?;
            apply::run(&Session::open(&global, arguments.admin.key)?, &files)
        }
        Command::Publish(arguments) => publish::run(&global, arguments),
        Command::Topics(arguments) => {
            topics::run(&Session::open(&global, arguments.admin.key)?, arguments.command)
        }
        Command::Subscriptions(arguments) => {
            subscriptions::run(&Session::open(&global, arguments.admin.key)?, &arguments.command)
        }
        Command::DeadLetters(arguments) => {
            dead_letters::run(&Session::open(&global, arguments.admin.key)?, &arguments.command)
        }
        Command::Replays(arguments) => {
            replays::run(&Session::open(&global, arguments.admin.key)?, arguments.command)
        }
        Command::Links(arguments) => links::run(&Session::open(&global, arguments.admin.key)?),
        Command::Pressure(arguments) => pressure::run(&Session::open(&global, arguments.admin.key)?),
    }
}

/// A server and the key to manage it.
#[derive(Debug)]
pub struct Session {
    /// The server.
    pub client: Client,
    /// Its admin key.
    pub key: Secret,
}

impl Session {
    /// A session with the key that was given or, failing that, the data folder's. The key of a folder that nobody named
    /// is shown to a server on this machine alone: elsewhere it would be given away.
    pub fn open(global: &Global, key: Option<String>) -> Result<Self, CommandError> {
        let client = Client::new(&global.url)?;
        let key = match key.filter(|key| !key.is_empty()) {
            Some(key) => Secret::new(key),
            None if global.data_dir.is_none() && !client.is_on_this_machine() => {
                return Err(CommandError::KeyOfAnother { folder: data_dir(global) });
            }
            None => read_admin_key(&data_dir(global))?,
        };
        Ok(Self { client, key })
    }
}

/// The data folder that is meant.
pub fn data_dir(global: &Global) -> PathBuf {
    global.data_dir.clone().unwrap_or_else(|| PathBuf::from(DATA_DIR_DEFAULT))
}

fn read_admin_key(data_dir: &Path) -> Result<Secret, CommandError> {
    let path = data_dir.join(ADMIN_KEY_FILE);
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(Secret::new(text.trim())),
        Err(source) => Err(CommandError::NoKey { path, source }),
    }
}
