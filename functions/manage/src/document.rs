//! The OpenAPI document: the routes of this function, the publish route, the keys and the problems.

mod events;
mod problems;

use posthaste_core::api::problem::{ProblemBody, ProblemError};
use posthaste_core::api::{HealthView, PublishResponse};
use utoipa::openapi::schema::AnyOf;
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::{OpenApi as Document, RefOr, Schema};
use utoipa::{OpenApi, PartialSchema as _, ToSchema};

use self::events::PublishBody;
use self::problems::PublishResponses;
pub(crate) use self::problems::{
    BadImports, BadRequests, BadWrites, Crowded, FailedPrecondition, FullOfSecrets, LargeObject,
    NoEvent, NoHandshake, NoLetterWork, NoObject, NoReplay, Problems, StoreDown, TooManyGuesses,
    Unavailable, Unchanged, UnknownKey, UnknownSubscription, UnknownTopic, WrongStates,
};

/// The name of the admin key among the security schemes.
const ADMIN_KEY: &str = "adminKey";

/// The path of a dead letter as axum writes it, and as OpenAPI does, which has no parameters with
/// slashes.
const WILDCARD_PATH: [&str; 2] = ["/dead-letters/{*key}", "/dead-letters/{key}"];

/// The document without the routes of this function.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "posthaste",
        description = "Webhook delivery: topics take events from producers, subscriptions bring them to \
            endpoints. Errors are problem details (RFC 9457)."
    ),
    paths(publish_events, metrics, livez, readyz, version),
    components(schemas(PublishResponse))
)]
struct BaseDocument;

/// Publish events
///
/// All of them or none. 200 means that the delivery to every matching subscription is durable; the
/// answer counts the events and the subscriptions. An event that no subscription matches is
/// accepted too, and goes nowhere. A topic of CloudEvents also takes
/// `application/cloudevents+json`, `application/cloudevents-batch+json` and the binary mode with
/// `ce-` headers. `api-version` in the query is ignored. Where the topic is shown with an
/// `endpoint`, that is the URL to post to.
#[utoipa::path(post, path = "/topics/{topic}/events", tag = "publish",
    security(("publishKey" = []), ("publishBearer" = []), ("publishToken" = [])),
    params(("topic" = String, Path, description = "The topic's name, in any case"),
        ("Idempotency-Key" = Option<String>, Header, description = "A name for this request, 1 to 255 \
            visible ASCII characters: sent again within 24 hours it is not published again, and gets the \
            answer of the first time. Another request of the same name is refused (422), and so is one \
            while the first is still being published (409)."),
        ("Posthaste-Time-To-Live" = Option<String>, Header, description = "How long the events of this \
            request live, from when they are accepted: an ISO 8601 duration such as `PT10M`. An event's own \
            `expirytime`, the subscription's and the topic's time to live bound it."),
        ("Posthaste-Not-Before" = Option<String>, Header, description = "The time before which the events of \
            this request are not sent, such as `2026-12-01T08:00:00Z`, at most 30 days ahead. They go out in \
            the minute after it, and their time to live counts from it. In a topic with a \
            `notBeforeAttribute` an event's own time comes first. `DELETE /topics/{topic}/events/{id}` takes \
            an event back until then."),
        ("Posthaste-Hops" = Option<u8>, Header, description = "How many deliveries of posthaste these events \
            came through, as the delivery that brought them says it. 8 and more are refused (400, \
            `loop-detected`)."),
        ("Webhook-Hops" = Option<u8>, Header, description = "The same of deliveries in a sender's own name \
            (`senderHeaders`). The greater of the two counts."),
        ("Posthaste-Tier" = Option<String>, Header, description = "The tier of producers to be treated as: \
            `bulk`, or `standard` with a key of the tier `internal`. A producer can step back behind the \
            tier of its key; what would raise it changes nothing.")),
    request_body(description =
        "One event, or an array of events, in the topic's input schema. At most 1,000,000 bytes, \
        also once it is unpacked where `Content-Encoding` is `gzip`.",
        content((PublishBody = "application/json"))),
    responses(PublishResponses))]
#[expect(dead_code, reason = "described here, served by the publish function")]
fn publish_events() {}

/// Show the metrics
///
/// In Prometheus' text format, or as `OpenMetrics` where `Accept` asks for it. Answered by
/// `posthaste serve`; on AWS the metrics are in CloudWatch.
/// Needs no key.
#[utoipa::path(get, path = "/metrics", tag = "status", security(()),
    responses((status = 200, description = "The metrics", body = String, content_type = "text/plain")))]
#[expect(dead_code, reason = "described here, served by the process")]
fn metrics() {}

/// Ask whether the process lives
///
/// Answered by `posthaste serve` while it can answer at all. Needs no key.
#[utoipa::path(get, path = "/livez", tag = "status", security(()),
    responses((status = 200, description = "The process lives", body = HealthView)))]
#[expect(dead_code, reason = "described here, served by the process")]
fn livez() {}

/// Ask whether requests should be sent here
///
/// Answered by `posthaste serve`: 503 until its files are applied, and from the signal to end on.
/// Needs no key.
#[utoipa::path(get, path = "/readyz", tag = "status", security(()),
    responses((status = 200, description = "It takes requests", body = HealthView), StoreDown))]
#[expect(dead_code, reason = "described here, served by the process")]
fn readyz() {}

/// Show the version
///
/// Of the `posthaste serve` that answers. Needs no key.
#[utoipa::path(get, path = "/version", tag = "status", security(()),
    responses((status = 200, description = "The program", body = VersionView)))]
#[expect(dead_code, reason = "described here, served by the process")]
fn version() {}

/// The program that answers.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described here, served by the process")]
struct VersionView {
    /// The version of the release.
    #[schema(example = "0.2.0")]
    version: String,
    /// The commit of the source, where the build knew it.
    commit: Option<String>,
    /// The operating system that it was built for.
    #[schema(example = "linux")]
    os: String,
    /// The processor that it was built for.
    #[schema(example = "x86_64")]
    architecture: String,
}

/// The document of the whole HTTP API; `routes` are those of this function.
pub(crate) fn describe_api(routes: [Document; 2]) -> Document {
    let mut document = routes
        .into_iter()
        .fold(BaseDocument::openapi(), Document::merge_from);
    let components = document.components.get_or_insert_default();
    components
        .schemas
        .insert("Problem".to_owned(), ProblemBody::schema());
    components
        .schemas
        .insert("ProblemError".to_owned(), ProblemError::schema());
    // A CloudEvent is a custom event too, so more than one form may fit.
    if let Some(RefOr::T(Schema::OneOf(forms))) = components.schemas.remove("PublishBody") {
        let forms = AnyOf {
            items: forms.items,
            description: forms.description,
            ..AnyOf::default()
        };
        components
            .schemas
            .insert("PublishBody".to_owned(), RefOr::T(Schema::AnyOf(forms)));
    }
    for (name, scheme) in security_schemes() {
        components.add_security_scheme(name, scheme);
    }
    document.security = Some(vec![SecurityRequirement::new(ADMIN_KEY, [""; 0])]);
    let [axum_path, openapi_path] = WILDCARD_PATH;
    if let Some(item) = document.paths.paths.remove(axum_path) {
        document.paths.paths.insert(openapi_path.to_owned(), item);
    }
    document
}

fn security_schemes() -> [(&'static str, SecurityScheme); 4] {
    let token = "A shared access signature that was made with one of the topic's publish keys";
    [
        (ADMIN_KEY, bearer_scheme("The admin key")),
        (
            "publishKey",
            header_scheme("aeg-sas-key", "One of the topic's publish keys"),
        ),
        (
            "publishBearer",
            bearer_scheme("One of the topic's publish keys"),
        ),
        ("publishToken", header_scheme("aeg-sas-token", token)),
    ]
}

fn bearer_scheme(description: &str) -> SecurityScheme {
    let http = Http::builder()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some(description));
    SecurityScheme::Http(http.build())
}

fn header_scheme(name: &str, description: &str) -> SecurityScheme {
    let key = ApiKeyValue::with_description(name, description);
    SecurityScheme::ApiKey(ApiKey::Header(key))
}
