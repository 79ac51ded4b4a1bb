//! A server and the key to manage it.

use std::io;
use std::path::{Path, PathBuf};

use posthaste_core::model::Secret;
use posthaste_core::model::pasted::{PastedError, read_admin_key, read_key};
use serde::de::DeserializeOwned;
use ureq::http::Method;

use crate::cli::{DATA_DIR_DEFAULT, GlobalOptions};
use crate::client::{ApiCall, ClientError, ServerClient};
use crate::error::{CommandError, CommandFailure};

/// The name of the file in the data folder that holds the admin key.
pub const ADMIN_KEY_FILE: &str = "admin.key";

/// Most items of a list that is read whole, into memory. A hundred times the topics that `apply` was
/// measured with.
const LIST_ITEMS_MAX: usize = 1_000_000;

/// The way out where the file holds no key.
const WHOLE_KEY: &str = "write the whole key into the file, or give --key or POSTHASTE_KEY; without the file, \
                         the next start of the server makes a new key";

/// A server and the key to manage it.
#[derive(Debug)]
pub struct AdminSession {
    pub client: ServerClient,
    pub key: Secret,
    /// Whether requests are sent again where the server is busy.
    is_patient: bool,
}

/// Error of a command that needs the admin key and has none.
#[derive(Debug, thiserror::Error)]
pub(super) enum MissingKeyError {
    /// No key was given, and the one of the folder here is not sent to another machine.
    #[error("no key was given, and the one in {} is for a server on this machine", folder.display())]
    OfAnother {
        /// The folder with the key.
        folder: PathBuf,
    },
    /// The text that was given is no key. It is a secret, so the message does not show it.
    #[error("the key that was given, by an option or a variable, is none")]
    Given(#[source] PastedError),
    /// The file holds no key.
    #[error("{} holds no admin key", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: PastedError,
    },
    /// No key was given and none was found.
    #[error("no key was given, and there is none in {}", path.display())]
    None {
        /// The file that was expected.
        path: PathBuf,
        /// The reason why it cannot be read.
        #[source]
        source: io::Error,
    },
}

impl AdminSession {
    /// A session with the key that was given, or else the data folder's. The key of a folder that
    /// no option or variable names goes only to a server on this machine: elsewhere it would be
    /// given away.
    pub fn open(global: &GlobalOptions, key: Option<&str>) -> Result<Self, CommandError> {
        let client = ServerClient::with_authorities(&global.url, global.ca_cert.as_deref())?;
        let key = match given_key(key)? {
            Some(key) => key,
            None if global.data_dir.is_none() && !client.is_on_this_machine() => {
                return Err(MissingKeyError::OfAnother {
                    folder: data_dir(global),
                }
                .into());
            }
            None => read_folder_key(&data_dir(global))?,
        };
        Ok(Self::new(client, key))
    }

    /// A session of this client and key, whose requests are sent again where the server is busy.
    pub fn new(client: ServerClient, key: Secret) -> Self {
        Self {
            client,
            key,
            is_patient: true,
        }
    }

    /// The same session for a command that goes on by itself when a request fails.
    pub fn without_retries(&self) -> Self {
        Self {
            client: self.client.clone(),
            key: self.key.clone(),
            is_patient: false,
        }
    }

    /// A request with the key.
    pub fn call<'a>(&'a self, method: Method, path: &[&'a str]) -> ApiCall<'a> {
        let call = ApiCall::new(method, path).key(&self.key);
        if self.is_patient {
            call.retry_when_busy()
        } else {
            call
        }
    }

    /// Sends a request without a body, and returns the JSON of its success.
    pub fn request_json<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &[&str],
    ) -> Result<T, ClientError> {
        self.client.send_for_json(self.call(method, path))
    }

    /// The items of a list that comes in pages. `open` takes a page apart, into its items and the
    /// cursor of the next page.
    pub(super) fn read_list<P: DeserializeOwned, T>(
        &self,
        path: &[&str],
        open: impl FnMut(P) -> (Vec<T>, Option<String>),
    ) -> Result<Vec<T>, ClientError> {
        self.read_list_with(path, &[], open)
    }

    /// The items of a list with these parameters, as [`AdminSession::read_list`] does.
    pub(super) fn read_list_with<P: DeserializeOwned, T>(
        &self,
        path: &[&str],
        parameters: &[(&str, &str)],
        mut open: impl FnMut(P) -> (Vec<T>, Option<String>),
    ) -> Result<Vec<T>, ClientError> {
        let mut all = Vec::new();
        let mut cursor = None::<String>;
        loop {
            let call = self
                .call(Method::GET, path)
                .query("cursor", cursor.as_ref());
            let call = parameters
                .iter()
                .fold(call, |call, (name, value)| call.query(name, Some(value)));
            let (items, next) = open(self.client.send_for_json(call)?);
            all.extend(items);
            let Some(next) = next else { return Ok(all) };
            // The cursor of the page that was asked for leads to it again, and never to an end.
            if all.len() > LIST_ITEMS_MAX || cursor.as_ref() == Some(&next) {
                return Err(ClientError::Endless {
                    url: self.client.base_url().clone(),
                    items: all.len(),
                });
            }
            cursor = Some(next);
        }
    }
}

impl CommandFailure for MissingKeyError {
    fn exit_code(&self) -> Option<u8> {
        Some(5)
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Given(_) => return Some("copy the whole key again".to_owned()),
            Self::File { .. } => return Some(WHOLE_KEY.to_owned()),
            Self::None { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                return Some(
                    "the same as the user of the server (for the service: `sudo -u posthaste …`), or \
                     give --key or POSTHASTE_KEY"
                        .to_owned(),
                );
            }
            Self::OfAnother { .. } | Self::None { .. } => {}
        }
        let hint = "start `posthaste serve` first, or give --key or POSTHASTE_KEY, or --data-dir with the \
                    server's folder";
        Some(hint.to_owned())
    }
}

/// A key that was given, without what is around it where it was pasted. An empty one counts as not
/// given.
pub(super) fn given_key(text: Option<&str>) -> Result<Option<Secret>, MissingKeyError> {
    let key = text
        .map(read_key)
        .transpose()
        .map_err(MissingKeyError::Given)?;
    Ok(key.filter(|key| !key.is_empty()).map(Secret::new))
}

/// The data folder that is named, or the default.
pub fn data_dir(global: &GlobalOptions) -> PathBuf {
    global
        .data_dir
        .clone()
        .unwrap_or_else(|| PathBuf::from(DATA_DIR_DEFAULT))
}

fn read_folder_key(data_dir: &Path) -> Result<Secret, MissingKeyError> {
    let path = data_dir.join(ADMIN_KEY_FILE);
    match std::fs::read_to_string(&path) {
        Ok(text) => match read_admin_key(&text) {
            Ok(key) => Ok(Secret::new(key)),
            Err(source) => Err(MissingKeyError::File { path, source }),
        },
        Err(source) => Err(MissingKeyError::None { path, source }),
    }
}
