//! The rules of posthaste. Everything here is pure: no clock, no chance, no async, no network, no AWS.
//! Handlers load, call one decision from this crate, and apply its answer.

pub mod address;
pub mod api;
pub mod attempt;
pub mod batch;
pub mod dead_letter;
pub mod decide;
pub mod delivery;
pub mod delivery_header;
pub mod endpoint;
pub mod event;
pub mod filter;
pub mod handshake;
pub mod idle;
pub mod json_pointer;
pub mod layout;
pub mod limits;
pub mod mapping;
pub mod name;
pub mod outcome;
pub mod partial;
pub mod pressure;
pub mod problem;
pub mod rate;
pub mod record;
pub mod replay;
pub mod rest;
pub mod retry;
pub mod schema;
pub mod secret;
pub mod settle;
pub mod signature;
pub mod test_event;
pub mod time;
pub mod topic;
pub mod wire;
