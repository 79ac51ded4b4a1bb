//! Resolution of names: the trait, the system's resolver behind it, and a short cache in front of
//! it.

pub(crate) mod cache;
mod families;
mod hosts;
pub(crate) mod system;
mod system_files;

use std::error::Error;
use std::future::Future;
use std::net::IpAddr;

/// Why a name was not resolved.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    /// An authority said that there is no such name.
    #[error("the name does not exist")]
    DoesNotExist,
    /// The look-up failed: no server was reached, or it gave an error, or the name has no
    /// addresses.
    #[error("no answer from the resolver")]
    NoAnswer(#[source] Box<dyn Error + Send + Sync>),
}

/// Resolves host names. [`SystemNames`](system::SystemNames) is the real one; tests answer from a
/// script.
pub trait NameLookup: Send + Sync + 'static {
    /// All addresses of `host`, v4 and v6, none left out: they are validated together.
    fn lookup(&self, host: &str) -> impl Future<Output = Result<Vec<IpAddr>, LookupError>> + Send;

    /// Forgets what was read or cached, the configuration included.
    fn forget_all(&self);
}
