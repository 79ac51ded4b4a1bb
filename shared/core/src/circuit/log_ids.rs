//! The log ids of deliveries that failed.

/// The log id of a delivery that failed on its link: names, connections, TLS (Exchange's event
/// 4000).
pub const LINK_FAILED: u32 = 4000;

/// The log id of a delivery that failed after its link was reached (Exchange's event 4001).
pub const EXCHANGE_FAILED: u32 = 4001;
