//! The connection to a collector, which the host program implements.

use std::error::Error;

use bytes::Bytes;
use http::HeaderMap;
use url::Url;

/// A request to a collector: a `POST`.
#[derive(Debug, Clone)]
pub struct CollectorRequest {
    /// The URL of the signal.
    pub url: Url,
    /// All headers but those of the connection.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// A response of a collector.
#[derive(Debug, Clone)]
pub struct CollectorResponse {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: Bytes,
}

/// The reason why there was no response.
pub type UnreachableError = Box<dyn Error + Send + Sync>;

/// Sends requests to a collector, each bounded in time.
pub trait Collector: Send + Sync {
    /// Sends one.
    fn post_blocking(
        &self,
        request: CollectorRequest,
    ) -> impl Future<Output = Result<CollectorResponse, UnreachableError>> + Send;
}
