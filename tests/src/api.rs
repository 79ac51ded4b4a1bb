//! A client of the HTTP API that refuses nothing and expects nothing: tests look at the answers.

use std::sync::Arc;

use rustls::crypto::ring;
use serde_json::{Value, json};
use ureq::http::{HeaderMap, Request, header};
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use crate::authority::Authority;

/// Most bytes of an answer that are read.
const ANSWER_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The content type of one structured CloudEvent.
pub const CLOUD_EVENT: &str = "application/cloudevents+json";

/// The content type of a batch of CloudEvents.
pub const CLOUD_EVENTS_BATCH: &str = "application/cloudevents-batch+json";

/// A client of one server.
#[derive(Debug, Clone)]
pub struct Api {
    agent: ureq::Agent,
    url: String,
    admin_key: String,
}

/// An answer, of whatever status.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

/// A topic to publish to.
#[derive(Debug, Clone)]
pub struct Topic {
    api: Api,
    pub name: String,
    /// The two publish keys.
    pub keys: [String; 2],
}

impl Answer {
    /// The body, which must be JSON.
    pub fn json(&self) -> Value {
        let text = String::from_utf8_lossy(&self.body);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in the answer {text:?}"))
    }

    /// A header, or nothing.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The answer itself, if it has this status.
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(
            self.status,
            status,
            "{}",
            String::from_utf8_lossy(&self.body)
        );
        self
    }

    /// The problem (RFC 9457) it carries: it must have this status in its head and in its body.
    pub fn problem(self, status: u16) -> Value {
        let answer = self.expect(status);
        assert_eq!(
            answer.header("content-type"),
            Some("application/problem+json")
        );
        let problem = answer.json();
        assert_eq!(problem["status"], status);
        assert!(
            problem["title"].is_string() && problem["type"].is_string(),
            "{problem}"
        );
        problem
    }
}

impl Api {
    /// A client of the server at `url`.
    pub fn new(url: String, admin_key: &str) -> Self {
        Self::by(TlsConfig::default(), url, admin_key)
    }

    /// A client of the server at `url`, which trusts this authority alone.
    pub fn trusting(authority: &Authority, url: String, admin_key: &str) -> Self {
        let root = Certificate::from_pem(authority.pem().as_bytes()).expect("it is in PEM");
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::new_with_certs(&[root]))
            .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()));
        Self::by(tls.build(), url, admin_key)
    }

    fn by(tls: TlsConfig, url: String, admin_key: &str) -> Self {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .tls_config(tls)
            .proxy(None);
        Self {
            agent: config.build().into(),
            url,
            admin_key: admin_key.to_owned(),
        }
    }

    /// The address of the server.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The admin key, for clients of other kinds.
    pub fn admin_key(&self) -> &str {
        &self.admin_key
    }

    /// Sends a request as it is given. Nothing if there was no answer.
    pub fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Answer, ureq::Error> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = if matches!(method, "GET" | "DELETE") {
            self.agent
                .run(request.body(()).map_err(ureq::Error::Http)?)?
        } else {
            self.agent
                .run(request.body(body).map_err(ureq::Error::Http)?)?
        };
        let (head, body) = response.into_parts();
        let body = body
            .into_with_config()
            .limit(ANSWER_BYTES_MAX)
            .read_to_vec()?;
        Ok(Answer {
            status: head.status.as_u16(),
            headers: head.headers,
            body,
        })
    }

    /// Sends a request with the admin key.
    pub fn manage(&self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        let authorization = format!("Bearer {}", self.admin_key);
        let headers = [
            (header::AUTHORIZATION.as_str(), authorization.as_str()),
            ("content-type", "application/json"),
        ];
        let body = body
            .map(|body| body.to_string().into_bytes())
            .unwrap_or_default();
        self.send(method, path, &headers, &body)
            .unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    /// Asks for a resource, which must be there.
    pub fn show(&self, path: &str) -> Value {
        self.manage("GET", path, None).expect(200).json()
    }

    /// Creates a topic.
    pub fn create_topic(&self, name: &str, settings: &Value) -> Topic {
        self.manage("PUT", &format!("/topics/{name}"), Some(settings))
            .expect(201);
        self.topic(name)
    }

    /// Creates a topic of CloudEvents with one subscription.
    pub fn create_topic_with(&self, name: &str, subscription: &str, settings: &Value) -> Topic {
        self.create_topic(
            name,
            &json!({ "subscriptions": { subscription: settings } }),
        )
    }

    /// A topic that is there.
    pub fn topic(&self, name: &str) -> Topic {
        let keys = self.show(&format!("/topics/{name}/keys"));
        let key = |name: &str| {
            keys[name]
                .as_str()
                .expect("a topic has two keys")
                .to_owned()
        };
        Topic {
            api: self.clone(),
            name: name.to_owned(),
            keys: [key("key1"), key("key2")],
        }
    }

    /// The number of events that endpoints accepted, at `/metrics`.
    pub fn delivered(&self) -> f64 {
        self.metric("posthaste_deliveries_total{outcome=\"delivered\"}")
    }

    /// The value of a metric at `/metrics`, summed over its labels; 0 where it has not been counted
    /// yet. One of its labels may follow in braces: only series with it count.
    pub fn metric(&self, metric: &str) -> f64 {
        let answer = self.manage("GET", "/metrics", None).expect(200);
        let text = String::from_utf8(answer.body).expect("metrics are text");
        let (name, label) = metric.split_once('{').unwrap_or((metric, "}"));
        let label = label.trim_end_matches('}');
        let lines = text.lines().filter(|line| {
            line.strip_prefix(name)
                .is_some_and(|rest| rest.starts_with(['{', ' ']) && rest.contains(label))
        });
        let value = |line: &str| {
            line.rsplit(' ')
                .next()
                .and_then(|value| value.parse::<f64>().ok())
        };
        lines.filter_map(value).sum()
    }
}

impl Topic {
    /// The client of the server that has it.
    pub fn api(&self) -> &Api {
        &self.api
    }

    /// The URL for publishing.
    pub fn path(&self) -> String {
        format!("/topics/{}/events", self.name)
    }

    /// Publishes a body as it is, with the first key. Nothing if there was no answer.
    pub fn send(&self, content_type: &str, body: &[u8]) -> Result<Answer, ureq::Error> {
        let headers = [
            ("aeg-sas-key", self.keys[0].as_str()),
            ("content-type", content_type),
        ];
        self.api.send("POST", &self.path(), &headers, body)
    }

    /// Publishes a body with these headers instead of a key and a content type.
    pub fn send_with(&self, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        self.api
            .send("POST", &self.path(), headers, body)
            .expect("the server answers")
    }

    /// Publishes one CloudEvent, which must be accepted.
    pub fn publish(&self, event: &Value) {
        self.send(CLOUD_EVENT, event.to_string().as_bytes())
            .expect("the server answers")
            .expect(200);
    }

    /// Publishes a batch of CloudEvents, which must be accepted.
    pub fn publish_batch(&self, events: &[Value]) {
        let body = Value::from(events).to_string();
        self.send(CLOUD_EVENTS_BATCH, body.as_bytes())
            .expect("the server answers")
            .expect(200);
    }
}
