//! The public keys of a subscription's `v1a` signatures. Receivers fetch them without a key. So
//! each request reads one object for one subscription, and the answer does not tell what exists.

use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use axum::response::{IntoResponse, Response};
use posthaste_core::api::WebhookKeys;
use posthaste_core::model::{SigningSecret, SubscriptionName, Timestamp, TopicName};
use posthaste_core::stored::TopicRecord;
use posthaste_ports::{Clock, Ports};
use serde::Deserialize;

use crate::answer::ApiError;
use crate::document::{BadRequests, Unavailable};
use crate::extract::Query;
use crate::request_clock::RequestClock;
use crate::topic_records::TopicRecords;

/// Time for which a receiver may keep the answer. A new key signs beside the old one for the
/// overlap of its rotation, a day by default, so a set of this age still verifies. With an overlap
/// of zero, and before a first key, it does not: then receivers refuse deliveries for this time. It
/// is short, because a refusal may be final.
const MAX_AGE: HeaderValue = HeaderValue::from_static("public, max-age=60, must-revalidate");

/// `content-type` of a JSON Web Key Set (RFC 7517 §8.5.2).
const JWK_SET: HeaderValue = HeaderValue::from_static("application/jwk-set+json");

/// The subscription that signs.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeysQuery {
    /// The topic's name, in any case.
    #[param(value_type = String)]
    topic: TopicName,
    /// The subscription's name, in any case: what requests carry as `aeg-subscription-name`.
    #[param(value_type = String)]
    subscription: SubscriptionName,
}

/// Show the public keys that verify a subscription's v1a signatures
///
/// Needs no key. A JSON Web Key Set; empty for a subscription that signs with no `whsk_` key, and
/// for one that does not exist.
#[utoipa::path(get, path = "/.well-known/webhook-keys", tag = "subscriptions", security(()),
    params(KeysQuery),
    responses(
        (status = 200, description = "The keys", body = WebhookKeys,
            content_type = "application/jwk-set+json"),
        BadRequests, Unavailable))]
pub(crate) async fn webhook_keys<P: Ports>(
    State(records): State<TopicRecords<P>>,
    State(clock): State<RequestClock<P>>,
    Query(query): Query<KeysQuery>,
) -> Result<Response, ApiError> {
    let now = clock.now();
    let record = records.load_record(&query.topic).await?;
    let keys = record
        .and_then(|record| subscription_keys(&record, &query.subscription, now))
        .unwrap_or_default();
    // The set is plain data with text keys: serialising it cannot fail.
    let body = serde_json::to_vec(&keys).unwrap_or_default();
    Ok(([(CONTENT_TYPE, JWK_SET), (CACHE_CONTROL, MAX_AGE)], body).into_response())
}

fn subscription_keys(
    record: &TopicRecord,
    name: &SubscriptionName,
    now: Timestamp,
) -> Option<WebhookKeys> {
    let (_, settings) = record.settings.find_subscription(name)?;
    let secrets: Vec<_> = settings
        .signing
        .timed_secrets()
        .filter_map(|(text, _)| SigningSecret::parse(text.expose()).ok())
        .collect();
    Some(WebhookKeys::live_at(&secrets, now))
}
