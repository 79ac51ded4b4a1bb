#![doc = include_str!("../README.md")]

pub mod backup;
pub mod cli;
pub mod client;
pub mod commands;
pub mod error;
pub mod listen;
pub mod output;
pub mod receiver;
pub mod signals;
pub mod signature;
pub mod terminal;
pub mod threads;
pub mod yaml;
