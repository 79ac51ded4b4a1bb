//! The rules of posthaste. Everything here is pure: no clock, no chance, no async, no network, no AWS.
//! Handlers load, call one decision from this crate, and apply its answer.

pub mod endpoint;
pub mod limits;
pub mod name;
pub mod outcome;
pub mod secret;
pub mod time;
