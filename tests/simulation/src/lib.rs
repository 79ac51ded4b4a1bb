#![doc = include_str!("../README.md")]

mod chance;
mod endpoint;
mod waiting;
mod worker;
mod world;

pub use chance::Chance;
pub use endpoint::{Answer, Request, ScriptedEndpoint};
pub use waiting::Letter;
pub use worker::{VISIBILITY, Worker};
pub use world::{Faults, State, World, event, start};
