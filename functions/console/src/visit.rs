//! One visit of a page.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use posthaste_core::model::Timestamp;
use posthaste_core::model::pasted::PastedError;

use crate::page::ConsolePage;
use crate::session::{ConsoleSession, SessionKey};

/// Marks a request that came over TLS to the server itself, among its extensions. Its cookies are
/// kept to https, whatever the name of the host.
#[derive(Debug, Clone, Copy)]
pub struct OverTls;

/// A sign-in that did not work.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SignInMistake {
    WrongKey,
    TooMany,
    /// The page was open for longer than its form is valid, or the form came from elsewhere.
    TooLate,
    /// The key has a character that no key has.
    NoKey(PastedError),
    /// The browser did not send the cookie of the page back.
    NoCookie,
}

/// One visit of a page, as handlers see it.
#[derive(Debug, Clone)]
pub(crate) struct PageVisit {
    /// The time of the request.
    pub(crate) now: Timestamp,
    /// The token that every form of the page carries.
    pub(crate) form_token: String,
    /// The mistake in the form of the sign-in page, if no page of this session sent it.
    pub(crate) form_mistake: Option<SignInMistake>,
    pub(crate) is_signed_in: bool,
    /// Whether cookies are kept to https.
    pub(crate) is_secure: bool,
    pub(crate) session: ConsoleSession,
    /// The key of sessions.
    pub(crate) key: Arc<SessionKey>,
}

impl<S: Sync> FromRequestParts<S> for PageVisit {
    type Rejection = ConsolePage;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ConsolePage> {
        // The guard stands before every page.
        parts
            .extensions
            .get::<Self>()
            .cloned()
            .ok_or_else(|| ConsolePage::bad_request("not signed in"))
    }
}
