#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

pub mod api;
pub mod attempt;
pub mod circuit;
pub mod delivery_log;
pub mod events;
pub mod filter;
pub mod health;
pub mod lane;
pub mod model;
pub mod pressure;
pub mod release;
pub mod stored;
pub mod trace;
