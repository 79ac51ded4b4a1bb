//! Force: ends what keeps a subscription's events from its endpoint, at an operator's word. Its own hold, its link's and
//! those of its fallback end, and wake releases what is held or parked for it.

use std::collections::BTreeSet;
use std::error::Error;
use std::time::Duration;

use axum::extract::State;
use bytes::Bytes;
use posthaste_core::api::{ForcedView, LinkView, StatusState};
use posthaste_core::handshake::{Action, Begin, act};
use posthaste_core::health::{Observation, Shard, Target, shard_index};
use posthaste_core::layout;
use posthaste_core::name::SubscriptionName;
use posthaste_core::problem::{Problem, ProblemKind};
use posthaste_core::record::TopicRecord;
use posthaste_core::topic::Subscription;
use posthaste_ports::{Clock, Entropy, LinksError, PutCondition};

use crate::answer::{Failure, Shown, UNAVAILABLE_RETRY_AFTER, store_problem};
use crate::document::{BadRequests, Problems, UnknownSubscription, WrongStates};
use crate::edit::spelling;
use crate::input::{At, SubscriptionPath};
use crate::subscriptions::unknown_subscription;
use crate::{Manage, Managed, Store, Webhooks};

/// How long forcing after a write may take. The write is done and its answer waits, and a hold ends by itself.
const FORCE_AFTER_WRITE_MAX: Duration = Duration::from_secs(5);

/// What becomes of what waits, as the answer says it.
const WHAT_NOW: &str = "what is held or parked for it begins to go out within a minute, the oldest first and little by \
    little at first; retries that are already in the queue go out within 15 minutes";

/// Force a subscription
///
/// Ends the holds of an active subscription: its own, its link's (so that other subscriptions there are tried again too)
/// and those of its fallback. What is held or parked for it begins to go out within a minute. If its endpoint still fails,
/// they begin anew. One that is paused is to be resumed instead, and a disabled one enabled: both force as well.
#[utoipa::path(post, path = "/topics/{topic}/subscriptions/{name}/force", tag = "subscriptions",
    params(SubscriptionPath),
    responses((status = 200, description = "Done; what was in the way is shown", body = ForcedView),
        BadRequests, UnknownSubscription, WrongStates, Problems))]
pub(crate) async fn force<S: Store, D: Store, W: Webhooks, C: Clock, E: Entropy>(
    State(manage): Managed<S, D, W, C, E>,
    At(path): At<SubscriptionPath>,
) -> Result<Shown<ForcedView>, Failure> {
    let record = manage.existing(&path.topic).await?;
    let name = spelling(&record.settings, &path.name).ok_or_else(|| unknown_subscription(&path))?;
    let editor = manage.editor();
    let (settings, code) = (&record.settings.subscriptions[name], editor.code());
    act(Action::Force, settings, Begin { now: editor.now, code: &code }).map_err(|wrong| {
        let state = settings.status.as_ref().map(|status| status.at(editor.now).state);
        let detail = format!("{wrong}{}", instead(state));
        Problem::new(ProblemKind::WrongState).detail(detail)
    })?;
    let forced = manage.force_subscription(&record, name).await?;
    tracing::info!(topic = %record.name, subscription = %name, action = "force", ended = forced.len(), "subscription acted on");
    Ok(Shown::new(ForcedView {
        topic: record.name.clone(),
        subscription: name.clone(),
        detail: detail(&forced),
        forced,
    }))
}

/// What is to be done to a subscription in this state instead.
fn instead(state: Option<StatusState>) -> &'static str {
    match state {
        Some(StatusState::Paused) => "; resume it, which forces as well",
        Some(StatusState::Disabled | StatusState::Failed) => "; enable it, which forces as well",
        Some(StatusState::Pending) => "; its endpoint has yet to consent",
        Some(StatusState::Active) | None => "",
    }
}

fn detail(forced: &[LinkView]) -> String {
    match forced {
        [] => format!("no hold was in its way; {WHAT_NOW}"),
        [_] => format!("the hold has ended; {WHAT_NOW}"),
        more => format!("{} holds have ended; {WHAT_NOW}", more.len()),
    }
}

/// What may keep a subscription's events from its endpoints, by the part that it is in.
fn targets(subscription: &Subscription) -> BTreeSet<(usize, Target)> {
    let links = [Some(&subscription.endpoint), subscription.fallback.as_ref()];
    let links = links.into_iter().flatten().map(|endpoint| endpoint.link());
    links
        .flat_map(|link| {
            let index = shard_index(&link);
            [(index, Target::Link(link.clone())), (index, Target::on(link, subscription))]
        })
        .collect()
}

impl<S: Store, D: Store, W: Webhooks, C: Clock, E: Entropy> Manage<S, D, W, C, E> {
    /// The same after a write, as far as it can be done: what cannot is left to the end of the hold.
    pub(crate) async fn force_after_write(&self, record: &TopicRecord, name: &SubscriptionName) {
        let forced = tokio::select! {
            biased;
            forced = self.force_subscription(record, name) => forced.map_err(|problem| problem.kind),
            () = self.clock.sleep(FORCE_AFTER_WRITE_MAX) => Err(ProblemKind::Unavailable),
        };
        if let Err(problem) = forced {
            tracing::warn!(topic = %record.name, subscription = %name, ?problem, "not forced; a hold ends by itself");
        }
    }

    /// Ends the holds of a subscription, and marks it for wake. Answers those that there were, as they stood.
    async fn force_subscription(
        &self,
        record: &TopicRecord,
        name: &SubscriptionName,
    ) -> Result<Vec<LinkView>, Problem> {
        // It was checked before it was written.
        let topic = record.compile().map_err(|_| Problem::new(ProblemKind::Internal))?;
        let Some(subscription) = topic.subscription(name) else { return Ok(Vec::new()) };
        // What this process remembers may be seconds old, and a hold that began meanwhile would not be seen.
        self.links.all().await.map_err(|error| links_problem(&error))?;
        let mut forced = Vec::new();
        for (index, target) in targets(subscription) {
            forced.extend(self.end_hold(index, &target).await?);
        }
        let mark = layout::forcing(&topic.name, &subscription.name);
        let marked = self.state.put(&mark, Bytes::from_static(b"{}"), PutCondition::Always).await;
        marked.map_err(|error| store_problem(&error))?;
        Ok(forced)
    }

    /// Ends a target's hold, if there is one, and answers how it stood.
    async fn end_hold(&self, index: usize, target: &Target) -> Result<Option<LinkView>, Problem> {
        let (mut before, now, settings) = (None, self.clock.now(), self.links.settings());
        let end = |shard: &mut Shard| {
            before = shard.condition(target).map(|condition| LinkView::of(target, condition));
            shard.observe(target, &Observation::Forced, now, settings)
        };
        let is_ended = self.links.change(index, end).await.map_err(|error| links_problem(&error))?;
        Ok(before.filter(|_| is_ended))
    }
}

/// What a client is told when what is known of links cannot be read or written.
pub(crate) fn links_problem(error: &LinksError) -> Problem {
    match error {
        LinksError::Store(error) => store_problem(error),
        LinksError::Object(_) => {
            tracing::error!(error = error as &dyn Error, "what is known of links cannot be used");
            Problem::new(ProblemKind::Internal)
                .detail("what is known of links was written by a newer version")
        }
        LinksError::Contended(_) => {
            Problem::new(ProblemKind::Unavailable).retry_after(UNAVAILABLE_RETRY_AFTER)
        }
    }
}
