#![doc = include_str!("../README.md")]

mod parse;
mod setting;
pub mod table;
mod values;

pub use parse::{LogFormat, PublicUrlError};
pub use setting::{Choice, Form, Function, Refusal, ServeOption, Setting, Variable, WhenAbsent};
pub use values::Values;
