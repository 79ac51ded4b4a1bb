#![doc = include_str!("../README.md")]

mod additions;
mod check;
mod course;
mod draw;
mod endpoint;
mod ends;
mod features;
mod history;
mod idle;
mod insertions;
mod installation;
mod queue;
mod reading;
mod request;
mod run;
mod shrink;
mod trouble;
mod wiring;

pub use check::rules;
pub use course::{
    Action, Behaviour, Consent, Course, Place, Publication, Question, Schema, Setting, Step,
    Subscriber, Wrong,
};
pub use run::{Outcome, run};
pub use shrink::{shrunk, shrunk_by};
