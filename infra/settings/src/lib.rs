#![doc = include_str!("../README.md")]

mod parse;
mod setting;
pub mod table;

pub use parse::{LogFormat, PublicUrlError};
pub use setting::{
    ChoiceValue, Function, ServeOption, Setting, SettingRefusal, SettingValues, ValueForm,
    Variable, WhenAbsent,
};
