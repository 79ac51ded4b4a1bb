#![doc = include_str!("../README.md")]

pub mod double;
pub mod emulator;
pub mod lingering;
