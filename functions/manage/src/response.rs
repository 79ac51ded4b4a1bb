//! JSON answers with their version.

use axum::Json;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, ETAG, HeaderName, HeaderValue, LOCATION};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// A JSON answer that nobody may keep: some of it is secret.
#[derive(Debug)]
pub(crate) struct JsonResponse<T> {
    status: StatusCode,
    /// The version or the place of the resource.
    header: Option<(HeaderName, String)>,
    body: T,
}

impl<T> JsonResponse<T> {
    /// A 200 without a version.
    pub(crate) fn new(body: T) -> Self {
        Self { status: StatusCode::OK, header: None, body }
    }

    /// A 200 with the version, quoted.
    pub(crate) fn versioned(body: T, etag: String) -> Self {
        Self { header: Some((ETAG, etag)), ..Self::new(body) }
    }

    /// The answer to a put: 201 where it created the resource.
    pub(crate) fn put(body: T, etag: String, is_new: bool) -> Self {
        let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
        Self { status, ..Self::versioned(body, etag) }
    }

    /// A 202 with the place where the progress is shown.
    pub(crate) fn accepted(body: T, location: String) -> Self {
        Self { status: StatusCode::ACCEPTED, header: Some((LOCATION, location)), body }
    }
}

impl<T: Serialize> IntoResponse for JsonResponse<T> {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body)).into_response();
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some((name, value)) = self.header
            && let Ok(value) = HeaderValue::try_from(value)
        {
            headers.insert(name, value);
        }
        response
    }
}
