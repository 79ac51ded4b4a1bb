#![doc = include_str!("../README.md")]

mod locate;
mod mistakes;
mod text;
mod write;

pub use crate::locate::Place;
pub use crate::mistakes::{
    Check, TextMistake, mistake_of, name_mistake, read_file, read_subscription, read_topic,
};
pub use crate::text::{TextError, YamlError, parse, refused};
pub use crate::write::{WriteError, write};
