//! Release of deliveries that wait outside the queue: held ones, and dead letters that are replayed.

pub mod held;
pub mod replay;
