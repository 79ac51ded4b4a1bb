#![doc = include_str!("../README.md")]

mod locate;
mod mistakes;
mod place;
mod text;
mod write;

pub use crate::mistakes::{
    Check, TextMistake, mistake_of, name_mistake, read_file, read_subscription, read_topic, refused,
};
pub use crate::place::Place;
pub use crate::text::{TextError, YamlError, parse};
pub use crate::write::{WriteError, write};
