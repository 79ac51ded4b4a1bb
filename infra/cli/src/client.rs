//! The client of a running server's HTTP API, as the commands use it: one request, one answer,
//! blocking. Outbound webhooks have their own client in `posthaste-http`; its rules on addresses
//! would be wrong for an operator's tool.

mod agent;
mod busy;
mod problem;
mod scheme;

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use posthaste_core::api::read_answer;
use posthaste_core::model::Secret;
use posthaste_core::model::url_text::{UrlTextError, parse_written};
use posthaste_core::pressure::TARPIT_LIMIT;
use posthaste_http::{RootFileError, read_root_file};
use serde::de::DeserializeOwned;
use ureq::http::response::Parts as Head;
use ureq::http::{self, HeaderMap, Method, Request, Response, header};
use ureq::{AsSendBody, Body};
use url::{Host, Url, form_urlencoded};

use crate::terminal::tell_user;

pub use agent::ServerTrust;
pub use agent::http_agent;
pub(crate) use busy::sleep_for;
pub use problem::ServerRefusal;
pub(crate) use scheme::{is_of_another_name, is_of_unknown_authority};

/// Longest time of one request …
const REQUEST_TIMEOUT: Duration = Duration::from_secs(150);

/// … and of one that publishes. Back pressure may hold its acknowledgement for as long as any
/// settings allow, and a client that leaves before has published nothing.
pub const PUBLISH_TIMEOUT: Duration = TARPIT_LIMIT.saturating_add(Duration::from_mins(1));

/// Most bytes of an answer that are read. Dead-letter objects are gathered up to 8 MiB and may hold
/// one event more.
const ANSWER_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// A running server.
#[derive(Debug, Clone)]
pub struct ServerClient {
    base: Url,
    agent: ureq::Agent,
    trust: ServerTrust,
    /// Whether it answered once: then its scheme is right.
    was_heard: Arc<AtomicBool>,
}

/// A request: the path is given in segments, which are escaped here.
#[derive(Debug)]
pub struct ApiCall<'a> {
    method: Method,
    path: Vec<&'a str>,
    query: Vec<(&'a str, String)>,
    key: Option<&'a Secret>,
    headers: Vec<(&'static str, String)>,
    body: Option<(&'a str, Vec<u8>)>,
    timeout: Duration,
    /// Whether it is sent again where the server is busy.
    is_patient: bool,
}

/// An answer of success.
#[derive(Debug)]
pub struct ClientResponse {
    /// The status, 200 to 299.
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

/// Error of a call without an answer of success.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server's address is not one.
    #[error("{url:?} is not the address of a server, such as http://127.0.0.1:8080")]
    Address {
        /// The text that was given.
        url: String,
        /// The reason, if it is in its characters.
        #[source]
        source: Option<UrlTextError>,
    },
    /// The file of authorities is refused.
    #[error("--ca-cert: {source}")]
    Authorities {
        /// The fault.
        #[source]
        source: RootFileError,
    },
    /// There was no answer.
    #[error("failed to reach {url}")]
    Unreachable {
        /// The server's address.
        url: Url,
        /// The reason.
        #[source]
        source: Box<ureq::Error>,
    },
    /// There was no answer, and there is one with the other scheme.
    #[error("the server at {}:{} {}", url.host_str().unwrap_or_default(),
        url.port_or_known_default().unwrap_or_default(),
        if url.scheme() == "http" { "answers plain HTTP" } else { "speaks TLS" })]
    OtherScheme {
        /// The address with that scheme.
        url: Url,
    },
    /// The server said no.
    #[error(transparent)]
    Refused(Box<ServerRefusal>),
    /// A list goes on and on.
    #[error("the list of {url} is longer than {items} items, or does not end")]
    Endless {
        /// The server's address.
        url: Url,
        /// The items that were read.
        items: usize,
    },
    /// The server's answer is not what its API says.
    #[error("failed to read the answer of {url}")]
    Answer {
        /// The server's address.
        url: Url,
        /// The fault in the answer.
        #[source]
        source: serde_json::Error,
    },
}

impl<'a> ApiCall<'a> {
    /// A request without a body.
    pub fn new(method: Method, path: &[&'a str]) -> Self {
        Self {
            method,
            path: path.to_vec(),
            query: Vec::new(),
            key: None,
            headers: Vec::new(),
            body: None,
            timeout: REQUEST_TIMEOUT,
            is_patient: false,
        }
    }

    /// Lets it be sent again, a few times, where the server is busy (429, 503).
    pub fn retry_when_busy(mut self) -> Self {
        self.is_patient = true;
        self
    }

    /// Adds a query parameter, if there is a value.
    pub fn query(mut self, name: &'a str, value: Option<impl ToString>) -> Self {
        self.query
            .extend(value.map(|value| (name, value.to_string())));
        self
    }

    /// Adds a key.
    pub fn key(mut self, key: &'a Secret) -> Self {
        self.key = Some(key);
        self
    }

    /// Adds a header, if there is a value.
    pub fn header(mut self, name: &'static str, value: Option<impl ToString>) -> Self {
        self.headers
            .extend(value.map(|value| (name, value.to_string())));
        self
    }

    /// Sets the longest time, from the connection to the last byte of the answer.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The longest time it may take.
    #[cfg(test)]
    pub(crate) fn longest(&self) -> Duration {
        self.timeout
    }

    /// Adds a body.
    pub fn body(mut self, content_type: &'a str, bytes: Vec<u8>) -> Self {
        self.body = Some((content_type, bytes));
        self
    }
}

impl ServerClient {
    /// A client of the server at `url`, which trusts what this machine trusts. Nothing is sent yet.
    pub fn new(url: &str) -> Result<Self, ClientError> {
        Self::with_trust(url, ServerTrust::Machine)
    }

    /// The same, which also trusts the authorities of a file, if there is one.
    pub fn with_authorities(url: &str, file: Option<&Path>) -> Result<Self, ClientError> {
        let Some(file) = file else {
            return Self::new(url);
        };
        let authorities = read_root_file(file);
        let authorities = authorities.map_err(|source| ClientError::Authorities { source })?;
        Self::with_trust(url, ServerTrust::MachineAnd(authorities.into()))
    }

    /// A client of the server at `url`. Nothing is sent yet.
    pub fn with_trust(url: &str, trust: ServerTrust) -> Result<Self, ClientError> {
        let base = parse_written(url).map_err(|error| ClientError::Address {
            url: url.to_owned(),
            source: Some(error),
        })?;
        if !matches!(base.scheme(), "http" | "https")
            || base.query().is_some()
            || base.fragment().is_some()
        {
            return Err(ClientError::Address {
                url: url.to_owned(),
                source: None,
            });
        }
        Ok(Self {
            agent: http_agent(&base, &trust),
            base,
            trust,
            was_heard: Arc::default(),
        })
    }

    /// A client of another server, which trusts the same.
    pub fn for_other_server(&self, url: &str) -> Result<Self, ClientError> {
        Self::with_trust(url, self.trust.clone())
    }

    /// The server's address.
    pub fn base_url(&self) -> &Url {
        &self.base
    }

    /// True if the server is on this machine, by its address alone: only `localhost` is resolved.
    pub fn is_on_this_machine(&self) -> bool {
        match self.base.host() {
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            Some(Host::Domain(name)) => name == "localhost",
            None => false,
        }
    }

    /// Sends a request and returns its success.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a call is made where it is sent"
    )]
    pub fn send(&self, call: ApiCall<'_>) -> Result<ClientResponse, ClientError> {
        let mut retries = 0;
        let mut is_in_doubt = false;
        loop {
            let mut refusal = match self.send_without_retries(&call) {
                Err(ClientError::Refused(refusal)) if call.is_patient => refusal,
                sent => return sent,
            };
            refusal.follows_doubt = is_in_doubt;
            let Some(wait) = busy::retry_wait(&refusal, &call.method, retries) else {
                return Err(ClientError::Refused(refusal));
            };
            retries += 1;
            is_in_doubt |= busy::leaves_doubt(&refusal);
            let status = refusal.status;
            let seconds = wait.as_secs();
            tell_user(&format!(
                "the server is busy ({status}): the request is sent again in {seconds} s"
            ));
            sleep_for(wait);
        }
    }

    fn send_without_retries(&self, call: &ApiCall<'_>) -> Result<ClientResponse, ClientError> {
        let (head, body) = self.open_response(call)?;
        let body = body
            .into_with_config()
            .limit(ANSWER_BYTES_MAX)
            .read_to_vec();
        let body = body.map_err(|error| self.unreachable_error(error))?;
        self.check_response(&head, body)
    }

    /// Sends a request and returns the body of its success as it comes, of any length.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a call is made where it is sent"
    )]
    pub fn send_streaming(&self, call: ApiCall<'_>) -> Result<impl Read + use<>, ClientError> {
        let (head, body) = self.open_response(&call)?;
        if head.status.is_success() {
            self.was_heard.store(true, Ordering::Relaxed);
            return Ok(body.into_with_config().limit(u64::MAX).reader());
        }
        let body = body
            .into_with_config()
            .limit(ANSWER_BYTES_MAX)
            .read_to_vec();
        let body = body.map_err(|error| self.unreachable_error(error))?;
        // The status is that of a refusal.
        Err(self
            .check_response(&head, body.clone())
            .err()
            .unwrap_or_else(|| refusal_error(&head, &body)))
    }

    /// Sends a request, and returns the head of its answer with the body to come.
    fn open_response(&self, call: &ApiCall<'_>) -> Result<(Head, Body), ClientError> {
        let mut request = Request::builder()
            .uri(self.request_uri(call))
            .method(&call.method);
        if let Some(key) = call.key {
            request = request.header(header::AUTHORIZATION, format!("Bearer {}", key.expose()));
        }
        for (name, value) in &call.headers {
            request = request.header(*name, value);
        }
        let response = match &call.body {
            Some((content_type, bytes)) => self.run(
                request
                    .header(header::CONTENT_TYPE, *content_type)
                    .body(bytes.as_slice()),
                call.timeout,
            ),
            None => self.run(request.body(()), call.timeout),
        };
        let response = response.map_err(|error| self.unreachable_error(error))?;
        Ok(response.into_parts())
    }

    /// The answer, if it is a success.
    fn check_response(&self, head: &Head, body: Vec<u8>) -> Result<ClientResponse, ClientError> {
        if scheme::is_tls_mismatch(head.status.as_u16(), &head.headers)
            && let Some(url) = self.find_other_scheme()
        {
            return Err(ClientError::OtherScheme { url });
        }
        self.was_heard.store(true, Ordering::Relaxed);
        if head.status.is_success() {
            return Ok(ClientResponse {
                status: head.status.as_u16(),
                headers: head.headers.clone(),
                body,
            });
        }
        Err(refusal_error(head, &body))
    }

    /// Sends a request and returns the JSON of its success, as the type that is expected.
    pub fn send_for_json<T: DeserializeOwned>(&self, call: ApiCall<'_>) -> Result<T, ClientError> {
        self.send_for_json_and_text(call).map(|(json, _)| json)
    }

    /// The same, and the JSON as it was written.
    pub fn send_for_json_and_text<T: DeserializeOwned>(
        &self,
        call: ApiCall<'_>,
    ) -> Result<(T, String), ClientError> {
        let body = self.send(call)?.body;
        Ok((
            self.parse_body(&body)?,
            String::from_utf8_lossy(&body).into_owned(),
        ))
    }

    /// Reads the body of a success, which may be that of a newer server.
    pub fn parse_body<T: DeserializeOwned>(&self, body: &[u8]) -> Result<T, ClientError> {
        read_answer(body).map_err(|source| ClientError::Answer {
            url: self.base.clone(),
            source,
        })
    }

    fn run(
        &self,
        request: http::Result<Request<impl AsSendBody>>,
        timeout: Duration,
    ) -> Result<Response<Body>, ureq::Error> {
        let request = self
            .agent
            .configure_request(request?)
            .timeout_global(Some(timeout))
            .build();
        self.agent.run(request)
    }

    fn unreachable_error(&self, source: ureq::Error) -> ClientError {
        match scheme::may_be_wrong_scheme(&source)
            .then(|| self.find_other_scheme())
            .flatten()
        {
            Some(url) => ClientError::OtherScheme { url },
            None => ClientError::Unreachable {
                url: self.base.clone(),
                source: Box::new(source),
            },
        }
    }

    /// The server's address with the other scheme, if it answers there and never answered here.
    fn find_other_scheme(&self) -> Option<Url> {
        if self.was_heard.load(Ordering::Relaxed) {
            None
        } else {
            scheme::url_with_other_scheme(&self.base, &self.trust)
        }
    }

    /// The address of a request. It is no `Url`, which would take a segment of dots for a step in
    /// the path.
    fn request_uri(&self, call: &ApiCall<'_>) -> String {
        let path = call
            .path
            .iter()
            .map(|segment| format!("/{}", escape_segment(segment)));
        let uri = path.fold(
            self.base.as_str().trim_end_matches('/').to_owned(),
            |uri, part| uri + &part,
        );
        if call.query.is_empty() {
            return uri;
        }
        let query = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(&call.query)
            .finish();
        format!("{uri}?{query}")
    }
}

fn refusal_error(head: &Head, body: &[u8]) -> ClientError {
    let refusal = ServerRefusal::from_response(head.status.as_u16(), &head.headers, body);
    ClientError::Refused(Box::new(refusal))
}

/// A segment of a path, percent-encoded.
fn escape_segment(segment: &str) -> String {
    let escaped: String = form_urlencoded::byte_serialize(segment.as_bytes()).collect();
    match escaped.as_str() {
        "." | ".." => escaped.replace('.', "%2E"),
        // A plus sign is a space in a query only.
        _ => escaped.replace('+', "%20"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(base: &str, call: &ApiCall<'_>) -> String {
        ServerClient::new(base).unwrap().request_uri(call)
    }

    #[test]
    fn path_segments_and_queries_are_escaped() {
        let call = ApiCall::new(Method::GET, &["topics", "a/b?c"])
            .query("from", Some("1+2"))
            .query("to", None::<u8>);
        assert_eq!(
            url("http://h:1", &call),
            "http://h:1/topics/a%2Fb%3Fc?from=1%2B2"
        );
        assert_eq!(
            url("https://h/base/", &ApiCall::new(Method::GET, &["health"])),
            "https://h/base/health"
        );
    }

    #[test]
    fn every_segment_is_one_in_the_path() {
        let check = |segment: &str, expected: &str| {
            let call = ApiCall::new(Method::GET, &["events", segment, "resend"]);
            assert_eq!(
                url("http://h:1", &call),
                format!("http://h:1/events/{expected}/resend"),
                "{segment}"
            );
        };
        check("a b+c", "a%20b%2Bc");
        check("ü", "%C3%BC");
        check("100%", "100%25");
        check("-1", "-1");
        check("a.b..c", "a.b..c");
        check(".", "%2E");
        check("..", "%2E%2E");
        check("...", "...");
    }

    #[test]
    fn a_request_takes_as_long_as_it_was_given() {
        // A server that listens and says nothing.
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let client =
            ServerClient::new(&format!("http://{}", silent.local_addr().unwrap())).unwrap();
        let call = ApiCall::new(Method::GET, &["health"]).timeout(Duration::from_millis(1));
        let Err(ClientError::Unreachable { source, .. }) = client.send(call) else {
            panic!("an answer")
        };
        assert!(
            matches!(*source, ureq::Error::Timeout(ureq::Timeout::Global)),
            "{source}"
        );
    }

    #[test]
    fn address_that_is_not_of_a_server_is_refused() {
        for bad in ["", "localhost:8080", "ftp://h", "http://h/?a=b", "/topics"] {
            assert!(
                matches!(ServerClient::new(bad), Err(ClientError::Address { .. })),
                "{bad}"
            );
        }
    }

    #[test]
    fn this_machine_is_told_by_the_address() {
        let check = |url: &str, expected| {
            assert_eq!(
                ServerClient::new(url).unwrap().is_on_this_machine(),
                expected,
                "{url}"
            );
        };
        for here in [
            "http://127.0.0.1:8080",
            "http://127.1.2.3",
            "http://[::1]:1",
            "https://LOCALHOST/x",
        ] {
            check(here, true);
        }
        for elsewhere in [
            "https://x.lambda-url.eu-central-1.on.aws",
            "http://10.0.0.1",
            "http://localhost.example.com",
        ] {
            check(elsewhere, false);
        }
    }
}
