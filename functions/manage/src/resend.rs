//! One event that is sent again by its id, at once: a replay of one.

mod letter;
mod payload;

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use posthaste_core::api::events::IdInUrl;
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::api::{AuditAction, IsoTimestamp, ResendRequest, ResendView};
use posthaste_core::delivery_log::{
    DeliveryHistory, RecordLookup, ResendRefusal, choose_delivery, gather_by_delivery, log_text,
};
use posthaste_core::model::{
    Subscription, SubscriptionName, SubscriptionStatus, Timestamp, Topic, TopicName, webhook_id_of,
};
use posthaste_core::pressure::{PressureState, explain_cause, replay_wait};
use posthaste_core::release::{EventResend, ReplayMessage};
use posthaste_core::stored::PRESSURE_KEY;
use posthaste_delivery_log::LookUpResult;
use posthaste_ports::{Clock, Entropy, ObjectStore, OutgoingMessage, Ports, PutCondition};
use posthaste_services::send_all;
use serde::Deserialize;
use url::form_urlencoded;

use self::payload::ResendableEvent;
use crate::answer::{ApiError, JsonResponse, unavailable_problem, unusable_record};
use crate::audit::RequestCaller;
use crate::document::{BadRequests, NoEvent, Problems, WrongStates};
use crate::events::EventIdQuery;
use crate::extract::{OptionalJsonBody, Path, Query, SubscriptionPath};
use crate::manage::{Manage, ManageState};

/// The note of every answer.
const NOTE: &str = "a new delivery of the event was queued; another request makes another one";

/// Added to the note if another delivery of the event has not ended.
const STILL_WAITING: &str =
    ". An earlier delivery of the event still waits: that copy may arrive too";

/// Added to the note if the event was found in a dead letter of another program alone.
const WEBHOOK_ID_MADE: &str =
    ". Its dead letter does not say its webhook-id, so that one is made of the dead letter's place";

/// The problem of a subscription that is disabled: the event would become a dead letter at once.
const DISABLED: &str = "the subscription is disabled; enable it first";

/// The end of the problem where back pressure holds the event back.
const NOTHING_SENT: &str = "nothing was sent; send the event again after the wait";

/// Most keys that a problem names.
const KEYS_SHOWN_MAX: usize = 20;

/// The path of an event towards a subscription.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct DeliveryPath {
    /// The topic's name, in any case.
    #[param(value_type = String)]
    topic: TopicName,
    /// The subscription's name, in any case.
    #[param(value_type = String)]
    name: SubscriptionName,
    /// The event's id, percent-encoded. Any text where the query has the id.
    id: String,
}

/// The event that is sent, and what the note says of it.
struct ResendPlan {
    found: ResendableEvent,
    is_waiting: bool,
}

/// Send an event again
///
/// Makes a new delivery of the event to this subscription, at once and whatever became of the
/// earlier ones, as long as the delivery log or a dead letter has its payload. It has a new key and
/// a new time to live, and keeps its `webhook-id`, or gets a new one with `newId`. A pause, the
/// state of the link and the rate limit hold for it as for any other. Two requests make two
/// deliveries. With `deadLetter`, that dead letter is sent. Under back pressure it waits as a replay
/// does: 503 with `Retry-After`, and nothing is sent.
#[utoipa::path(post, path = "/topics/{topic}/subscriptions/{name}/events/{id}/resend", tag = "events",
    params(DeliveryPath, EventIdQuery), request_body(content = Option<ResendRequest>),
    responses((status = 202, description = "The new delivery is queued", body = ResendView,
            headers(("Location" = String, description = "The path that shows what becomes of the event"))),
        BadRequests, NoEvent, WrongStates, Problems))]
pub(crate) async fn resend<P: Ports>(
    State(manage): ManageState<P>,
    RequestCaller(caller): RequestCaller,
    Path(DeliveryPath { topic, name, id }): Path<DeliveryPath>,
    Query(query): Query<EventIdQuery>,
    OptionalJsonBody(request): OptionalJsonBody<ResendRequest>,
) -> Result<Response, ApiError> {
    let id = query.event_id(id);
    let path = SubscriptionPath { topic, name };
    let record = manage.existing_record(&path.topic).await?;
    let topic = record.compile().map_err(|_| unusable_record())?;
    let to = receiving_subscription(&topic, &path)?;
    manage.refuse_under_pressure(&topic.name).await?;
    let LookUpResult {
        records,
        searched_from,
        ..
    } = manage.event_records(&path, &id).await?;
    let histories = gather_by_delivery(records);
    let key = request.key.as_deref();
    let ResendPlan { found, is_waiting } = match &request.dead_letter {
        Some(place) => {
            manage
                .plan_letter_resend(place, key, &histories, to, &id)
                .await?
        }
        None => {
            manage
                .plan_event_resend(key, &histories, to, &id, searched_from)
                .await?
        }
    };
    // Looking the event up takes seconds: what is true after that decides.
    let record = manage.existing_record(&path.topic).await?;
    let topic = record.compile().map_err(|_| unusable_record())?;
    let to = receiver_if_unchanged(&topic, &path, to)?;
    let now = manage.clock.now();
    let key = format!("{}-0", manage.entropy.uuid_at(now).simple());
    let is_id_made = found.is_id_made && !request.new_id;
    let kept = (!request.new_id).then_some(&*found.webhook_id);
    let default_time_to_live = topic.default_time_to_live;
    let letter = found.letter;
    let resend = EventResend {
        key: &key,
        webhook_id: kept,
        letter,
        earlier: found.earlier,
        subscription: to,
        default_time_to_live,
    };
    let webhook_id = kept.map_or_else(|| webhook_id_of(&key), str::to_owned);
    let entry = manage.new_audit_entry(caller, AuditAction::Resend);
    let entry = entry
        .of_subscription(&path.topic, &to.name)
        .of_target(&id)
        .with_detail(&format!("delivery {key}, webhook-id {webhook_id}"));
    let message = resend.to_message(&found.event, now);
    manage
        .run_audited(entry, manage.queue_resend(message), |entry, ()| entry)
        .await?;
    tracing::info!(
        topic = %path.topic, subscription = %to.name, event_id = id, key, webhook_id,
        "an event is sent again by its id"
    );
    let location = event_path(&path.topic, &id);
    let note = resend_note(is_waiting, is_id_made, searched_from);
    let earlier_waits = is_waiting;
    let searched_from = searched_from.map(IsoTimestamp);
    let view = ResendView {
        id,
        key,
        webhook_id,
        earlier_waits,
        searched_from,
        note,
    };
    Ok(JsonResponse::accepted(view, location).into_response())
}

/// The subscription that an event is sent to.
fn receiving_subscription<'a>(
    topic: &'a Topic,
    path: &SubscriptionPath,
) -> Result<&'a Arc<Subscription>, ApiProblem> {
    let to = topic
        .find_subscription(&path.name)
        .ok_or_else(|| path.unknown_problem())?;
    if to.status == SubscriptionStatus::Disabled {
        return Err(ApiProblem::new(ProblemKind::WrongState).detail(DISABLED));
    }
    Ok(to)
}

/// The same after the event was looked up, if it still is the subscription that was asked for.
fn receiver_if_unchanged<'a>(
    topic: &'a Topic,
    path: &SubscriptionPath,
    before: &Subscription,
) -> Result<&'a Arc<Subscription>, ApiProblem> {
    let to = receiving_subscription(topic, path)?;
    if to.created.identity() == before.created.identity() {
        Ok(to)
    } else {
        Err(path.unknown_problem())
    }
}

impl<P: Ports> Manage<P> {
    /// Refuses where a replay of this topic would wait for back pressure. A state that cannot be
    /// used holds nobody.
    async fn refuse_under_pressure(&self, topic: &TopicName) -> Result<(), ApiError> {
        let object = self.state.get(PRESSURE_KEY).await?;
        let state = object.and_then(|object| PressureState::parse(&object.bytes).ok());
        let Some(wait) = replay_wait(state.as_ref(), topic, self.clock.now()) else {
            return Ok(());
        };
        let problem = ApiProblem::new(ProblemKind::BackPressure).retry_after(wait.retry_after);
        Err(match wait.pressing {
            Some(pressing) => problem
                .under_pressure(
                    pressing.resource.resource,
                    pressing.resource.effective_level(),
                )
                .detail(format!("{}; {NOTHING_SENT}", explain_cause(&pressing))),
            None => problem.detail(NOTHING_SENT),
        }
        .into())
    }

    /// The records of an event towards a subscription.
    async fn event_records(
        &self,
        path: &SubscriptionPath,
        id: &str,
    ) -> Result<LookUpResult, ApiError> {
        let topic = Some(path.topic.folded());
        let subscription = Some(path.name.folded());
        let event_id = Some(log_text(id));
        self.log_event(RecordLookup {
            topic,
            subscription,
            event_id,
            ..RecordLookup::default()
        })
        .await
    }

    /// The event of this id or, with a key, of this delivery.
    async fn plan_event_resend(
        &self,
        key: Option<&str>,
        histories: &[DeliveryHistory],
        to: &Subscription,
        id: &str,
        searched_from: Option<Timestamp>,
    ) -> Result<ResendPlan, ApiError> {
        let chosen = choose_delivery(histories, &to.created, key);
        let found = match &chosen {
            Ok(chosen) => self.kept_payload(chosen, to, id).await?,
            Err(ResendRefusal::Unknown) => self.dead_letter_of(to, id, key, searched_from).await?,
            Err(ResendRefusal::Former) => return Err(former_owner_problem(to).into()),
            Err(ResendRefusal::Several(keys)) => return Err(ambiguous_id_problem(keys).into()),
        };
        Ok(ResendPlan {
            found,
            is_waiting: chosen.is_ok_and(|chosen| chosen.is_waiting),
        })
    }

    /// Queues the message, its payload first where that is stored beside it.
    async fn queue_resend(&self, message: ReplayMessage) -> Result<(), ApiError> {
        for (key, text) in message.payloads {
            self.state.put(&key, text, PutCondition::Always).await?;
        }
        let ReplayMessage {
            body, group, delay, ..
        } = message;
        let message = OutgoingMessage {
            body,
            group: Some(group),
            delay,
        };
        match send_all(&self.deliveries, vec![message]).await.pop() {
            Some(sent) => Ok(sent?),
            None => Err(unavailable_problem().into()),
        }
    }
}

fn resend_note(is_waiting: bool, is_id_made: bool, searched_from: Option<Timestamp>) -> String {
    let waiting = if is_waiting { STILL_WAITING } else { "" };
    let made = if is_id_made { WEBHOOK_ID_MADE } else { "" };
    let searched =
        searched_from.map(|since| format!(". The delivery log was only searched back to {since}"));
    format!("{NOTE}{waiting}{}{made}", searched.unwrap_or_default())
}

/// The path that shows what becomes of the event.
pub(crate) fn event_path(topic: &TopicName, id: &str) -> String {
    let carried = IdInUrl::for_id(id);
    let path = format!("/topics/{topic}/events/{}", carried.path_segment());
    match carried.query_parameter() {
        Some((name, value)) => {
            let value: String = form_urlencoded::byte_serialize(value.as_bytes()).collect();
            format!("{path}?{name}={value}")
        }
        None => path,
    }
}

fn former_owner_problem(to: &Subscription) -> ApiProblem {
    let detail = format!(
        "the event was accepted for an earlier subscription {} or an earlier topic of this name",
        to.name
    );
    ApiProblem::new(ProblemKind::NotFound).detail(detail)
}

fn ambiguous_id_problem(keys: &[String]) -> ApiProblem {
    let shown = keys
        .iter()
        .take(KEYS_SHOWN_MAX)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    let more = if keys.len() > KEYS_SHOWN_MAX {
        ", …"
    } else {
        ""
    };
    let detail = format!(
        "{} events have this id; name one of their keys: {shown}{more}",
        keys.len()
    );
    ApiProblem::new(ProblemKind::SeveralDeliveries)
        .member("key")
        .detail(detail)
}
