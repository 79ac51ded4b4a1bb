//! The pages of the console, as a browser without JavaScript sees them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use http::Request;
use http::header::{CONTENT_TYPE, COOKIE, HOST, SET_COOKIE};
use http_body_util::BodyExt;
use posthaste_console::{ConsoleState, VisitorAccess};
use posthaste_core::model::KeyDigest;
use posthaste_server::history::StepRing;
use posthaste_simulation::World;
use posthaste_testkit::SeededEntropy;
use tower::ServiceExt;
use url::form_urlencoded;

const ADMIN_KEY: &str = "the-admin-key-of-the-outage";

/// A visitor who is signed in.
pub(super) struct Browser {
    routes: Router,
    cookies: RefCell<BTreeMap<String, String>>,
}

impl Browser {
    /// Opens the console of a world, with the charts of this history, and signs in.
    pub(super) async fn sign_in(world: &World, history: Arc<StepRing>) -> Self {
        let key = KeyDigest::for_key(ADMIN_KEY);
        let clock = world.clock.clone();
        let entropy = SeededEntropy::new(5);
        let access = Arc::new(VisitorAccess::new(world.state(), clock, entropy, key));
        let console = ConsoleState::new(world.api().routes()).with_history(history);
        let browser = Self {
            routes: posthaste_console::router(access, console),
            cookies: RefCell::default(),
        };
        let (_, page) = browser.send(Request::get("/console/sign-in"), "").await;
        let token = between(&page, "name=\"form\" value=\"", "\"").to_owned();
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("form", &token)
            .append_pair("key", ADMIN_KEY);
        let request = Request::post("/console/sign-in")
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        let (status, page) = browser.send(request, &form.finish()).await;
        assert_eq!(status, 303, "{page}");
        browser
    }

    /// The text of a page.
    pub(super) async fn page(&self, url: &str) -> String {
        let (status, page) = self.send(Request::get(url), "").await;
        assert_eq!(status, 200, "{url}: {page}");
        page
    }

    async fn send(&self, request: http::request::Builder, body: &str) -> (u16, String) {
        let cookies: Vec<_> = self
            .cookies
            .borrow()
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let request = request
            .header(HOST, "localhost:8080")
            .header(COOKIE, cookies.join("; "))
            .body(Body::from(body.to_owned()))
            .unwrap();
        let (head, body) = self
            .routes
            .clone()
            .oneshot(request)
            .await
            .unwrap()
            .into_parts();
        for set in head.headers.get_all(SET_COOKIE) {
            let (name, rest) = set.to_str().unwrap().split_once('=').unwrap();
            let value = rest.split(';').next().unwrap();
            let mut cookies = self.cookies.borrow_mut();
            cookies.insert(name.to_owned(), value.to_owned());
        }
        let bytes = body.collect().await.unwrap().to_bytes();
        (
            head.status.as_u16(),
            String::from_utf8(bytes.to_vec()).unwrap(),
        )
    }
}

/// The text between two others, after which it stands first.
pub(super) fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let (_, rest) = text
        .split_once(before)
        .unwrap_or_else(|| panic!("{before:?} is not in {text}"));
    rest.split(after).next().unwrap_or_default()
}

/// A number as pages write it.
pub(super) fn number(text: &str) -> u64 {
    text.replace(',', "")
        .parse()
        .unwrap_or_else(|_| panic!("{text:?} is no number"))
}
