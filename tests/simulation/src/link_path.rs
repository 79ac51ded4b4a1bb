//! Subscriptions at paths of one host and port, each of which behaves in its own way.

use std::time::Duration;

use posthaste_core::model::SendFailure;
use serde_json::{Value, json};

use crate::endpoint::Answer;

/// Time for which a path that hangs keeps a request.
const FOREVER: Duration = Duration::from_hours(24);

/// The time of an answer of a slow path.
const SLOW: Duration = Duration::from_secs(10);

/// A subscription at a path of its own.
#[derive(Debug, Clone)]
pub struct LinkPath {
    /// The topic and the name of the subscription: `orders.billing`.
    place: String,
    /// The answers there; `None` for those of the script.
    answer: Option<Answer>,
    /// The settings of the subscription beside the endpoint.
    settings: Value,
}

impl LinkPath {
    /// A subscription, `orders.billing`, that answers as the script says.
    pub fn scripted(place: &str) -> Self {
        Self {
            place: place.to_owned(),
            answer: None,
            settings: json!({}),
        }
    }

    /// One that answers in this way.
    pub fn new(place: &str, answer: Answer) -> Self {
        Self {
            answer: Some(answer),
            ..Self::scripted(place)
        }
    }

    /// One that answers at once.
    pub fn healthy(place: &str) -> Self {
        Self::new(place, Answer::Status(204))
    }

    /// One that never answers.
    pub fn hanging(place: &str) -> Self {
        Self::new(place, Answer::Late(FOREVER, 204))
    }

    /// One that closes the connection after each request.
    pub fn crashing(place: &str) -> Self {
        Self::new(place, Answer::Failure(SendFailure::Closed))
    }

    /// One that accepts every event, after ten seconds.
    pub fn slow(place: &str) -> Self {
        Self::new(place, Answer::Late(SLOW, 204))
    }

    /// One whose gateway refuses every event.
    pub fn refusing(place: &str) -> Self {
        Self::new(place, Answer::Status(401))
    }

    /// The same, with these settings beside its endpoint.
    #[must_use]
    pub fn with(self, settings: Value) -> Self {
        Self { settings, ..self }
    }

    /// The topic and the name of the subscription: `orders.billing`.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The path of its endpoint, which no other's has in it.
    pub fn url_path(&self) -> String {
        format!("/{}/", self.place)
    }

    /// The answers there; `None` for those of the script.
    pub(crate) fn answer(&self) -> Option<Answer> {
        self.answer.clone()
    }

    /// The settings of the subscription beside the endpoint.
    pub(crate) fn settings(&self) -> &Value {
        &self.settings
    }
}
