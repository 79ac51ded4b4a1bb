//! Responses to CloudFormation: a PUT to a URL that came with the request, and that is signed
//! already.

use aws_smithy_async::rt::sleep::SharedAsyncSleep;
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorSettings};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::http::HttpError;
use aws_smithy_types::body::SdkBody;
use bytes::Bytes;
use posthaste_ports::{ErrorKind, PortError};

use super::connector::SchemeConnectors;
use super::limits::{CONNECT_TIMEOUT, READ_TIMEOUT};

const ANSWERING: &str = "answer CloudFormation";

/// Sends responses. A client connects at its first.
#[derive(Debug)]
pub struct StackAnswers {
    connector: SchemeConnectors,
}

impl StackAnswers {
    pub(super) fn new(sleep: SharedAsyncSleep) -> Self {
        let timeouts = HttpConnectorSettings::builder();
        let timeouts = timeouts
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(READ_TIMEOUT);
        Self {
            connector: SchemeConnectors::new(timeouts.build(), sleep),
        }
    }

    /// Puts a response to `url`, once.
    pub async fn put_response(&self, url: &str, answer: Bytes) -> Result<(), PortError> {
        let mut request = HttpRequest::new(SdkBody::from(answer));
        request.set_method("PUT").map_err(invalid_request)?;
        request.set_uri(url).map_err(invalid_request)?;
        let sent = self.connector.call(request).await;
        let response =
            sent.map_err(|error| PortError::with_cause(ANSWERING, ErrorKind::Other, error))?;
        match response.status() {
            status if status.is_success() => Ok(()),
            status => {
                let status = format!("the answer was {}", status.as_u16());
                Err(PortError::with_cause(ANSWERING, ErrorKind::Other, status))
            }
        }
    }
}

fn invalid_request(error: HttpError) -> PortError {
    PortError::with_cause(ANSWERING, ErrorKind::Invalid, error)
}
