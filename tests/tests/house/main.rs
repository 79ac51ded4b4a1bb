//! The structure of the code: no files of a crate need one another in a circle, no room of core
//! names a higher one, and no type has methods in many files.

mod circles;
mod examples;
mod floors;
mod modules;
mod needs;
mod profiles;
mod spread;
mod workspace;
