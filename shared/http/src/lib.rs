//! The outbound webhook client: vetted and pinned addresses, one deadline, caps on everything an endpoint sends.
//!
//! It decides nothing about events: which answer is a success, and when to try again, is `posthaste_core`'s. Nor does
//! it bound how many requests run at once, in all or per link: every request in flight has a connection of its own,
//! so the caller's bound on requests is the bound on connections.

mod body;
mod client;
mod connection;
mod dial;
mod failure;
mod names;
mod pool;
mod request;
mod settings;
mod tls;

pub use client::HyperWebhookClient;
pub use names::{LookupError, NameLookup, SystemNames};
pub use settings::{
    ClientSettings, DnsServerError, IDLE_KEPT_DEFAULT, IDLE_MAX_DEFAULT, IDLE_PER_LINK_MAX_DEFAULT,
    NAMES_KEPT_DEFAULT, RESPONSE_HEAD_BYTES_MAX, RESPONSE_HEADERS_MAX, parse_dns_server,
};
pub use tls::TlsSetupError;
