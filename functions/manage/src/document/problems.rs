//! The problems that routes may answer, as the document lists them.

use std::collections::BTreeMap;

use posthaste_core::api::problem::PROBLEM_CONTENT_TYPE;
use utoipa::openapi::{Content, HeaderBuilder, Ref, RefOr, Response};
use utoipa::{IntoResponses, PartialSchema};

type Responses = BTreeMap<String, RefOr<Response>>;

/// The headers by which producers hear of back pressure, and what the document says of each.
const PRESSURE: (&str, &str) = (
    "Posthaste-Pressure",
    "Only under back pressure: the level, the resource behind it and the seconds that acknowledgements wait or that a \
        refusal asks to wait, such as `medium; resource=submission-queue; delay=15`",
);
const RETRY_AFTER: (&str, &str) = ("Retry-After", "Seconds until it is worth another try");

fn problems(all: &[(u16, &str)]) -> Responses {
    let one = |(status, description): &(u16, &str)| {
        let content = Content::new(Some(Ref::from_schema_name("Problem")));
        let response = Response::builder().description(*description).content(PROBLEM_CONTENT_TYPE, content);
        (status.to_string(), RefOr::T(response.build()))
    };
    all.iter().map(one).collect()
}

macro_rules! problems {
    ($($(#[$doc:meta])* $name:ident: $($status:literal $description:literal),+;)+) => { $(
        $(#[$doc])*
        pub(crate) struct $name;

        impl IntoResponses for $name {
            fn responses() -> Responses {
                problems(&[$(($status, $description)),+])
            }
        }
    )+ };
}

problems! {
    /// Of every route that needs the admin key.
    Problems:
        401 "The admin key is missing or wrong",
        500 "What is stored cannot be used",
        503 "A store does not answer; try again after `Retry-After`";
    /// Of every route with something to parse in its path or query.
    BadRequests:
        400 "The path, query or body cannot be read, or a member cannot be accepted; it is named",
        414 "`posthaste serve`: the path and query have more than 2,048 bytes";
    /// Of every route that needs the topic.
    UnknownTopic: 404 "There is no such topic";
    /// Of the route of a key.
    UnknownKey: 404 "There is no such topic, or it does not have this key";
    /// Of every route that needs the subscription.
    UnknownSubscription: 404 "There is no such topic or subscription";
    /// Of a dead letter's route.
    NoObject: 404 "There is no such object";
    /// Of a callback.
    NoHandshake: 404 "There is no such handshake, or its time is over";
    /// Of every action.
    WrongStates:
        409 "The subscription's state does not allow this, or others write it all the time",
        507 "No room is left on the device";
    /// Of a replay's routes.
    NoReplay: 404 "There is no such replay";
    /// Of what Lambda may be unable to answer.
    LargeObject: 422 "The object is larger than a Lambda function can answer; read it from its bucket";
    /// Of every delete.
    FailedPrecondition: 412 "`If-Match` does not hold";
    /// Of every put.
    BadWrites:
        412 "`If-Match` or `If-None-Match` does not hold",
        413 "The body is larger than 1 MiB",
        415 "The body is not `application/json`";
    /// Of every route that changes a topic's record.
    Unchanged:
        409 "A subscription that was not written cannot accept the change, or others write it all the time",
        507 "No room is left on the device";
    /// Of the rotation of a secret.
    FullOfSecrets:
        409 "As many secrets sign as may at once, or others write the topic all the time",
        507 "No room is left on the device";
    /// Of the health check.
    StoreDown: 503 "The state store does not answer";
    /// Problems of each route without a key that needs the store, except the health check.
    Unavailable: 503 "A store does not answer, or too many requests are being answered; try again after \
        `Retry-After`";
    /// Problems of each route without a key that needs nothing.
    Crowded: 503 "Too many requests are being answered; try again after `Retry-After`";
    /// Of the publish route, but for what [`Publish`] adds.
    PublishProblems:
        400 "An event is not as its schema says, and its index and member are named; or `Posthaste-Hops` says that the \
            events went round a loop (`loop-detected`). Nothing was accepted",
        401 "The publish key is missing or wrong",
        404 "There is no such topic",
        413 "The request, or an event in it, is larger than 1,000,000 bytes",
        414 "`posthaste serve`: the path and query have more than 2,048 bytes",
        415 "The topic does not take this content type",
        507 "No room is left on the device";
    /// Of a publish request that its producer named.
    PublishNamed:
        409 "A request with the same `Idempotency-Key` is still being published; ask again after \
            `Retry-After`",
        422 "The `Idempotency-Key` came with another request before";
    /// Of the publish route under back pressure.
    PublishPressure:
        429 "Back pressure advises to wait for `Retry-After`",
        503 "Back pressure refuses, too many requests are being answered, or a store does not answer; try again after \
            `Retry-After`";
}

/// Every answer of the publish route, with the headers of those that tell of back pressure.
pub(crate) struct Publish;

impl IntoResponses for Publish {
    fn responses() -> Responses {
        let accepted = with_headers(Response::builder().description("Accepted").build(), &[PRESSURE]);
        let named = PublishNamed::responses().into_iter().map(|(status, response)| match response {
            RefOr::T(response) if status == "409" => (status, with_headers(response, &[RETRY_AFTER])),
            other => (status, other),
        });
        let pressure = PublishPressure::responses().into_iter().map(|(status, response)| match response {
            RefOr::T(response) => (status, with_headers(response, &[PRESSURE, RETRY_AFTER])),
            other @ RefOr::Ref(_) => (status, other),
        });
        let accepted = ("200".to_owned(), accepted);
        PublishProblems::responses().into_iter().chain(named).chain(pressure).chain([accepted]).collect()
    }
}

fn with_headers(mut response: Response, headers: &[(&str, &str)]) -> RefOr<Response> {
    for (name, description) in headers {
        let header = HeaderBuilder::new().schema(Some(String::schema())).description(Some(*description));
        response.headers.insert((*name).to_owned(), RefOr::T(header.build()));
    }
    RefOr::T(response)
}
