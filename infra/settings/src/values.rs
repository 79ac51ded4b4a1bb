//! The values that were given, on a command line or in an environment.

use crate::setting::Setting;

/// Source of values.
pub trait Values {
    /// The value of a setting, or its default in this place; `None` where it has none, or where it is not
    /// offered here. A value that is not taken is noted, and is an error of its own.
    fn get<T: Clone + Send + Sync + 'static>(&mut self, setting: &'static Setting<T>) -> Option<T>;
}
