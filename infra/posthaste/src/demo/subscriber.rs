//! The demo's subscribers: small HTTP servers on loopback that answer as their part says, verify
//! the signature of every request, and report what they saw.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use bytes::Bytes;
use parking_lot::Mutex;
use posthaste_core::model::SigningSecret;
use posthaste_ports::Clock;
use posthaste_system::SystemClock;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::signature::verify_signature;

/// Answers of a subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SubscriberBehavior {
    /// 200, always.
    Healthy,
    /// 503 to the first two attempts of every event, then 200.
    Recovers,
    /// 400, always: it does not want the event.
    Rejects,
    /// 503, always.
    Down,
}

/// One request to a subscriber.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReceivedWebhook {
    pub subscription: &'static str,
    /// The event's id.
    pub event: String,
    /// The event's type.
    pub event_type: String,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// The subscriber's answer.
    pub answer: u16,
    /// True if the signature is right.
    pub is_signed: bool,
}

/// A subscriber that listens.
#[derive(Debug, Clone)]
pub(super) struct DemoSubscriber {
    /// The URL of the server.
    pub url: String,
    shared: Arc<SubscriberState>,
}

#[derive(Debug)]
struct SubscriberState {
    subscription: &'static str,
    part: SubscriberBehavior,
    secret: OnceLock<SigningSecret>,
    tries: Mutex<HashMap<String, u32>>,
    story: mpsc::UnboundedSender<ReceivedWebhook>,
}

impl DemoSubscriber {
    /// Starts a subscriber on a free port of loopback. It ends with the runtime.
    pub(super) async fn start(
        subscription: &'static str,
        part: SubscriberBehavior,
        story: mpsc::UnboundedSender<ReceivedWebhook>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
        let url = format!("http://{}/hooks/{subscription}", listener.local_addr()?);
        let shared = Arc::new(SubscriberState {
            subscription,
            part,
            secret: OnceLock::new(),
            tries: Mutex::default(),
            story,
        });
        let router = Router::new()
            .route("/hooks/{name}", post(receive_webhook))
            .with_state(Arc::clone(&shared));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { url, shared })
    }

    /// Gives the subscriber the secret its subscription got, so that it can verify.
    pub(super) fn set_secret(&self, secret: SigningSecret) {
        // A second secret for one subscription would be a fault of the demo. The first one stays,
        // and shows it.
        let _ = self.shared.secret.set(secret);
    }
}

async fn receive_webhook(
    State(shared): State<Arc<SubscriberState>>,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    let (event, event_type) = id_and_type(&body);
    let attempt = shared.count_attempt(&event);
    let answer = match shared.part {
        SubscriberBehavior::Healthy => StatusCode::OK,
        SubscriberBehavior::Recovers if attempt > 2 => StatusCode::OK,
        SubscriberBehavior::Recovers | SubscriberBehavior::Down => StatusCode::SERVICE_UNAVAILABLE,
        SubscriberBehavior::Rejects => StatusCode::BAD_REQUEST,
    };
    let seen = ReceivedWebhook {
        subscription: shared.subscription,
        event,
        event_type,
        attempt,
        answer: answer.as_u16(),
        is_signed: shared.is_signed(&headers, &body),
    };
    // The receiver is gone once the demo is over.
    let _ = shared.story.send(seen);
    answer
}

impl SubscriberState {
    fn count_attempt(&self, event: &str) -> u32 {
        let mut tries = self.tries.lock();
        let count = tries.entry(event.to_owned()).or_default();
        *count += 1;
        *count
    }

    fn is_signed(&self, headers: &HeaderMap, body: &Bytes) -> bool {
        let secret = self.secret.get();
        secret.is_some_and(|it| {
            verify_signature(std::slice::from_ref(it), headers, body, SystemClock.now()).is_ok()
        })
    }
}

/// The id and type of the event in a request: a CloudEvent, or an array of one Event Grid event.
fn id_and_type(body: &[u8]) -> (String, String) {
    let json: Value = serde_json::from_slice(body).unwrap_or_default();
    let event = json.get(0).unwrap_or(&json);
    let text = |member: &str| event.get(member).and_then(Value::as_str).map(str::to_owned);
    let event_type = text("type").or_else(|| text("eventType"));
    (
        text("id").unwrap_or_default(),
        event_type.unwrap_or_default(),
    )
}
