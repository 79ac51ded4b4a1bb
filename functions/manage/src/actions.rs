//! What operators do to a subscription without writing it anew.

use std::error::Error;
use std::fmt;

use axum::extract::State;
use posthaste_core::api::problem::{Problem, ProblemKind};
use posthaste_core::api::{StatusView, SubscriptionSettings};
use posthaste_core::attempt::handshake::{Action, Begin, act};
use posthaste_core::model::name::{SubscriptionName, TopicName};
use posthaste_core::stored::disabled::DisabledMark;
use posthaste_core::stored::layout;
use posthaste_core::stored::topic::TopicRecord;
use posthaste_ports::{Clock, Entropy, PutCondition};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::answer::{Failure, Shown};
use crate::conditions::subscription_etag;
use crate::document::{BadRequests, Problems, UnknownSubscription, WrongStates};
use crate::edit::{begun, spelling};
use crate::force::ended;
use crate::input::{At, SubscriptionPath};
use crate::records::unknown_topic;
use crate::subscriptions::unknown_subscription;
use crate::{Manage, Managed, Store, Webhooks};

/// What can be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ActionName {
    /// Ask the endpoint again whether it wants events.
    Validate,
    /// Let events wait.
    Pause,
    /// Deliver again after a pause.
    Resume,
    /// Deliver again after it was disabled, or after its endpoint did not consent.
    Enable,
    /// Let new events pass by, and give up those that wait.
    Disable,
}

/// The path of an action.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct ActionPath {
    /// The topic's name, in any case.
    #[param(value_type = String)]
    topic: TopicName,
    /// The subscription's name, in any case.
    #[param(value_type = String)]
    name: SubscriptionName,
    /// What to do.
    #[param(inline)]
    action: ActionName,
}

impl From<ActionName> for Action {
    fn from(name: ActionName) -> Self {
        match name {
            ActionName::Validate => Self::Validate,
            ActionName::Pause => Self::Pause,
            ActionName::Resume => Self::Resume,
            ActionName::Enable => Self::Enable,
            ActionName::Disable => Self::Disable,
        }
    }
}

impl ActionName {
    /// Whether whoever does it wants deliveries now, and not when a hold ends.
    fn forces(self) -> bool {
        matches!(self, Self::Resume | Self::Enable)
    }
}

impl fmt::Display for ActionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Validate => "validate",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Enable => "enable",
            Self::Disable => "disable",
        })
    }
}

/// Validate, pause, resume, enable or disable a subscription
///
/// `pause` lets the events of an active subscription wait, and `resume` delivers them. `disable` lets new events pass by
/// and gives up those that wait; `enable` delivers again, also where the endpoint did not consent. `validate` asks the
/// endpoint again; `enable` and `resume` ask it too, where it must consent and has not. They also end a hold, as `force`
/// does. The answer shows the state.
#[utoipa::path(post, path = "/topics/{topic}/subscriptions/{name}/{action}", tag = "subscriptions", params(ActionPath),
    responses((status = 200, description = "Done; its state is shown", body = SubscriptionSettings,
        headers(("ETag" = String, description = "Its version, for If-Match"))),
        BadRequests, UnknownSubscription, WrongStates, Problems))]
pub(crate) async fn act_on_subscription<S: Store, D: Store, W: Webhooks, C: Clock, E: Entropy>(
    State(manage): Managed<S, D, W, C, E>,
    At(path): At<ActionPath>,
) -> Result<Shown<SubscriptionSettings>, Failure> {
    let ActionPath { topic, name, action } = path;
    let at = SubscriptionPath { topic, name };
    let (editor, until) = (manage.editor(), manage.work_ends());
    let edit = |present: Option<TopicRecord>| {
        let mut record = present.ok_or_else(|| unknown_topic(&at.topic))?;
        let name = spelling(&record.settings, &at.name).cloned().ok_or_else(|| unknown_subscription(&at))?;
        let settings =
            record.settings.subscriptions.get_mut(&name).ok_or_else(|| unknown_subscription(&at))?;
        let code = editor.code();
        let status = act(action.into(), settings, Begin { now: editor.now, code: &code });
        let status =
            status.map_err(|wrong| Problem::new(ProblemKind::WrongState).detail(wrong.to_string()))?;
        let begun = begun(&name, &status, &code);
        settings.status = Some(status);
        Ok((record, (name, begun)))
    };
    let (record, (name, begun)) = manage.change(&at.topic, edit).await?;
    tracing::info!(topic = %record.name, subscription = %name, %action, "subscription acted on");
    match action {
        action if action.forces() => {
            let holds = ended(&record, [&name]).unwrap_or_default();
            manage.settle_after_write(&record.name, &holds, until).await;
        }
        ActionName::Disable => manage.mark_disabled(&record, &name).await,
        _ => {}
    }
    let record = manage.shake_hands(record, begun.into_iter().collect(), until).await?;
    let settings = record.settings.subscriptions.get(&name).ok_or_else(|| unknown_subscription(&at))?;
    Ok(Shown::versioned(settings.shown(&name, manage.clock.now()), subscription_etag(&record, settings)))
}

impl<S: Store, D: Store, W: Webhooks, C: Clock, E: Entropy> Manage<S, D, W, C, E> {
    /// Leaves word for wake that a subscription is disabled, which is told where notices go. If that fails nobody is told, as
    /// where deliver disables one: the record says it all the same.
    async fn mark_disabled(&self, record: &TopicRecord, name: &SubscriptionName) {
        let status = record.settings.subscriptions.get(name).and_then(|settings| settings.status.as_ref());
        let Some(StatusView { reason: Some(reason), since, .. }) = status else { return };
        let mark = DisabledMark {
            topic: record.name.clone(),
            subscription: name.clone(),
            reason: reason.clone(),
            since: since.0,
        };
        let key = layout::telling(&mark.topic, &mark.subscription);
        if let Err(error) = self.state.put(&key, mark.render(), PutCondition::Always).await {
            tracing::error!(topic = %record.name, subscription = %name, error = &error as &dyn Error, "notice of a disabled subscription not sent");
        }
    }
}
