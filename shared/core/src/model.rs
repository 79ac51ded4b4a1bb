//! Values that everything else is about: names, times, secrets, endpoints, topics, deliveries, and the
//! limits.

pub mod address;
pub mod delivery;
pub mod endpoint;
pub mod hops;
pub mod identity;
pub mod idle;
pub mod json_pointer;
pub mod limits;
pub mod mapping;
pub mod name;
pub mod origin;
pub mod payload;
pub mod publish_url;
pub mod sas_token;
pub mod schema;
pub mod secret;
pub mod time;
pub mod topic;
