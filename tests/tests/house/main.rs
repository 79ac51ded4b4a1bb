//! The structure of the code: no files of a crate need one another in a circle, and no line is too
//! wide.

mod circles;
mod modules;
mod workspace;
