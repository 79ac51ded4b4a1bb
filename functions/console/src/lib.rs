#![doc = include_str!("../README.md")]

mod access;
mod address;
mod api;
mod asked;
mod assets;
mod chart;
mod console;
mod cookie;
mod doubt;
mod editing;
mod filters;
pub mod history;
mod json_text;
mod page;
mod pages;
mod parts;
mod recent;
mod router;
mod session;
mod session_key;
mod shown;
mod table;
#[cfg(test)]
mod tests;
mod visit;

pub use crate::access::VisitorAccess;
pub use crate::console::{ConsoleState, PATH};
pub use crate::router::router;
pub use crate::visit::OverTls;
