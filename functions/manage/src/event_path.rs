//! The path of an event, and its id in the query.

use posthaste_core::api::events::{EncodedId, IdInUrl};
use posthaste_core::model::TopicName;
use serde::Deserialize;
use url::form_urlencoded;

/// The path of an event.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct EventPath {
    /// The topic's name, in any case.
    #[param(value_type = String)]
    pub(crate) topic: TopicName,
    /// The event's id, percent-encoded. Any text where the query has the id.
    pub(crate) id: String,
}

/// The query of a request about one event that is named by its id.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventIdQuery {
    /// The event's id, in place of that of the path: for every id that has other characters than
    /// ASCII letters, digits, `_`, `-` and `.`, which proxies may change in a path.
    id: Option<String>,
    /// The same in base64url: for an id that is too long for a URL in percent-encoding.
    #[param(value_type = Option<String>)]
    id64: Option<EncodedId>,
}

impl EventIdQuery {
    /// The event's id: this, or that of the path.
    pub(crate) fn event_id(self, of_path: String) -> String {
        self.id64.map(|id| id.0).or(self.id).unwrap_or(of_path)
    }
}

/// The path that shows what becomes of the event.
pub(crate) fn event_path(topic: &TopicName, id: &str) -> String {
    let carried = IdInUrl::for_id(id);
    let path = format!("/topics/{topic}/events/{}", carried.path_segment());
    match carried.query_parameter() {
        Some((name, value)) => {
            let value: String = form_urlencoded::byte_serialize(value.as_bytes()).collect();
            format!("{path}?{name}={value}")
        }
        None => path,
    }
}
