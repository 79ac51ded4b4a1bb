#![doc = include_str!("../README.md")]

mod body;
mod client;
mod coding;
mod connection;
mod dial;
mod failure;
mod framing;
mod heads;
mod look;
mod names;
mod odd_response;
mod places;
mod pool;
mod request;
mod settings;
mod tls;
mod wire;

pub use client::HyperWebhookClient;
pub use names::system::SystemNames;
pub use names::{LookupError, NameLookup};
pub use settings::{
    ANSWER_REST_WAIT, ANSWER_WIRE_BYTES_MAX, ClientSettings, DnsServerError, IDLE_KEPT_DEFAULT,
    IDLE_MAX_DEFAULT, IDLE_PER_LINK_MAX_DEFAULT, INTERIM_ANSWERS_MAX, INTERIM_BYTES_MAX,
    NAMES_KEPT_DEFAULT, RESPONSE_HEAD_BYTES_MAX, RESPONSE_HEADERS_MAX, parse_dns_server,
};
pub use tls::{RootFileError, RootFileFault, TlsSetupError, certificate_times, read_root_file};
