//! The `webhook-id` of an event that travels alone.

/// The beginning of every `webhook-id` that posthaste makes.
pub(crate) const WEBHOOK_ID_PREFIX: &str = "msg_";

/// The id of a request with one event of this key.
pub fn webhook_id_of(key: &str) -> String {
    format!("{WEBHOOK_ID_PREFIX}{key}")
}
