//! The frame of a page, and the headers of every response.

use axum::body::Body;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::response::Response;

use crate::page::{ConsolePage, PageFrame};

/// The policy of a page: it shows its own styles and images, runs its own script, and asks its own
/// server. There is no inline script, no frame, and no form that goes elsewhere.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; \
    connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Puts the page of a response into its frame, and adds the headers that every response has.
pub(super) fn framed_response(mut response: Response, frame: Option<&PageFrame>) -> Response {
    if let Some(page) = response.extensions_mut().remove::<ConsolePage>() {
        *response.body_mut() = Body::from(page.render(frame));
        response.headers_mut().insert(
            "content-type",
            HeaderValue::from_static("text/html; charset=utf-8"),
        );
    }
    let headers: [(HeaderName, &'static str); 6] = [
        (CACHE_CONTROL, "no-store"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "same-origin"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
    ];
    response
        .headers_mut()
        .extend(headers.map(|(name, value)| (name, HeaderValue::from_static(value))));
    response
}
