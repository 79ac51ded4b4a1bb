#![doc = include_str!("../README.md")]

mod draw;
mod growth;
mod hold;
mod mutate;
mod run;
mod target;
mod targets;

pub use draw::Draw;
pub use growth::{Shape, takes};
pub use run::{Failure, Run};
pub use target::Target;
pub use targets::{ROOMS, targets};
