//! The OpenAPI document: what the handlers' attributes say, and around it the publish route, the keys and the problems.

mod nowhere;
mod problems;

use std::sync::LazyLock;

use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use posthaste_core::problem::ProblemBody;
use utoipa::openapi::OpenApi as Document;
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityRequirement, SecurityScheme,
};
use utoipa::{OpenApi, PartialSchema};

use self::nowhere::Nowhere;
use self::problems::Publish;
pub(crate) use self::problems::{
    BadRequests, BadWrites, FailedPrecondition, FullOfSecrets, LargeObject, NoHandshake, NoObject, NoReplay,
    Problems, StoreDown, Unchanged, UnknownKey, UnknownSubscription, UnknownTopic, WrongStates,
};
use crate::{guarded_routes, open_routes};

/// The name of the admin key among the security schemes.
const ADMIN_KEY: &str = "adminKey";

/// The name of a topic's publish key among the security schemes.
const PUBLISH_KEY: &str = "publishKey";

/// The path of a dead letter as axum writes it, and as OpenAPI does: it knows no parameter with slashes.
const WILDCARD_PATH: [&str; 2] = ["/dead-letters/{*key}", "/dead-letters/{key}"];

/// What stands around the routes of this function.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "posthaste",
        description = "Webhook delivery: topics take events from producers, subscriptions bring them to endpoints. \
            Errors are problem details (RFC 9457)."
    ),
    paths(publish_events)
)]
struct Around;

/// Publish events
///
/// All of them or none. 200 means that the delivery to every matching subscription is durable. `Authorization: Bearer`
/// with a publish key is accepted too, as is a shared access signature in `aeg-sas-token`; `api-version` in the query is
/// ignored. Where the topic is shown with an
/// `endpoint`, that is the URL to post to.
#[utoipa::path(post, path = "/topics/{topic}/events", tag = "publish", security(("publishKey" = [])),
    params(("topic" = String, Path, description = "The topic's name, in any case"),
        ("Idempotency-Key" = Option<String>, Header, description = "A name for this request, 1 to 255 visible ASCII \
            characters: sent again within 24 hours it is not published again. Another request of the same name is \
            refused (422), and so is one while the first is still being published (409)."),
        ("Posthaste-Time-To-Live" = Option<String>, Header, description = "How long the events of this request live, \
            from when they are accepted: an ISO 8601 duration such as `PT10M`. An event's own `expirytime`, the \
            subscription's and the topic's time to live bound it."),
        ("Posthaste-Tier" = Option<String>, Header, description = "The tier of producers to be treated as: `bulk`, or \
            `standard` with a key of the tier `internal`. A producer can step back behind the tier of its key; what would \
            raise it changes nothing.")),
    request_body(description = "Events in the topic's input schema: one or a batch of CloudEvents 1.0, a CloudEvent in \
        binary mode with `ce-*` headers, or Event Grid events. At most 1,000,000 bytes.", content(
        (serde_json::Value = "application/cloudevents+json"),
        (Vec<serde_json::Value> = "application/cloudevents-batch+json"),
        (Vec<serde_json::Value> = "application/json"))),
    responses(Publish))]
#[expect(dead_code, reason = "described here, served by the publish function")]
fn publish_events() {}

/// The OpenAPI 3.1 document of the whole HTTP API.
pub fn openapi() -> Document {
    let guarded = guarded_routes::<Nowhere, Nowhere, Nowhere, Nowhere, Nowhere>().into_openapi();
    let open = open_routes::<Nowhere, Nowhere, Nowhere, Nowhere, Nowhere>().into_openapi();
    let mut document = Around::openapi().merge_from(guarded).merge_from(open);
    let components = document.components.get_or_insert_default();
    components.schemas.insert("Problem".to_owned(), ProblemBody::schema());
    let admin_key = Http::builder().scheme(HttpAuthScheme::Bearer).description(Some("The admin key")).build();
    components.add_security_scheme(ADMIN_KEY, SecurityScheme::Http(admin_key));
    let publish_key = ApiKeyValue::with_description("aeg-sas-key", "One of the topic's publish keys");
    components.add_security_scheme(PUBLISH_KEY, SecurityScheme::ApiKey(ApiKey::Header(publish_key)));
    document.security = Some(vec![SecurityRequirement::new(ADMIN_KEY, [""; 0])]);
    let [axum_path, openapi_path] = WILDCARD_PATH;
    if let Some(item) = document.paths.paths.remove(axum_path) {
        document.paths.paths.insert(openapi_path.to_owned(), item);
    }
    document
}

/// Show this document
///
/// Needs no key.
#[utoipa::path(get, path = "/openapi.json", tag = "status", security(()),
    responses((status = 200, description = "The OpenAPI document", body = serde_json::Value)))]
pub(crate) async fn openapi_json() -> Response {
    static JSON: LazyLock<Bytes> = LazyLock::new(|| {
        // The document is plain data with text keys: serialising it cannot fail.
        Bytes::from(openapi().to_json().unwrap_or_default())
    });
    ([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], JSON.clone()).into_response()
}
