#![doc = include_str!("../README.md")]

mod parse;
mod setting;
pub mod table;

pub use parse::{LogFormat, PublicUrlError};
pub use setting::{
    Choice, Form, Function, Refusal, ServeOption, Setting, Values, Variable, WhenAbsent,
};
