#![doc = include_str!("../README.md")]

mod access;
mod address;
mod api;
mod assets;
mod chart;
mod console;
mod cookie;
mod display;
mod editing;
mod extract;
mod filters;
pub mod history;
mod json_text;
mod page;
mod pages;
mod parts;
mod recent;
mod router;
mod session;
mod session_book;
mod session_key;
mod table;
#[cfg(test)]
mod tests;
mod uncertain;
mod visit;
mod words;

pub use crate::access::VisitorAccess;
pub use crate::console::{ConsoleState, PATH};
pub use crate::router::router;
pub use crate::visit::OverTls;
