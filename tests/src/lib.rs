//! The harness of the end to end tests: the real `posthaste` program as a process, a client of its HTTP API, and
//! endpoints that answer as a script says. Blocking, and without any of the program's own code, so that a fault in
//! that cannot hide itself.

pub mod api;
pub mod binary;
pub mod disk;
pub mod endpoint;
pub mod events;
pub mod home;
pub mod name_server;
pub mod patience;
pub mod seen;
pub mod server;
pub mod signature;
