//! The program from outside. One test program for all: each further one would be linked and stored
//! too.

#![allow(
    clippy::unwrap_used,
    reason = "the settings of clippy.toml for tests do not reach their helpers"
)]

mod apply;
mod backup;
mod busy;
mod cli;
mod common;
mod damage;
mod demo;
mod doctor;
mod follow;
mod help;
mod listen;
mod moved;
mod named;
mod outage;
mod output;
mod private;
mod publish_rate;
mod scheme;
mod serve;
mod start;
mod terminal;
mod tls;
mod two_servers;
