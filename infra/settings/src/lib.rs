#![doc = include_str!("../README.md")]

mod deliver;
mod parse;
mod setting;
pub mod table;
mod values;

pub use deliver::deliver_settings;
pub use parse::{LogFormat, PublicUrlError};
pub use setting::{Choice, Form, Function, Given, Refusal, ServeOption, Setting, Variable};
pub use values::Values;
