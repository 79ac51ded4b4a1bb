//! Invocations over HTTP: a Function URL, or an HTTP API of API Gateway, payload version 2.
//! <https://docs.aws.amazon.com/lambda/latest/dg/urls-invocation.html#urls-payloads>
//! <https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html>
//!
//! An HTTP API decodes the escapes of a path, at least all but that of `%`. Here they are encoded
//! again, but a slash that was escaped cannot be told from a real one, and a question mark ends the
//! path. A query arrives as it was sent.
//!
//! The crate `lambda_http` is not used: it panics on a query that holds a space (Function URLs turn
//! a `+` into one), removes `..` from paths, empties a response whose JSON is not UTF-8, and keeps
//! one of several values of a header.

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response};
use lambda_runtime::{Context, Error, Service};
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_ports::Clock;

use super::invocations::{answer_each, contain_panic};

mod request;
mod response;

use request::UrlRequest;
use response::UrlResponse;

/// Responds to invocations by a Function URL with `router`, one after the other, until the Runtime
/// API is gone. The client of a handler that panics gets a 500.
pub async fn run_http<C: Clock>(router: Router, clock: C) -> Result<(), Error> {
    answer_each(clock, async |request: UrlRequest, _: &Context| {
        Ok(respond(router.clone(), request).await)
    })
    .await
}

async fn respond(router: Router, request: UrlRequest) -> UrlResponse {
    let answer = match request.into_request() {
        Ok(request) => call_router(router, request).await,
        Err(error) => {
            problem_response(ApiProblem::new(ProblemKind::BadRequest).detail(error.to_string()))
        }
    };
    match UrlResponse::read_whole(answer).await {
        Ok(answer) => answer,
        Err(error) => {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "an answer could not be sent"
            );
            UrlResponse::from_response(error.problem().into_response())
        }
    }
}

async fn call_router(mut router: Router, request: Request<Body>) -> Response<Body> {
    let Ok(answer) = contain_panic(async { router.call(request).await }).await else {
        return problem_response(ApiProblem::new(ProblemKind::Internal));
    };
    answer.unwrap_or_else(|never| match never {})
}

fn problem_response(problem: ApiProblem) -> Response<Body> {
    problem.into_response().map(Body::from)
}

#[cfg(test)]
mod tests;
