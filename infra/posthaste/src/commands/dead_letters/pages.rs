//! Requests for dead letters: a page of a list, and an object.

use posthaste_core::api::DeadLetterPage;
use posthaste_core::api::events::is_plain_path;
use ureq::http::Method;

use crate::cli::ListedArgs;
use crate::client::{Call, ClientError};
use crate::commands::Session;
use crate::commands::period::period;

/// Most dead letters in one page.
pub(super) const PAGE_MAX: usize = 1000;

/// A page of a list, of at most `limit` dead letters.
pub(super) fn page(
    session: &Session,
    which: &ListedArgs,
    limit: usize,
    cursor: Option<String>,
) -> Result<DeadLetterPage, ClientError> {
    let [from, to] = period(which.from, which.to);
    let path = path(which);
    let call = session
        .call(Method::GET, &path)
        .query("from", from.as_ref())
        .query("to", to.as_ref())
        .query("reason", which.reason.as_ref())
        .query("type", which.event_type.as_ref())
        .query("includeResolved", which.include_resolved.then_some(true))
        .query("limit", Some(limit))
        .query("cursor", cursor);
    session.client.json(call)
}

/// The request for an object of this key, as it is stored.
pub(super) fn object_call<'a>(session: &'a Session, object: &'a str) -> Call<'a> {
    let mut path = vec!["dead-letters"];
    let in_query = (!is_plain_path(object)).then_some(object);
    match in_query {
        Some(_) => path.push("-"),
        None => path.extend(object.split('/')),
    }
    session.call(Method::GET, &path).query("key", in_query)
}

fn path(which: &ListedArgs) -> Vec<&str> {
    let topic = which.topic.iter().flat_map(|topic| ["topics", topic]);
    let subscription = which
        .subscription
        .iter()
        .flat_map(|name| ["subscriptions", name]);
    topic.chain(subscription).chain(["dead-letters"]).collect()
}
