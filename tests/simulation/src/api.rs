//! The management API as its clients see it.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use http::Request;
use http::header::CONTENT_TYPE;
use http_body_util::BodyExt;
use posthaste_manage::{Manage, unguarded_router};
use posthaste_ports::Ports;
use serde_json::Value;
use tower::ServiceExt;

/// The router of manage, behind its guard. Clones share it.
#[derive(Debug, Clone)]
pub struct Api(Router);

impl Api {
    /// The API of one instance of manage.
    pub fn over<P: Ports>(manage: Arc<Manage<P>>) -> Self {
        Self(unguarded_router(manage))
    }

    /// Returns the routes of the API, for the console.
    pub fn routes(&self) -> Router {
        self.0.clone()
    }

    /// Sends a request, and answers its status and its JSON; null for an answer that is none.
    pub async fn ask(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() {
            Body::empty()
        } else {
            Body::from(body.to_string())
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(CONTENT_TYPE, "application/json")
            .body(body)
            .expect("a request");
        let response = match self.0.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await.expect("a body");
        let json = serde_json::from_slice(&bytes.to_bytes()).unwrap_or_default();
        (status, json)
    }
}
