#![doc = include_str!("../README.md")]

// The product's files say `parking_lot` and `tokio`, which are this crate to them.
extern crate self as parking_lot;
extern crate self as tokio;

mod budget;
pub mod connection;
mod fair;
pub mod inbox;
mod locks;
#[path = "../../../shared/http/src/places.rs"]
mod places;
mod pool;
mod search;
pub mod searches;
pub mod settings;
mod single_flight;
mod subscription;
pub mod sync;

pub use locks::{Condvar, Mutex};
pub use search::Search;
pub use sync::spawn;
