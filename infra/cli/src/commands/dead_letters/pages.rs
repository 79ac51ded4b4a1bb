//! Requests for dead letters: a page of a list, and an object.

use posthaste_core::api::DeadLetterPage;
use posthaste_core::api::events::is_plain_path;
use ureq::http::Method;

use crate::cli::DeadLetterFilterArgs;
use crate::client::{ApiCall, ClientError};
use crate::commands::AdminSession;
use crate::commands::period::query_period;

/// Most dead letters in one page.
pub(super) const PAGE_MAX: usize = 1000;

/// A page of a list, of at most `limit` dead letters.
pub(super) fn read_page(
    session: &AdminSession,
    which: &DeadLetterFilterArgs,
    limit: usize,
    cursor: Option<String>,
) -> Result<DeadLetterPage, ClientError> {
    let [from, to] = query_period(which.from, which.to);
    let path = list_path(which);
    let call = session
        .call(Method::GET, &path)
        .query("from", from.as_ref())
        .query("to", to.as_ref())
        .query("reason", which.reason.as_ref())
        .query("type", which.event_type.as_ref())
        .query("includeResolved", which.include_resolved.then_some(true))
        .query("limit", Some(limit))
        .query("cursor", cursor);
    session.client.send_for_json(call)
}

/// The request for an object of this key, as it is stored.
pub fn dead_letter_call<'a>(session: &'a AdminSession, object: &'a str) -> ApiCall<'a> {
    let mut path = vec!["dead-letters"];
    let in_query = (!is_plain_path(object)).then_some(object);
    match in_query {
        Some(_) => path.push("-"),
        None => path.extend(object.split('/')),
    }
    session.call(Method::GET, &path).query("key", in_query)
}

fn list_path(which: &DeadLetterFilterArgs) -> Vec<&str> {
    let topic = which.topic.iter().flat_map(|topic| ["topics", topic]);
    let subscription = which
        .subscription
        .iter()
        .flat_map(|name| ["subscriptions", name]);
    topic.chain(subscription).chain(["dead-letters"]).collect()
}
