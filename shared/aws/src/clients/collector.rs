//! Requests to a collector of traces and metrics, which is no service of AWS: over the same HTTP
//! client, and with shorter waits, because an invocation waits for them.

use std::error::Error;
use std::time::Duration;

use aws_smithy_async::rt::sleep::SharedAsyncSleep;
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorSettings};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::byte_stream::ByteStream;
use bytes::Bytes;
use http::HeaderMap;

use super::connector::SchemeConnectors;

/// Longest wait for a connection and for a response, each: a collector beside the function responds
/// in milliseconds.
const COLLECTOR_TIMEOUT: Duration = Duration::from_millis(500);

/// Sends to a collector. A client connects at its first request.
#[derive(Debug)]
pub struct CollectorClient {
    connector: SchemeConnectors,
}

impl CollectorClient {
    pub(super) fn new(sleep: SharedAsyncSleep) -> Self {
        let timeouts = HttpConnectorSettings::builder()
            .connect_timeout(COLLECTOR_TIMEOUT)
            .read_timeout(COLLECTOR_TIMEOUT);
        Self {
            connector: SchemeConnectors::new(timeouts.build(), sleep),
        }
    }

    /// Posts a body to `url`, once. Returns the status and the body of the response.
    pub async fn post(
        &self,
        url: &str,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Result<(u16, Bytes), Box<dyn Error + Send + Sync>> {
        let length = body.len();
        let mut request = HttpRequest::new(SdkBody::from(body));
        request.set_method("POST")?;
        request.set_uri(url)?;
        let own = request.headers_mut();
        for (name, value) in headers {
            own.try_append(name.as_str().to_owned(), value.to_str()?.to_owned())?;
        }
        own.try_insert("content-length", length.to_string())?;
        let answer = self.connector.call(request).await?;
        let status = answer.status().as_u16();
        let body = ByteStream::new(answer.into_body()).collect().await?;
        Ok((status, body.into_bytes()))
    }
}
