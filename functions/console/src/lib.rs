#![doc = include_str!("../README.md")]

mod access;
mod address;
mod api;
mod asked;
mod assets;
mod chart;
mod cookie;
mod editing;
mod filters;
pub mod history;
mod href;
mod json_text;
mod page;
mod pages;
mod parts;
mod recent;
mod router;
mod session;
mod session_key;
mod shown;
#[cfg(test)]
mod tests;

pub use crate::access::Access;
pub use crate::router::{Console, PATH, router};
