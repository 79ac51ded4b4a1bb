//! Force: ends what keeps a subscription's events from its endpoint, at an operator's word. Its own hold, its link's and
//! those of its fallback end, and wake releases what is held or parked for it.

mod holds;

use std::error::Error;
use std::time::Duration;

use axum::extract::State;
use posthaste_core::api::problem::{Problem, ProblemKind};
use posthaste_core::api::{ForcedView, LinkView, StatusState};
use posthaste_core::attempt::handshake::{Action, Begin, act};
use posthaste_core::model::name::SubscriptionName;
use posthaste_core::stored::topic::TopicRecord;
use posthaste_ports::{Clock, Entropy};
use posthaste_services::LinksError;

pub(crate) use self::holds::{Holds, links};

use crate::answer::{Failure, Shown, UNAVAILABLE_RETRY_AFTER, store_problem};
use crate::document::{BadRequests, Problems, UnknownSubscription, WrongStates};
use crate::edit::{Placed, spelling};
use crate::input::{At, SubscriptionPath};
use crate::subscriptions::unknown_subscription;
use crate::{Manage, Managed, Store, Webhooks};

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
    let forced = manage.settle(&ended(&record, [name])?).await?;
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

/// That the holds of these subscriptions end.
pub(crate) fn ended<'a>(
    record: &TopicRecord,
    names: impl IntoIterator<Item = &'a SubscriptionName>,
) -> Result<Holds, Problem> {
    // It was checked before it was written.
    let topic = record.compile().map_err(|_| Problem::new(ProblemKind::Internal))?;
    let mut holds = Holds::default();
    names.into_iter().filter_map(|name| topic.subscription(name)).for_each(|it| holds.end(it));
    Ok(holds)
}

impl<S: Store, D: Store, W: Webhooks, C: Clock, E: Entropy> Manage<S, D, W, C, E> {
    /// Does with holds what follows from a write of subscriptions, until a time of [`Clock::monotonic`].
    pub(crate) async fn settle_placed(&self, record: &TopicRecord, placed: &[Placed], until: Duration) {
        let corrected: Vec<_> = placed.iter().filter(|it| it.is_corrected).map(|it| &it.name).collect();
        // What is written is answered, whatever comes of it.
        let mut holds =
            if corrected.is_empty() { None } else { ended(record, corrected).ok() }.unwrap_or_default();
        for Placed { name, links_changed, .. } in placed {
            holds.forget(&record.name, name, links_changed.iter().cloned());
        }
        self.settle_after_write(&record.name, &holds, until).await;
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
