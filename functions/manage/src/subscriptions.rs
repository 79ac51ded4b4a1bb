//! Subscriptions of a topic.

use axum::extract::State;
use axum::http::StatusCode;
use posthaste_core::api::problem::{Problem, ProblemKind};
use posthaste_core::api::{SubscriptionPage, SubscriptionSettings};
use posthaste_core::stored::topic::TopicRecord;
use posthaste_ports::{Clock, Entropy};

use crate::answer::{Failure, Shown};
use crate::conditions::{Conditions, subscription_etag};
use crate::document::{
    BadRequests, BadWrites, FailedPrecondition, Problems, Unchanged, UnknownSubscription, UnknownTopic,
};
use crate::edit::{Placed, spelling};
use crate::force::{Holds, links};
use crate::input::{Asked, At, PageQuery, SubscriptionPath, TopicPath, Written, page_items};
use crate::records::unknown_topic;
use crate::topics::reveal_made_secret;
use crate::{Managed, Store, Webhooks, cursor};

/// List a topic's subscriptions
///
/// In the order of their names without regard to case. Secrets are masked.
#[utoipa::path(get, path = "/topics/{topic}/subscriptions", tag = "subscriptions", params(TopicPath, PageQuery),
    responses((status = 200, description = "One page of subscriptions", body = SubscriptionPage),
        BadRequests, UnknownTopic, Problems))]
pub(crate) async fn list_subscriptions<S: Store, D: Store, W: Webhooks, C: Clock, E: Entropy>(
    State(manage): Managed<S, D, W, C, E>,
    At(path): At<TopicPath>,
    Asked(query): Asked<PageQuery>,
) -> Result<Shown<SubscriptionPage>, Failure> {
    let items = page_items(query.limit)?;
    let after = cursor::parse(query.cursor.as_deref())?.unwrap_or_default();
    let record = manage.existing(&path.topic).await?;
    let mut named: Vec<_> =
        record.settings.subscriptions.iter().map(|(name, s)| (name.folded(), name, s)).collect();
    named.sort_by(|(one, ..), (other, ..)| one.cmp(other));
    let rest = named.iter().skip_while(|(folded, ..)| *folded <= after);
    let page: Vec<_> = rest.clone().take(items).collect();
    let cursor = match page.last() {
        Some((folded, ..)) if rest.count() > items => Some(cursor::render(folded)),
        Some(_) | None => None,
    };
    let now = manage.clock.now();
    let subscriptions = page.iter().map(|(_, name, settings)| settings.shown(name, now)).collect();
    Ok(Shown::new(SubscriptionPage { subscriptions, cursor }))
}

/// Show a subscription
///
/// Secrets are masked; what is shown is accepted when it is put back.
#[utoipa::path(get, path = "/topics/{topic}/subscriptions/{name}", tag = "subscriptions", params(SubscriptionPath),
    responses((status = 200, description = "The subscription", body = SubscriptionSettings,
        headers(("ETag" = String, description = "Its version, for If-Match"))),
        BadRequests, UnknownSubscription, Problems))]
pub(crate) async fn get_subscription<S: Store, D: Store, W: Webhooks, C: Clock, E: Entropy>(
    State(manage): Managed<S, D, W, C, E>,
    At(path): At<SubscriptionPath>,
) -> Result<Shown<SubscriptionSettings>, Failure> {
    let record = manage.existing(&path.topic).await?;
    let name = spelling(&record.settings, &path.name).ok_or_else(|| unknown_subscription(&path))?;
    let settings = &record.settings.subscriptions[name];
    Ok(Shown::versioned(settings.shown(name, manage.clock.now()), subscription_etag(&record, settings)))
}

/// Create or replace a subscription
///
/// It becomes active, where `endpoint.validation` asks for it once its endpoint has consented: the answer shows its state,
/// which may be Pending or Failed. A paused one stays paused, and a disabled one disabled unless `endpoint.url` or
/// `endpoint.validation` changes. Secrets that are left out stay as they are; with a new subscription one is made, and shown in
/// this answer and never again. A masked secret, as it is shown, stands for the one that is there. Where `endpoint.url`
/// becomes another one of the same scheme, host and port, a hold ends, as `force` does it.
#[utoipa::path(put, path = "/topics/{topic}/subscriptions/{name}", tag = "subscriptions", params(SubscriptionPath,
        ("If-Match" = Option<String>, Header, description = "Write only if this is its version"),
        ("If-None-Match" = Option<String>, Header, description = "`*`: write only if it is not there")),
    request_body = SubscriptionSettings,
    responses((status = 200, description = "Replaced", body = SubscriptionSettings),
        (status = 201, description = "Created", body = SubscriptionSettings),
        BadRequests, UnknownTopic, BadWrites, Unchanged, Problems))]
pub(crate) async fn put_subscription<S: Store, D: Store, W: Webhooks, C: Clock, E: Entropy>(
    State(manage): Managed<S, D, W, C, E>,
    At(path): At<SubscriptionPath>,
    conditions: Conditions,
    Written(written): Written<SubscriptionSettings>,
) -> Result<Shown<SubscriptionSettings>, Failure> {
    let (editor, until) = (manage.editor(), manage.work_ends());
    let edit = |present: Option<TopicRecord>| {
        let record = present.ok_or_else(|| unknown_topic(&path.topic))?;
        conditions.check(present_etag(&record, &path).as_deref())?;
        editor.put_subscription(record, &path.name, &written)
    };
    let named = |placed: &Placed| vec![placed.name.clone()];
    let (record, placed) = manage.change_naming(&path.topic, named, edit).await?;
    tracing::info!(topic = %record.name, subscription = %placed.name, is_new = placed.is_new, "subscription written");
    manage.settle_placed(&record, std::slice::from_ref(&placed), until).await;
    let begun = placed.begun.clone().into_iter().collect();
    let record = manage.shake_hands_after_write(record, begun, until).await;
    let settings =
        record.settings.subscriptions.get(&placed.name).ok_or_else(|| unknown_subscription(&path))?;
    let mut shown = settings.shown(&placed.name, manage.clock.now());
    reveal_made_secret(&record, &placed, &mut shown);
    Ok(Shown::put(shown, subscription_etag(&record, settings), placed.is_new))
}

/// Delete a subscription
///
/// What still waits for it is dead-lettered; dead letters stay.
#[utoipa::path(delete, path = "/topics/{topic}/subscriptions/{name}", tag = "subscriptions",
    params(SubscriptionPath,
        ("If-Match" = Option<String>, Header, description = "Delete only if this is its version")),
    responses((status = 204, description = "Deleted"), BadRequests, UnknownSubscription,
        FailedPrecondition, Unchanged, Problems))]
pub(crate) async fn delete_subscription<S: Store, D: Store, W: Webhooks, C: Clock, E: Entropy>(
    State(manage): Managed<S, D, W, C, E>,
    At(path): At<SubscriptionPath>,
    conditions: Conditions,
) -> Result<StatusCode, Failure> {
    let edit = |present: Option<TopicRecord>| {
        let mut record = present.ok_or_else(|| unknown_topic(&path.topic))?;
        let name = spelling(&record.settings, &path.name).ok_or_else(|| unknown_subscription(&path))?.clone();
        conditions.check(present_etag(&record, &path).as_deref())?;
        let removed = record.settings.subscriptions.remove(&name);
        Ok((record, (name, removed)))
    };
    let until = manage.work_ends();
    let (record, (name, removed)) = manage.change(&path.topic, edit).await?;
    tracing::info!(topic = %record.name, subscription = %name, "subscription deleted");
    let mut holds = Holds::default();
    holds.forget(&record.name, &name, removed.iter().flat_map(|settings| links(&settings.endpoint)));
    manage.settle_after_write(&record.name, &holds, until).await;
    Ok(StatusCode::NO_CONTENT)
}

fn present_etag(record: &TopicRecord, path: &SubscriptionPath) -> Option<String> {
    let name = spelling(&record.settings, &path.name)?;
    Some(subscription_etag(record, record.settings.subscriptions.get(name)?))
}

/// The problem of a subscription that is not there.
pub(crate) fn unknown_subscription(path: &SubscriptionPath) -> Problem {
    let detail = format!("the topic {} has no subscription {}", path.topic, path.name);
    Problem::new(ProblemKind::UnknownSubscription).detail(detail)
}
