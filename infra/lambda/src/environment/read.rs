//! The trait of all environments.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::env;

use super::common::CommonEnvironment;
use super::variables::EnvironmentError;

/// A function's environment.
pub trait Environment: Sized {
    /// Reads the environment through `read`, which returns the value of a variable. Every variable of the
    /// function is read, whatever the others hold.
    fn read(read: &impl Fn(&str) -> Option<String>) -> Result<Self, EnvironmentError>;

    /// The part that every function has.
    fn common(&self) -> &CommonEnvironment;

    /// Reads the environment of this process.
    fn from_env() -> Result<Self, EnvironmentError> {
        // Text that is no UTF-8 is read with replacement characters, so that it is refused by its name and
        // not overlooked.
        Self::read(&|name| env::var_os(name).map(|value| value.to_string_lossy().into_owned()))
    }

    /// Names of all variables of this environment, to compare a template with.
    fn variables() -> BTreeSet<String> {
        let asked = RefCell::new(BTreeSet::new());
        // Only the names that were asked for matter here.
        let _ = Self::read(&|name| {
            asked.borrow_mut().insert(name.to_owned());
            None
        });
        asked.into_inner()
    }
}
