//! A server and the key to manage it.

use std::io;
use std::path::{Path, PathBuf};

use posthaste_core::model::Secret;

use crate::cli::{DATA_DIR_DEFAULT, Global};
use crate::client::Client;
use crate::error::{CommandError, Failure};

/// The name of the file in the data folder that holds the admin key.
pub const ADMIN_KEY_FILE: &str = "admin.key";

/// A server and the key to manage it.
#[derive(Debug)]
pub struct Session {
    pub client: Client,
    pub key: Secret,
}

/// Error of a command that needs the admin key and has none.
#[derive(Debug, thiserror::Error)]
pub(super) enum KeyError {
    /// No key was given, and the one of the folder here is not sent to another machine.
    #[error("no key was given, and the one in {} is for a server on this machine", folder.display())]
    OfAnother {
        /// The folder whose key it is.
        folder: PathBuf,
    },
    /// No key was given and none was found.
    #[error("no key was given, and there is none in {}", path.display())]
    None {
        /// The file that was looked for.
        path: PathBuf,
        /// Why it could not be read.
        #[source]
        source: io::Error,
    },
}

impl Session {
    /// A session with the key that was given or, failing that, the data folder's. The key of a folder that no
    /// option or variable names goes only to a server on this machine: elsewhere it would be given away.
    pub fn open(global: &Global, key: Option<String>) -> Result<Self, CommandError> {
        let client = Client::new(&global.url)?;
        let key = match key.filter(|key| !key.is_empty()) {
            Some(key) => Secret::new(key),
            None if global.data_dir.is_none() && !client.is_on_this_machine() => {
                return Err(KeyError::OfAnother { folder: data_dir(global) }.into());
            }
            None => read_admin_key(&data_dir(global))?,
        };
        Ok(Self { client, key })
    }
}

impl Failure for KeyError {
    fn exit_code(&self) -> u8 {
        5
    }

    fn hint(&self) -> Option<String> {
        Some("--key or POSTHASTE_KEY, or --data-dir with the folder that the server uses".to_owned())
    }
}

/// The data folder that is meant.
pub fn data_dir(global: &Global) -> PathBuf {
    global.data_dir.clone().unwrap_or_else(|| PathBuf::from(DATA_DIR_DEFAULT))
}

fn read_admin_key(data_dir: &Path) -> Result<Secret, KeyError> {
    let path = data_dir.join(ADMIN_KEY_FILE);
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(Secret::new(text.trim())),
        Err(source) => Err(KeyError::None { path, source }),
    }
}
