#![doc = include_str!("../README.md")]

mod access;
mod api;
mod asked;
mod assets;
mod chart;
mod cookie;
pub mod history;
mod page;
mod pages;
mod recent;
mod router;
mod session;
mod session_key;
mod shown;
#[cfg(test)]
mod tests;

pub use crate::access::Access;
pub use crate::router::{Console, PATH, router};
