#![doc = include_str!("../README.md")]

mod parameter;
pub mod parameters;
mod parse;
pub mod profiles;
mod setting;
pub mod table;

pub use parameter::{Parameter, ParameterGroup, ParameterValue, TextPattern};
pub use parse::{LogFormat, PublicUrlError};
pub use setting::{
    ChoiceValue, Function, ServeOption, Setting, SettingRefusal, SettingValues, ValueForm,
    Variable, WhenAbsent,
};
