//! Resolution of names: the system's resolver behind a small trait, and a short cache in front of it.

mod cache;
mod families;
mod lookup;
mod system;

pub(crate) use cache::NameCache;
pub use lookup::{LookupError, NameLookup};
pub use system::SystemNames;
