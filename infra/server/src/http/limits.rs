//! Bounds of connections and requests.

use ipnet::IpNet;

/// Most ordinary requests at once, by default.
const REQUESTS_MAX: usize = 4096;

/// Places beyond those of ordinary requests: for health checks, and requests with the admin
/// key.
pub const OPERATORS_MAX: usize = 64;

/// Bounds of connections.
#[derive(Debug, Clone)]
pub struct ConnectionLimits {
    /// Most ordinary requests at once. A few more connections are kept for operators.
    pub requests_max: usize,
    /// Addresses of proxies, which hold the connections of many clients.
    pub trusted_proxies: Vec<IpNet>,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            requests_max: REQUESTS_MAX,
            trusted_proxies: Vec::new(),
        }
    }
}
