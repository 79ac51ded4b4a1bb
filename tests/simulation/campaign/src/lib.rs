#![doc = include_str!("../README.md")]

mod check;
mod course;
mod draw;
mod history;
mod installation;
mod run;
mod shrink;

pub use course::{Action, Behaviour, Course, Publication, Step, Subscriber};
pub use run::{Outcome, run};
pub use shrink::shrunk;
