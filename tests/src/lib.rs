#![doc = include_str!("../README.md")]

pub mod api;
pub mod authority;
pub mod binary;
pub mod disk;
pub mod endpoint;
pub mod events;
pub mod home;
pub mod name_server;
pub mod patience;
pub mod seed;
pub mod seen;
pub mod server;
pub mod signature;
