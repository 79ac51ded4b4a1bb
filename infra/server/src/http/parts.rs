//! The requests that an address answers: all of them, or those that the other addresses of the
//! server leave to it.

use ::http::Method;
use ::http::request::Parts as Head;

use super::super::data_folder::HEALTH;
use super::super::probes::is_probe;

/// The path under which endpoints consent to events.
pub(super) const CONSENT_PATH: &str = "/validate/";

/// The path of the public keys with which receivers verify.
const KEYS_PATH: &str = "/.well-known/webhook-keys";

/// The path of the metrics.
pub(super) const METRICS_PATH: &str = "/metrics";

/// The requests that an address answers. Health and the state of the process are answered by all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServedParts {
    /// Producers, endpoints that consent, and receivers that ask for public keys.
    pub public: bool,
    /// The management API and the console.
    pub management: bool,
    /// The metrics.
    pub metrics: bool,
}

impl ServedParts {
    /// All there is.
    pub const ALL: Self = Self {
        public: true,
        management: true,
        metrics: true,
    };

    /// Whether a request is answered here.
    pub(super) fn serves_request(self, head: &Head) -> bool {
        let path = head.uri.path();
        if path == HEALTH || is_probe(path) {
            true
        } else if path == METRICS_PATH {
            self.metrics
        } else if is_publish(&head.method, path)
            || path.starts_with(CONSENT_PATH)
            || path == KEYS_PATH
        {
            self.public
        } else {
            self.management
        }
    }
}

/// Whether a request publishes events.
pub(super) fn is_publish(method: &Method, path: &str) -> bool {
    let Some(rest) = path.strip_prefix("/topics/") else {
        return false;
    };
    let topic = rest.strip_suffix("/events");
    let topic = topic.map(|topic| topic.strip_suffix("/api").unwrap_or(topic));
    *method == Method::POST && topic.is_some_and(|topic| !topic.contains('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLIC: ServedParts = ServedParts {
        public: true,
        management: false,
        metrics: false,
    };
    const METRICS: ServedParts = ServedParts {
        public: false,
        management: false,
        metrics: true,
    };

    fn answered(method: &str, path: &str) -> [bool; 3] {
        let request = ::http::Request::builder().method(method).uri(path);
        let (head, ()) = request.body(()).unwrap().into_parts();
        [ServedParts::ALL, PUBLIC, METRICS].map(|answers| answers.serves_request(&head))
    }

    #[test]
    fn each_request_is_answered_where_it_belongs() {
        for path in ["/health", "/livez", "/readyz", "/version"] {
            assert_eq!(answered("GET", path), [true, true, true], "{path}");
        }
        assert_eq!(answered("GET", "/metrics?x"), [true, false, true]);
        let public = [
            ("POST", "/topics/orders/events"),
            ("POST", "/topics/orders/api/events?api-version=2018-01-01"),
            ("GET", "/validate/orders/billing/code"),
            ("POST", "/validate/orders/billing/code"),
            ("GET", "/.well-known/webhook-keys"),
        ];
        for (method, path) in public {
            assert_eq!(answered(method, path), [true, true, false], "{path}");
        }
        let management = [
            ("GET", "/topics/orders/events"),
            ("PUT", "/topics/orders"),
            ("DELETE", "/topics/orders/events/1"),
            ("POST", "/topics/orders/subscriptions/billing/events"),
            ("POST", "/topics/orders/events/1/resend"),
            ("POST", "/events"),
            ("GET", "/console"),
            ("GET", "/"),
            ("GET", "/metricsx"),
            ("GET", "/validate"),
        ];
        for (method, path) in management {
            assert_eq!(answered(method, path), [true, false, false], "{path}");
        }
    }
}
