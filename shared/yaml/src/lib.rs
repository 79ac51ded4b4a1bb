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
    Check, mistake_of, name_mistake, read, read_file, read_part, read_subscription, read_topic,
    read_value,
};
pub use crate::place::Place;
pub use crate::text_mistake::TextMistake;
pub use crate::write::{WriteError, write};
