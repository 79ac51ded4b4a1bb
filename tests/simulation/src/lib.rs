#![doc = include_str!("../README.md")]

mod api;
mod bad_keys;
mod chance;
mod endpoint;
mod folder;
mod link_path;
mod names;
mod ports;
mod waiting;
mod wiring;
mod worker;
mod world;

pub use api::Api;
pub use bad_keys::{finds_no_object_under_a_long_name, refuses_bad_keys};
pub use chance::Chance;
pub use endpoint::{Answer, Request, ScriptedEndpoint};
pub use folder::data_folder;
pub use link_path::LinkPath;
pub use names::{event, start};
pub use ports::{Faults, State};
pub use waiting::Letter;
pub use wiring::MISSED_BYTES_MAX;
pub use worker::{VISIBILITY, Worker};
pub use world::{Start, World};
