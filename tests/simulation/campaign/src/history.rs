//! What was asked of an installation, and what its endpoints saw of it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use posthaste_core::model::Timestamp;
use posthaste_simulation::Request;
use serde_json::Value;

/// What happened in a run, as those outside saw it.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// The events that were published, by id, in order.
    pub(crate) events: BTreeMap<String, PublishedEvent>,
    /// The requests to endpoints, in order.
    pub(crate) seen: Vec<Seen>,
    /// The number of times that processes were ended and begun.
    pub(crate) restarts: u64,
    /// The faults that happened.
    pub(crate) faults: u64,
    /// The subscriptions, by name, for which events were sent again by hand.
    pub(crate) sent_again: BTreeSet<String>,
}

/// An event as its producer knows it.
#[derive(Debug, Clone)]
pub(crate) struct PublishedEvent {
    /// The time of the request.
    pub(crate) at: Timestamp,
    /// Whether the request was answered with 200. Otherwise the event may arrive, or not.
    pub(crate) is_accepted: bool,
    /// The subscriptions that want it.
    pub(crate) wanted_by: BTreeSet<String>,
    /// The time before which it is not sent.
    pub(crate) not_before: Option<Timestamp>,
    /// Its own time to live.
    pub(crate) time_to_live: Option<Duration>,
    /// Whether its producer asked to take it back.
    pub(crate) is_cancelled: bool,
}

/// A request that an endpoint saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) at: Timestamp,
    pub(crate) subscription: String,
    pub(crate) ids: Vec<String>,
    pub(crate) webhook_id: String,
    pub(crate) is_replayed: bool,
    /// Whether it was answered with success.
    pub(crate) is_taken: bool,
}

impl Seen {
    /// Reads a request. `takes_events` says whether the endpoint of a subscription takes events.
    pub(crate) fn read(request: &Request, takes_events: impl Fn(&str) -> bool) -> Self {
        let path = request.url.split('/').nth(3).unwrap_or_default();
        let spare = path.strip_prefix("spare-");
        let subscription = spare.unwrap_or(path).to_owned();
        let header = |name: &str| {
            let value = request.headers.get(name);
            let value = value.and_then(|value| value.to_str().ok());
            value.unwrap_or_default().to_owned()
        };
        let body: Value = serde_json::from_str(&request.body).unwrap_or_default();
        let events = body.as_array().map_or_else(|| vec![body.clone()], Vec::clone);
        let ids = events.iter().filter_map(|event| event["id"].as_str());
        Self {
            at: request.at,
            // The spare endpoints are always well.
            is_taken: spare.is_some() || takes_events(&subscription),
            subscription,
            ids: ids.map(str::to_owned).collect(),
            webhook_id: header("webhook-id"),
            is_replayed: header("posthaste-replayed") == "true",
        }
    }
}

impl History {
    /// Whether something went wrong by which a request may come again.
    pub(crate) fn has_troubles(&self) -> bool {
        self.restarts + self.faults > 0
    }
}
