//! The console over the API, through its router, as a browser without JavaScript sees it.

mod access;
mod audit;
mod dead_letters;
mod edit_subscription;
mod event;
mod events;
mod failing;
mod logged;
mod lost_forms;
mod overview;
mod pressure;
mod replays;
mod search;
mod sessions;
mod settings;
mod sizes;
mod subscription;
mod topic;
mod topics;
mod words;
mod work;

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{COOKIE, HOST, LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use axum::response::IntoResponse;
use http_body_util::BodyExt;
use parking_lot::Mutex;
use posthaste_core::circuit::{self, HealthSettings, Observation, RequestFailure};
use posthaste_core::model::{
    AddressPolicy, DeliveryLogMode, KeyDigest, OutcomeName, PublishUrls, SenderHeaders, Timestamp,
};
use posthaste_core::stored::TopicRecord;
use posthaste_manage::{
    BegunRequests, DeliveryLog, LogSettings, Manage, ManageSettings, RequestCaches, SummaryStore,
    unguarded_router,
};
use posthaste_ports::Clock;
use posthaste_services::{ActivityNotes, LinkHealth};
use posthaste_testkit::memory::{MemoryQueue, MemoryStore};
use posthaste_testkit::{ManualClock, MemoryEndpoint, SeededEntropy, TestPorts};
use serde_json::Value;
use tower::ServiceExt;
use url::form_urlencoded;

use crate::api::{ManageApi, RequestTarget};
use crate::{ConsoleState, VisitorAccess, router};

pub(crate) const ADMIN_KEY: &str = "the-admin-key-of-tests";

/// An installation, and a browser that looks at its console.
pub(crate) struct World {
    pub(crate) state: MemoryStore,
    pub(crate) dead_letters: MemoryStore,
    pub(crate) log: MemoryStore,
    pub(crate) endpoint: MemoryEndpoint,
    pub(crate) clock: ManualClock,
    pub(crate) api: ManageApi,
    api_routes: axum::Router,
    router: axum::Router,
    host: &'static str,
    cookies: Mutex<Vec<(String, String)>>,
}

/// A page as it came.
#[derive(Debug)]
pub(crate) struct ShownPage {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) html: String,
}

impl World {
    /// An empty installation, without a signed-in visitor.
    pub(crate) fn new() -> Self {
        Self::at("localhost:8080")
    }

    /// An empty installation of this address.
    pub(crate) fn at(host: &'static str) -> Self {
        let clock = ManualClock::new(Timestamp::from_millis(1_700_000_000_000));
        let [state, dead_letters, log] = [(); 3].map(|()| MemoryStore::default());
        let endpoint = MemoryEndpoint::default();
        let entropy = SeededEntropy::new(1);
        let admin_key = KeyDigest::for_key(ADMIN_KEY);
        let manage = Manage::<TestPorts<MemoryQueue, MemoryStore>> {
            links: LinkHealth::new(state.clone(), clock.clone(), HealthSettings::default()),
            state: state.clone(),
            dead_letters: dead_letters.clone(),
            log: DeliveryLog::with_summaries(log.clone(), SummaryStore::in_log(log.clone())),
            deliveries: MemoryQueue::default(),
            slow_deliveries: Some(MemoryQueue::default()),
            webhooks: endpoint.clone(),
            clock: clock.clone(),
            entropy: entropy.clone(),
            admin_key: admin_key.clone(),
            wrong_keys: posthaste_services::WrongKeys::default(),
            activity: ActivityNotes::default(),
            address_policy: AddressPolicy::default(),
            examiner: None,
            own_publish_urls: PublishUrls::default(),
            settings: ManageSettings {
                publish_url: None,
                public_url: None,
                origin: HeaderValue::from_static("posthaste.example"),
                sender_headers: SenderHeaders::default(),
                notices_topic: None,
                log: LogSettings {
                    mode: DeliveryLogMode::Payloads,
                    retention: Some(Duration::from_hours(7 * 24)),
                    delay: Duration::from_secs(5),
                    gaps: Vec::new(),
                },
            },
            work: BegunRequests::default(),
            caches: RequestCaches::default(),
        };
        let api = unguarded_router(Arc::new(manage));
        let access = VisitorAccess::new(state.clone(), clock.clone(), entropy, admin_key)
            .slowing_wrong_keys();
        let router = router(Arc::new(access), ConsoleState::new(api.clone()));
        let api_routes = api.clone();
        let api = ManageApi::new(api);
        let cookies = Mutex::default();
        Self {
            state,
            dead_letters,
            log,
            endpoint,
            clock,
            api,
            api_routes,
            router,
            host,
            cookies,
        }
    }

    /// The same with another console, and without a signed-in visitor.
    pub(crate) fn changed(self, change: impl FnOnce(ConsoleState, &Self) -> ConsoleState) -> Self {
        let console = change(
            ConsoleState {
                api: self.api.clone(),
                ..ConsoleState::new(axum::Router::new())
            },
            &self,
        );
        let admin_key = KeyDigest::for_key(ADMIN_KEY);
        let access = VisitorAccess::new(
            self.state.clone(),
            self.clock.clone(),
            SeededEntropy::new(2),
            admin_key,
        );
        Self {
            router: router(Arc::new(access), console),
            ..self
        }
    }

    /// The same with an API that responds with 503 to requests of this method.
    pub(crate) fn failing(self, method: Method) -> Self {
        let routes = self.api_routes.clone();
        let answer = move |request: Request<Body>| {
            let fails = request.method() == method;
            let routes = routes.clone();
            async move {
                if fails {
                    StatusCode::SERVICE_UNAVAILABLE.into_response()
                } else {
                    routes.oneshot(request).await.into_response()
                }
            }
        };
        self.changed(|_, _| ConsoleState::new(axum::Router::new().fallback(answer)))
    }

    /// An installation with a visitor who is signed in.
    pub(crate) async fn signed_in() -> Self {
        let world = Self::new();
        world.sign_in_well().await;
        world
    }

    /// Signs in.
    pub(crate) async fn sign_in_well(&self) {
        let shown = self.sign_in(ADMIN_KEY).await;
        assert_eq!(shown.status, 303, "{shown:?}");
    }

    /// Lets requests to a link fail until it is down.
    pub(crate) async fn fail_link(&self, link: &str) {
        let last = RequestFailure {
            outcome: OutcomeName::Busy,
            status: Some(503),
        };
        let failing = Observation::Failing {
            failures: 10,
            last,
            began: self.clock.now(),
        };
        let links = LinkHealth::new(
            self.state.clone(),
            self.clock.clone(),
            HealthSettings::default(),
        );
        links
            .observe(&[(circuit::DeliveryTarget::parse(link).unwrap(), failing)])
            .await
            .unwrap();
    }

    /// Signs in with this key.
    pub(crate) async fn sign_in(&self, key: &str) -> ShownPage {
        let page = self.get("/console/sign-in").await;
        let fields = [("key", key)];
        let sent = self.send_form(&page, "/console/sign-in", &fields);
        // The response to a wrong key waits.
        let pauses = async {
            while self.clock.advance_to_next().is_some() {
                tokio::task::yield_now().await;
            }
        };
        tokio::join!(biased; sent, pauses).0
    }

    /// Leaves of a topic what stays of it until its deletion is complete.
    pub(crate) fn leave_tombstone(&self, topic: &str) {
        let key = format!("topics/{topic}.json");
        let (_, bytes) = self.state.objects_under(&key).remove(0);
        let tombstone = TopicRecord::parse(&bytes)
            .unwrap()
            .into_tombstone(self.clock.now());
        self.state.write(&key, tombstone.render());
    }

    /// Creates something by the API.
    pub(crate) async fn put(&self, parts: &[&str], body: Value) {
        let put = self
            .api
            .send_json::<Value>(Method::PUT, RequestTarget::new(parts), None, &body)
            .await;
        put.unwrap();
    }

    /// Asks for a page.
    pub(crate) async fn get(&self, url: &str) -> ShownPage {
        self.send(Request::get(url).body(Body::empty()).unwrap())
            .await
    }

    /// Looks at a page, fills in the form that is sent to `action`, and sends it.
    pub(crate) async fn post(
        &self,
        page: &str,
        action: &str,
        fields: &[(&str, &str)],
    ) -> ShownPage {
        let shown = self.get(page).await;
        assert!(
            shown.html.contains(&format!("action=\"{action}\"")),
            "no form for {action} in {}",
            shown.html
        );
        self.send_form(&shown, action, fields).await
    }

    /// Sends a form with the token of a page.
    pub(crate) async fn send_form(
        &self,
        page: &ShownPage,
        action: &str,
        fields: &[(&str, &str)],
    ) -> ShownPage {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("form", page.form_token())
            .extend_pairs(fields);
        let request =
            Request::post(action).header("content-type", "application/x-www-form-urlencoded");
        self.send(request.body(Body::from(form.finish())).unwrap())
            .await
    }

    /// Sends a request as the browser would, and keeps the cookies that come back.
    pub(crate) async fn send(&self, request: Request<Body>) -> ShownPage {
        self.send_to(self.host, request).await
    }

    /// Sends a request to another host of the same program.
    pub(crate) async fn send_to(
        &self,
        host: &'static str,
        mut request: Request<Body>,
    ) -> ShownPage {
        let cookies = self
            .cookies
            .lock()
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect::<Vec<_>>();
        let headers = request.headers_mut();
        headers.insert(HOST, HeaderValue::from_static(host));
        if !cookies.is_empty() {
            headers.insert(COOKIE, HeaderValue::try_from(cookies.join("; ")).unwrap());
        }
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (head, body) = response.into_parts();
        for set in head.headers.get_all(SET_COOKIE) {
            self.keep(set.to_str().unwrap());
        }
        let html = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
        ShownPage {
            status: head.status.as_u16(),
            headers: head.headers,
            html,
        }
    }

    /// Forgets all cookies, as a browser that keeps none.
    pub(crate) fn forget_cookies(&self) {
        self.cookies.lock().clear();
    }

    fn keep(&self, set: &str) {
        let (name, rest) = set.split_once('=').unwrap();
        let value = rest.split(';').next().unwrap();
        let mut cookies = self.cookies.lock();
        cookies.retain(|(known, _)| known != name);
        if !set.contains("Max-Age=0") {
            cookies.push((name.to_owned(), value.to_owned()));
        }
    }
}

impl ShownPage {
    /// The page that a redirect leads to.
    pub(crate) fn location(&self) -> &str {
        self.headers
            .get(LOCATION)
            .map(|location| location.to_str().unwrap())
            .unwrap_or_default()
    }

    /// The page that a redirect after an action leads to, without the action's time.
    pub(crate) fn page_after(&self) -> &str {
        let (page, at) = self.location().split_once("&at=").expect("a time");
        assert!(at.parse::<u64>().is_ok(), "{at}");
        page
    }

    /// Checks that the page has each of these texts.
    #[track_caller]
    pub(crate) fn has(&self, texts: &[&str]) -> &Self {
        assert_eq!(self.status, 200, "{}", self.html);
        for text in texts {
            assert!(
                self.html.contains(text),
                "{text:?} is missing in {}",
                self.html
            );
        }
        self
    }

    /// Checks that the page has none of these texts.
    #[track_caller]
    pub(crate) fn has_not(&self, texts: &[&str]) -> &Self {
        for text in texts {
            assert!(!self.html.contains(text), "{text:?} is in {}", self.html);
        }
        self
    }

    /// The value of a hidden field.
    pub(crate) fn field(&self, name: &str) -> String {
        let (_, rest) = self
            .html
            .split_once(&format!("name=\"{name}\" value=\""))
            .expect("a field");
        unescaped(rest.split('"').next().unwrap())
    }

    /// The text in the page's text area.
    pub(crate) fn text(&self) -> String {
        let (_, rest) = self.html.split_once("<textarea").expect("a text area");
        let (_, rest) = rest.split_once(">\n").unwrap();
        unescaped(rest.split("</textarea>").next().unwrap())
    }

    fn form_token(&self) -> &str {
        let (_, rest) = self
            .html
            .split_once("name=\"form\" value=\"")
            .expect("a form");
        rest.split('"').next().unwrap()
    }
}

fn unescaped(text: &str) -> String {
    text.replace("&quot;", "\"")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}
