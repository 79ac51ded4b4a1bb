//! The rules of posthaste. Everything here is pure: no clock, no chance, no async, no network, no AWS.
//! Handlers load, call one decision from this crate, and apply its answer.

#![warn(missing_docs)]

pub mod api;
pub mod attempt;
pub mod circuit;
pub mod events;
pub mod filter;
pub mod model;
pub mod pressure;
pub mod release;
pub mod stored;
