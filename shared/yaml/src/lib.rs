#![doc = include_str!("../README.md")]

#[cfg(test)]
mod documents;
mod locate;
mod mistakes;
mod place;
mod text;
mod text_mistake;
mod write;

pub use crate::mistakes::{
    SettingsCheck, name_mistake, read_checked, read_file, read_part, read_subscription, read_topic,
    read_value, value_mistake,
};
pub use crate::place::TextPlace;
pub use crate::text_mistake::TextMistake;
pub use crate::write::{WriteError, to_text};
