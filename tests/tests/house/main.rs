//! The structure of the code: no files of a crate need one another in a circle.

mod circles;
mod modules;
mod workspace;
