//! The demo's subscribers: receivers that answer as their part says, and report what they saw.

use std::collections::HashMap;
use std::io;
use std::slice;
use std::sync::{Arc, OnceLock};

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use parking_lot::Mutex;
use posthaste_cli::receiver::{
    ReceivedRequest, SignatureVerdict, WebhookHost, listen_on, receive_webhooks,
};
use posthaste_core::model::SigningSecret;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::mpsc;

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
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct ReceivedWebhook {
    pub subscription: &'static str,
    /// The event's id.
    pub event: String,
    /// The event's type.
    #[serde(rename = "type")]
    pub event_type: String,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// The subscriber's answer.
    pub answer: u16,
    /// True if the signature is right.
    #[serde(rename = "signatureVerified")]
    pub is_signed: bool,
}

/// A subscriber that listens.
#[derive(Debug)]
pub(super) struct DemoSubscriber {
    /// The URL of the server.
    pub url: String,
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
    ) -> io::Result<Arc<Self>> {
        let listener = listen_on(0).await?;
        let url = format!("http://{}/hooks/{subscription}", listener.local_addr()?);
        let subscriber = Arc::new(Self {
            url,
            subscription,
            part,
            secret: OnceLock::new(),
            tries: Mutex::default(),
            story,
        });
        tokio::spawn(receive_webhooks(listener, Arc::clone(&subscriber)));
        Ok(subscriber)
    }

    /// Gives the subscriber the secret its subscription got, so that it can verify.
    pub(super) fn set_secret(&self, secret: SigningSecret) {
        // A second secret for one subscription would be a fault of the demo. The first one stays,
        // and shows it.
        let _ = self.secret.set(secret);
    }

    fn count_attempt(&self, event: &str) -> u32 {
        let mut tries = self.tries.lock();
        let count = tries.entry(event.to_owned()).or_default();
        *count += 1;
        *count
    }
}

impl WebhookHost for DemoSubscriber {
    fn secrets(&self) -> &[SigningSecret] {
        self.secret.get().map(slice::from_ref).unwrap_or_default()
    }

    async fn answer(&self, request: ReceivedRequest) -> Response {
        let (event, event_type) = id_and_type(&request.body);
        let attempt = self.count_attempt(&event);
        let answer = match self.part {
            SubscriberBehavior::Healthy => StatusCode::OK,
            SubscriberBehavior::Recovers if attempt > 2 => StatusCode::OK,
            SubscriberBehavior::Rejects => StatusCode::BAD_REQUEST,
            SubscriberBehavior::Recovers | SubscriberBehavior::Down => {
                StatusCode::SERVICE_UNAVAILABLE
            }
        };
        let seen = ReceivedWebhook {
            subscription: self.subscription,
            event,
            event_type,
            attempt,
            answer: answer.as_u16(),
            is_signed: request.verdict == SignatureVerdict::Verified,
        };
        // The receiver of the story is gone once the demo is over.
        let _ = self.story.send(seen);
        answer.into_response()
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
