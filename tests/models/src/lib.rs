#![doc = include_str!("../README.md")]

pub mod check;
pub mod idempotency;
pub mod lanes;
pub mod letters;
pub mod marks;
pub mod replay;
pub mod slots;
pub mod stack_claim;
pub mod step;
pub mod stored;
pub mod trace;
pub mod wake_lease;
pub mod wake_rest;
