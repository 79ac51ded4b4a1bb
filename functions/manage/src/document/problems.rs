//! The problems of the routes, for the document.

use std::collections::BTreeMap;

use posthaste_core::api::problem::PROBLEM_CONTENT_TYPE;
use utoipa::openapi::{Content, HeaderBuilder, Ref, RefOr, Response};
use utoipa::{IntoResponses, PartialSchema};

type ResponsesByStatus = BTreeMap<String, RefOr<Response>>;

/// A header that tells producers of back pressure, and its description.
const PRESSURE: (&str, &str) = (
    "Posthaste-Pressure",
    "Only under back pressure: the level, the resource behind it and the seconds that acknowledgements \
     wait or that a refusal asks to wait, such as `medium; resource=submission-queue; delay=15`",
);
/// The header that tells when to try again, and its description.
const RETRY_AFTER: (&str, &str) = ("Retry-After", "Seconds until it is worth another try");

fn problem_responses(all: &[(u16, &str)]) -> ResponsesByStatus {
    all.iter()
        .map(|(status, description)| (status.to_string(), problem_response(description)))
        .collect()
}

fn problem_response(description: &str) -> RefOr<Response> {
    let content = Content::new(Some(Ref::from_schema_name("Problem")));
    let response = Response::builder()
        .description(description)
        .content(PROBLEM_CONTENT_TYPE, content);
    RefOr::T(response.build())
}

macro_rules! problems {
    ($($(#[$doc:meta])* $name:ident: $($status:literal $description:literal),+;)+) => { $(
        $(#[$doc])*
        pub(crate) struct $name;

        impl IntoResponses for $name {
            fn responses() -> ResponsesByStatus {
                problem_responses(&[$(($status, $description)),+])
            }
        }
    )+ };
}

problems! {
    /// Problems of every route that needs the admin key.
    Problems:
        401 "The admin key is missing or wrong",
        429 "`posthaste serve`: too many wrong keys are being answered; try again after `Retry-After`",
        500 "A stored object cannot be used",
        503 "A store does not answer; try again after `Retry-After`";
    /// Problems of every route with a path or query to parse.
    BadRequests:
        400 "The path, query or body cannot be read, or a member cannot be accepted; it is named",
        414 "`posthaste serve`: the path and query have more than 16,384 bytes";
    /// The problem of every route that needs the topic.
    UnknownTopic: 404 "There is no such topic";
    /// The problem of the route of a key.
    UnknownKey: 404 "There is no such topic, or it does not have this key";
    /// The problem of every route that needs the subscription.
    UnknownSubscription: 404 "There is no such topic or subscription";
    /// The problem of a dead letter's route.
    NoObject: 404 "There is no such object";
    /// The problem of a callback.
    NoHandshake: 404 "There is no such handshake, or its time is over";
    /// The problem of a callback beside many wrong ones.
    TooManyGuesses:
        429 "`posthaste serve`: too many wrong keys are being answered; try again after `Retry-After`";
    /// Problems of every action.
    WrongStates:
        409 "The subscription's state does not allow this, or others write it all the time",
        507 "No room is left on the device";
    /// The problem of a replay's routes.
    NoReplay: 404 "There is no such replay";
    /// The problem of the routes of work that resolves or deletes dead letters.
    NoLetterWork: 404 "There is no such work";
    /// Problems of an event that is sent again.
    NoEvent:
        404 "There is no such topic, subscription, event or key",
        410 "The payload of the event is no longer kept";
    /// The problem of an answer that may be too large for Lambda.
    LargeObject: 422 "The object is larger than a Lambda function can answer; read it from its bucket";
    /// The problem of every delete.
    FailedPrecondition: 412 "`If-Match` does not hold";
    /// Problems of every put.
    BadWrites:
        412 "`If-Match` or `If-None-Match` does not hold",
        413 "The body is larger than 1 MiB",
        415 "The body is not `application/json`";
    /// Problems of a request with dead letters of another installation.
    BadImports:
        400 "The body cannot be read, or an object cannot be accepted; it is named, and nothing was written",
        413 "The body is larger than 4.25 MiB",
        415 "The body is not `application/json`",
        507 "No room is left on the device";
    /// Problems of every route that changes a topic's record.
    Unchanged:
        409 "A subscription that was not written cannot accept the change, or others write it all the time",
        507 "No room is left on the device";
    /// Problems of the rotation of a secret.
    FullOfSecrets:
        409 "As many secrets sign as may at once, and one more would end one sooner than its rotation said \
            (`drop` lets it end), or none of them can end for the new one; or others write the topic all the \
            time",
        507 "No room is left on the device";
    /// The problem of the health check.
    StoreDown: 503 "The state store does not answer";
    /// The problem of each route without a key that needs the store, except the health check.
    Unavailable: 503 "A store does not answer, or too many requests are being answered; try again after \
        `Retry-After`";
    /// The problem of each route without a key that needs nothing.
    Crowded: 503 "Too many requests are being answered; try again after `Retry-After`";
    /// Problems of the publish route, without the headers that [`PublishResponses`] adds.
    PublishProblems:
        400 "An event is not as its schema says, and its index and member are named; or `Posthaste-Hops` \
            says that the events went round a loop (`loop-detected`). Nothing was accepted",
        401 "The publish key is missing or wrong, or there is no such topic",
        408 "The body took longer than a minute",
        409 "A request with the same `Idempotency-Key` is still being published; ask again after \
            `Retry-After`",
        413 "The request, or an event in it, is larger than 1,000,000 bytes",
        414 "`posthaste serve`: the path and query have more than 16,384 bytes",
        415 "The topic does not take this content type",
        422 "The `Idempotency-Key` came with another request before",
        429 "Back pressure advises to wait for `Retry-After`; or, `posthaste serve`, too many wrong keys \
            are being answered",
        503 "Back pressure refuses, too many requests are being answered, or a store does not answer; try \
            again after `Retry-After`",
        507 "No room is left on the device";
}

/// Every answer of the publish route, with the headers by which it tells of back pressure.
pub(crate) struct PublishResponses;

impl IntoResponses for PublishResponses {
    fn responses() -> ResponsesByStatus {
        let counts = Content::new(Some(Ref::from_schema_name("PublishAnswer")));
        let accepted = Response::builder()
            .description("Accepted")
            .content("application/json", counts);
        let mut responses = PublishProblems::responses();
        responses.insert("200".to_owned(), RefOr::T(accepted.build()));
        for (status, response) in &mut responses {
            let headers: &[_] = match status.as_str() {
                "200" => &[PRESSURE],
                "409" => &[RETRY_AFTER],
                "429" | "503" => &[PRESSURE, RETRY_AFTER],
                _ => &[],
            };
            add_headers(response, headers);
        }
        responses
    }
}

fn add_headers(response: &mut RefOr<Response>, headers: &[(&str, &str)]) {
    let RefOr::T(response) = response else { return };
    for (name, description) in headers {
        let header = HeaderBuilder::new()
            .schema(Some(String::schema()))
            .description(Some(*description));
        response
            .headers
            .insert((*name).to_owned(), RefOr::T(header.build()));
    }
}
