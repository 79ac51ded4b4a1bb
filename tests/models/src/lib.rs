#![doc = include_str!("../README.md")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::unused_self,
    reason = "minutes of constants of the code fit, and steps of a model have one shape"
)]
#![allow(
    clippy::large_enum_variant,
    clippy::needless_pass_by_value,
    clippy::struct_excessive_bools,
    clippy::trivially_copy_pass_by_ref,
    reason = "a state is a value of facts that is copied at each step"
)]

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
