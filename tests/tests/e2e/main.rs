//! The main job through the real program: a `posthaste serve` process, real HTTP on both sides.

mod answers;
mod bad_input;
mod batching;
mod created_again;
mod crowds;
mod dead_letters;
mod delivery_log;
mod displaced;
mod expiry;
mod fan_out;
mod flood;
mod handshakes;
mod hostile;
mod lifecycle;
mod links;
mod log_reader;
mod loops;
mod names;
mod plain_clients;
mod publish_forms;
mod publish_rate;
mod real_disk;
mod replay;
mod retries;
mod signing;
mod wrong_keys;
