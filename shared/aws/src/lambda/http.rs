//! Invocations over HTTP: a Function URL, payload version 2.
//! <https://docs.aws.amazon.com/lambda/latest/dg/urls-invocation.html#urls-payloads>

use std::convert::Infallible;

use axum::Router;
use axum::body::Body;
use lambda_http::{Request, Service, service_fn};
use lambda_runtime::Error;
use posthaste_ports::Clock;

use crate::telemetry;

/// Answers invocations by a Function URL with `router`, one after the other, until the Runtime API is gone.
pub async fn run_http<C: Clock>(router: Router, clock: C) -> Result<(), Error> {
    lambda_http::run(service_fn(move |request: Request| {
        let mut router = router.clone();
        let clock = clock.clone();
        async move {
            let answer = router.call(request.map(Body::new)).await;
            telemetry::flush(clock.now());
            Ok::<_, Infallible>(answer?)
        }
    }))
    .await
}
