//! The functions together in one process, on the embedded queue and store, against a scripted endpoint, on a clock
//! that is moved by hand: a day passes in a moment, and every time is exact.

mod chance;
mod endpoint;
mod waiting;
mod worker;
mod world;

pub use chance::Chance;
pub use endpoint::{Answer, Request, ScriptedEndpoint};
pub use waiting::Letter;
pub use worker::{VISIBILITY, Worker};
pub use world::{Faults, State, World, event, start};
