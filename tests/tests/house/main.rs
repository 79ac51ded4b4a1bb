//! The structure of the code: no files of a crate need one another in a circle.

mod circles;
mod examples;
mod modules;
mod needs;
mod profiles;
mod workspace;
