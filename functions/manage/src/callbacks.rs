//! Consent by callback. A handshake gives the endpoint a URL, and any client that calls it
//! consents, even a person's browser. The code in the URL is the key.

use std::sync::Arc;

use axum::extract::{FromRef, State};
use axum::http::{HeaderMap, Method, Uri};
use posthaste_core::api::handshake::called_back;
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::api::{
    AllowedRate, AuditAction, AuditCaller, AuditDoor, PeerAddress, SecretText,
};
use posthaste_core::model::{SubscriptionName, Timestamp, TopicName};
use posthaste_core::stored::TopicRecord;
use posthaste_ports::{Clock, Ports};
use serde::Deserialize;
use url::form_urlencoded;

use crate::answer::ApiError;
use crate::audit::{AuditTrail, RequestCaller};
use crate::document::{BadRequests, NoHandshake, TooManyGuesses, Unavailable, Unchanged};
use crate::extract::Path;
use crate::key_refuser::KeyRefuser;
use crate::manage::Manage;
use crate::topic_writer::TopicWriter;

/// The header of the rate, and the query parameter for clients that cannot set a header.
const ALLOWED_RATE: &str = "WebHook-Allowed-Rate";

/// The answer for the person or program that called.
const THANKS: &str = "The endpoint has consented. Events are delivered from now on.\n";

/// The path of a handshake.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct CallbackPath {
    /// The topic's name.
    #[param(value_type = String)]
    topic: TopicName,
    /// The subscription's name.
    #[param(value_type = String)]
    subscription: SubscriptionName,
    /// The code that the endpoint was given.
    #[param(value_type = String)]
    code: SecretText,
}

/// Consent to events, in a browser
///
/// Needs no key: the code in the path is one. An endpoint gets this URL in
/// `WebHook-Request-Callback` or `validationUrl`, and may call it for ten minutes.
#[utoipa::path(get, path = "/validate/{topic}/{subscription}/{code}", tag = "subscriptions", security(()),
    params(CallbackPath, ("WebHook-Allowed-Rate" = Option<String>, Query,
        description = "Most requests a minute, or `*`; the header of this name does the same")),
    responses(
        (status = 200, description = "The subscription is active", body = String,
            content_type = "text/plain"),
        BadRequests, NoHandshake, TooManyGuesses, Unavailable, Unchanged))]
pub(crate) async fn consent<P: Ports>(
    State(taker): State<ConsentTaker<P>>,
    who: RequestCaller,
    Path(path): Path<CallbackPath>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Result<&'static str, ApiError> {
    // A client that only checks whether the page exists has not consented.
    if method == Method::HEAD {
        return Err(ApiProblem::new(ProblemKind::MethodNotAllowed).into());
    }
    let rate = parse_allowed_rate(&uri, &headers)?;
    taker.accept_consent(who.into_endpoint(), &path, rate).await
}

/// Consent to events
///
/// Needs no key: the code in the path is one. An endpoint gets this URL in
/// `WebHook-Request-Callback` or `validationUrl`, and may call it for ten minutes.
#[utoipa::path(post, path = "/validate/{topic}/{subscription}/{code}", tag = "subscriptions", security(()),
    params(CallbackPath, ("WebHook-Allowed-Rate" = Option<String>, Header,
        description = "Most requests a minute, or `*`")),
    responses(
        (status = 200, description = "The subscription is active", body = String,
            content_type = "text/plain"),
        BadRequests, NoHandshake, TooManyGuesses, Unavailable, Unchanged))]
pub(crate) async fn post_consent<P: Ports>(
    State(taker): State<ConsentTaker<P>>,
    who: RequestCaller,
    Path(path): Path<CallbackPath>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<&'static str, ApiError> {
    let rate = parse_allowed_rate(&uri, &headers)?;
    taker.accept_consent(who.into_endpoint(), &path, rate).await
}

/// The consents of endpoints that call back.
pub(crate) struct ConsentTaker<P: Ports> {
    clock: P::Clock,
    writer: TopicWriter<P>,
    audit: AuditTrail<P>,
    refuser: KeyRefuser<P>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for ConsentTaker<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            clock: manage.clock.clone(),
            writer: TopicWriter::from_ref(manage),
            audit: AuditTrail::from_ref(manage),
            refuser: KeyRefuser::from_ref(manage),
        }
    }
}

impl<P: Ports> ConsentTaker<P> {
    /// Takes a consent. A code that opens nothing is answered like any wrong key.
    async fn accept_consent(
        &self,
        caller: AuditCaller,
        path: &CallbackPath,
        rate: AllowedRate,
    ) -> Result<&'static str, ApiError> {
        let peer = caller.address.map(PeerAddress);
        match self.call_back(caller, path, rate).await {
            Err(error) if error.0.kind == ProblemKind::NotFound => {
                Err(self.refuser.refuse_key(error.0, AuditDoor::Api, peer).await)
            }
            answer => answer,
        }
    }

    async fn call_back(
        &self,
        caller: AuditCaller,
        path: &CallbackPath,
        rate: AllowedRate,
    ) -> Result<&'static str, ApiError> {
        let now = self.clock.now();
        let entry = self.audit.new_entry(caller, AuditAction::Consent);
        let entry = entry.of_subscription(&path.topic, &path.subscription);
        let (record, name) = self
            .writer
            .change_record(entry, &path.topic, &[], |present| {
                let mut record = present.ok_or_else(no_handshake)?;
                let name = consent_to_handshake(&mut record, path, rate, now)?;
                Ok((record, name))
            })
            .await?;
        tracing::info!(
            topic = %record.name, subscription = %name, requests_per_minute_max = rate.0,
            "the endpoint called back and consented"
        );
        Ok(THANKS)
    }
}

/// The problem of every mistake alike, so that a guess tells nothing.
fn no_handshake() -> ApiProblem {
    ApiProblem::new(ProblemKind::NotFound).detail("there is no such handshake, or its time is over")
}

/// Writes the endpoint's consent into the record, and returns the subscription's name as it is
/// stored.
fn consent_to_handshake(
    record: &mut TopicRecord,
    path: &CallbackPath,
    rate: AllowedRate,
    now: Timestamp,
) -> Result<SubscriptionName, ApiProblem> {
    let (name, settings) = record
        .settings
        .subscription_mut(&path.subscription)
        .ok_or_else(no_handshake)?;
    let name = name.clone();
    let status = called_back(settings, &path.code, rate, now).ok_or_else(no_handshake)?;
    settings.status = Some(status);
    Ok(name)
}

fn parse_allowed_rate(uri: &Uri, headers: &HeaderMap) -> Result<AllowedRate, ApiProblem> {
    let mut query = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    let rate = match query.find(|(name, _)| name.eq_ignore_ascii_case(ALLOWED_RATE)) {
        Some((_, text)) => AllowedRate::parse(&text),
        None => AllowedRate::from_headers(headers),
    };
    rate.map_err(|error| {
        ApiProblem::new(ProblemKind::BadRequest)
            .member(ALLOWED_RATE)
            .detail(error.to_string())
    })
}
