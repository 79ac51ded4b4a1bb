//! Actions of operators on a subscription.

use std::error::Error;

use axum::extract::State;
use posthaste_core::api::{StatusView, SubscriptionSettings};
use posthaste_core::attempt::Action;
use posthaste_core::model::{SubscriptionName, TopicName};
use posthaste_core::stored::{DisabledMark, TopicRecord, layout};
use posthaste_ports::{Clock, ObjectStore, Ports, PutCondition};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::conditions::{Conditions, subscription_etag};
use crate::document::{BadRequests, Problems, UnknownSubscription, WrongStates};
use crate::error::{ApiError, unknown_subscription};
use crate::extract::Path;
use crate::health_changes::HealthChanges;
use crate::manage::{Manage, Managed};
use crate::paths::SubscriptionPath;
use crate::response::JsonResponse;

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
pub(crate) async fn act_on_subscription<P: Ports>(
    State(manage): Managed<P>,
    Path(path): Path<ActionPath>,
) -> Result<JsonResponse<SubscriptionSettings>, ApiError> {
    let ActionPath { topic, name, action } = path;
    let path = SubscriptionPath { topic, name };
    let (editor, until) = (manage.editor(), manage.work_ends());
    let act = |name: &SubscriptionName, settings: &mut SubscriptionSettings| {
        editor.act(action.into(), name, settings)
    };
    let (record, name, handshake) = manage.change_subscription(&path, &Conditions::default(), act).await?;
    let log_name = format!("{action:?}").to_lowercase();
    tracing::info!(topic = %record.name, subscription = %name, action = log_name, "subscription acted on");
    match action {
        // The operator wants deliveries now, and not when a hold ends.
        ActionName::Resume | ActionName::Enable => {
            let health = HealthChanges::forced(&record, [&name]).unwrap_or_default();
            manage.apply_after_write(&record.name, &health, until).await;
        }
        ActionName::Disable => manage.announce_disabled(&record, &name).await,
        ActionName::Validate | ActionName::Pause => {}
    }
    let record = manage.shake_hands(record, handshake.into_iter().collect(), until).await?;
    let settings = record.settings.subscriptions.get(&name).ok_or_else(|| unknown_subscription(&path))?;
    let shown = settings.shown(&name, manage.clock.now());
    Ok(JsonResponse::versioned(shown, subscription_etag(&record, settings)))
}

impl<P: Ports> Manage<P> {
    /// Leaves a mark for wake, which writes the notice of a disabled subscription. If that fails there is no notice, as
    /// where deliver disables one: the record shows the state all the same.
    async fn announce_disabled(&self, record: &TopicRecord, name: &SubscriptionName) {
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
            tracing::error!(
                topic = %record.name, subscription = %name, error = &error as &dyn Error,
                "notice of a disabled subscription not sent"
            );
        }
    }
}
