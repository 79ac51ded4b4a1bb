//! Whose requests are answered even if all other places are taken.

use std::sync::Arc;

use ::http::request::Parts;
use ::http::{HeaderMap, header};
use posthaste_console::PATH;
use posthaste_core::model::Secret;

use super::super::console::ConsoleAccess;
use super::super::data_folder::HEALTH;
use super::super::probes::is_probe;

/// The check by which requests of operators are known.
#[derive(Debug)]
pub struct OperatorCheck {
    admin_key: Secret,
    console: Option<Arc<ConsoleAccess>>,
}

impl OperatorCheck {
    /// Operators show this key, or are signed in to the console where there is one.
    pub fn new(admin_key: Secret, console: Option<Arc<ConsoleAccess>>) -> Self {
        Self { admin_key, console }
    }

    /// True for a request for health or the state of the process, and for one with the admin key or of a visitor who
    /// is signed in to the console. Not for metrics: whoever scrapes a crowded server shows the
    /// admin key.
    pub(super) fn is_operator_request(&self, head: &Parts) -> bool {
        head.uri.path() == HEALTH
            || is_probe(head.uri.path())
            || bearer_key(&head.headers).is_some_and(|offered| self.admin_key.matches(offered))
            || self.console.as_ref().is_some_and(|console| {
                is_of_console(head.uri.path()) && console.is_signed_in(&head.headers)
            })
    }
}

fn is_of_console(path: &str) -> bool {
    path.strip_prefix(PATH)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn bearer_key(headers: &HeaderMap) -> Option<&str> {
    let (scheme, key) = headers
        .get(header::AUTHORIZATION)?
        .to_str()
        .ok()?
        .split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::Router;
    use axum::body::Body;
    use http_body_util::BodyExt;
    use posthaste_console::{ConsoleState, VisitorAccess};
    use posthaste_core::model::KeyDigest;
    use posthaste_local::{EmbeddedStore, LocalOptions};
    use posthaste_system::{SystemClock, SystemEntropy};
    use tower::ServiceExt;

    const KEY: &str = "the-admin-key-of-this-test-has-32-characters";

    fn head(url: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = ::http::Request::builder().uri(url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn an_operator_is_known_by_the_path_or_the_admin_key() {
        let operators = OperatorCheck::new(Secret::new(KEY), None);
        let check = |url: &str, authorization: &str, expected| {
            let head = head(url, &[("host", "h"), ("authorization", authorization)]);
            assert_eq!(
                operators.is_operator_request(&head),
                expected,
                "{url} {authorization}"
            );
        };
        check("/health", "", true);
        check("/health?x", "", true);
        check("/metrics", "", false);
        check("/metrics", &format!("Bearer {KEY}"), true);
        check("/topics", "", false);
        check("/topics", &format!("Bearer {KEY}"), true);
        check("/topics", &format!("bearer  {KEY}"), true);
        check("/topics", "Bearer another", false);
        check("/topics", &format!("Basic {KEY}"), false);
        for probe in ["/livez", "/readyz?x", "/version"] {
            check(probe, "", true);
        }
        check("/healthy", "", false);
        check("/readyz/x", "", false);
        check("/console", "", false);
    }

    /// The first cookie that an answer of the console sets, and the answer's body.
    async fn asked(console: &Router, request: ::http::Request<Body>) -> (String, String) {
        let response = console.clone().oneshot(request).await.unwrap();
        let cookie = response.headers()[header::SET_COOKIE].to_str().unwrap();
        let cookie = cookie.split(';').next().unwrap().to_owned();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (cookie, String::from_utf8(body.into()).unwrap())
    }

    #[tokio::test]
    async fn a_visitor_who_is_signed_in_is_an_operator() {
        let folder = tempfile::tempdir().unwrap();
        let local = EmbeddedStore::open(
            folder.path(),
            LocalOptions::default(),
            SystemClock,
            SystemEntropy,
        )
        .unwrap();
        let access = VisitorAccess::new(
            local.state_store(),
            SystemClock,
            SystemEntropy,
            KeyDigest::for_key(KEY),
        );
        let access = Arc::new(access);
        let operators = OperatorCheck::new(Secret::new(KEY), Some(Arc::clone(&access)));
        let check = |url, cookie: &str, expected| {
            let head = head(url, &[("host", "h"), ("cookie", cookie)]);
            assert_eq!(
                operators.is_operator_request(&head),
                expected,
                "{url} {cookie}"
            );
        };

        let console = posthaste_console::router(access, ConsoleState::new(Router::new()));
        let request = ::http::Request::get("/console/sign-in").header("host", "h");
        let (visiting, page) = asked(&console, request.body(Body::empty()).unwrap()).await;
        let token = page
            .split("name=\"form\" value=\"")
            .nth(1)
            .unwrap()
            .split('"')
            .next()
            .unwrap();
        let form = format!("form={token}&key={KEY}");
        let request = ::http::Request::post("/console/sign-in")
            .header("host", "h")
            .header("cookie", &visiting);
        let (signed_in, _) = asked(&console, request.body(form.into()).unwrap()).await;

        for url in [
            "/console",
            "/console/topics?a=b",
            "/console/assets/console.css",
        ] {
            check(url, "", false);
            check(url, &visiting, false);
            check(url, &signed_in, true);
        }
        check("/consoles", &signed_in, false);
        check("/topics/orders/events", &signed_in, false);

        let restarted = Arc::new(VisitorAccess::new(
            local.state_store(),
            SystemClock,
            SystemEntropy,
            KeyDigest::for_key(KEY),
        ));
        let operators = OperatorCheck::new(Secret::new(KEY), Some(Arc::clone(&restarted)));
        let page = head("/console", &[("host", "h"), ("cookie", &signed_in)]);
        assert!(!operators.is_operator_request(&page));
        restarted.read_sessions().await;
        assert!(operators.is_operator_request(&page));
    }
}
