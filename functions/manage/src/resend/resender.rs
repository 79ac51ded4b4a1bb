//! An event that is sent again by its id: looked up, checked anew, and queued.

use std::sync::Arc;

use axum::extract::FromRef;
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::api::{AuditAction, AuditCaller, IsoTimestamp, ResendRequest, ResendView};
use posthaste_core::delivery_log::{
    DeliveryHistory, RecordLookup, ResendRefusal, choose_delivery, gather_by_delivery, log_text,
};
use posthaste_core::model::{Subscription, SubscriptionStatus, Timestamp, Topic, webhook_id_of};
use posthaste_core::release::EventResend;
use posthaste_delivery_log::LookUpResult;
use posthaste_ports::{Clock, Entropy, Ports};

use super::letter::PlacedLetters;
use super::payload::{KeptPayloads, ResendPlan, former_owner_problem};
use super::queue::ResendQueue;
use crate::answer::{ApiError, unusable_record};
use crate::audit::AuditTrail;
use crate::event_log::EventLog;
use crate::extract::SubscriptionPath;
use crate::manage::Manage;
use crate::pressure_reader::PressureReader;
use crate::shared_port::SharedPort;
use crate::topic_records::TopicRecords;

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

/// Most keys that a problem names.
const KEYS_SHOWN_MAX: usize = 20;

/// The resend of events.
pub(crate) struct EventResender<P: Ports> {
    clock: P::Clock,
    entropy: SharedPort<P, P::Entropy>,
    records: TopicRecords<P>,
    pressure: PressureReader<P>,
    events: EventLog<P>,
    kept: KeptPayloads<P>,
    placed: PlacedLetters<P>,
    queue: ResendQueue<P>,
    audit: AuditTrail<P>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for EventResender<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            clock: manage.clock.clone(),
            entropy: SharedPort::new(manage, |it| &it.entropy),
            records: TopicRecords::from_ref(manage),
            pressure: PressureReader::from_ref(manage),
            events: EventLog::from_ref(manage),
            kept: KeptPayloads::from_ref(manage),
            placed: PlacedLetters::from_ref(manage),
            queue: ResendQueue::from_ref(manage),
            audit: AuditTrail::from_ref(manage),
        }
    }
}

impl<P: Ports> EventResender<P> {
    /// Sends the event with this id again to a subscription.
    pub(crate) async fn resend_event(
        &self,
        caller: AuditCaller,
        path: &SubscriptionPath,
        id: &str,
        request: &ResendRequest,
    ) -> Result<ResendView, ApiError> {
        let record = self.records.existing_record(&path.topic).await?;
        let topic = record.compile().map_err(|_| unusable_record())?;
        let to = receiving_subscription(&topic, path)?;
        self.pressure.refuse_under_pressure(&topic.name).await?;
        let LookUpResult {
            records,
            searched_from,
            ..
        } = self.event_records(path, id).await?;
        let histories = gather_by_delivery(records);
        let key = request.key.as_deref();
        let ResendPlan { found, is_waiting } = match &request.dead_letter {
            Some(place) => {
                self.placed
                    .plan_letter_resend(place, key, &histories, to, id)
                    .await?
            }
            None => {
                self.plan_event_resend(key, &histories, to, id, searched_from)
                    .await?
            }
        };
        // Looking the event up takes seconds: what is true after that decides.
        let record = self.records.existing_record(&path.topic).await?;
        let topic = record.compile().map_err(|_| unusable_record())?;
        let to = receiver_if_unchanged(&topic, path, to)?;
        let now = self.clock.now();
        let key = format!("{}-0", self.entropy.uuid_at(now).simple());
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
        let entry = self.audit.new_entry(caller, AuditAction::Resend);
        let entry = entry
            .of_subscription(&path.topic, &to.name)
            .of_target(id)
            .with_detail(&format!("delivery {key}, webhook-id {webhook_id}"));
        let message = resend.to_message(&found.event, now);
        self.audit
            .run_audited(entry, self.queue.queue_resend(message), |entry, ()| entry)
            .await?;
        tracing::info!(
            topic = %path.topic, subscription = %to.name, event_id = id, key, webhook_id,
            "an event is sent again by its id"
        );
        let note = resend_note(is_waiting, is_id_made, searched_from);
        let earlier_waits = is_waiting;
        let searched_from = searched_from.map(IsoTimestamp);
        Ok(ResendView {
            id: id.to_owned(),
            key,
            webhook_id,
            earlier_waits,
            searched_from,
            note,
        })
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
        self.events
            .look_up(RecordLookup {
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
            Ok(chosen) => self.kept.kept_payload(chosen, to, id).await?,
            Err(ResendRefusal::Unknown) => {
                self.kept.dead_letter_of(to, id, key, searched_from).await?
            }
            Err(ResendRefusal::Former) => return Err(former_owner_problem(to).into()),
            Err(ResendRefusal::Several(keys)) => return Err(ambiguous_id_problem(keys).into()),
        };
        Ok(ResendPlan {
            found,
            is_waiting: chosen.is_ok_and(|chosen| chosen.is_waiting),
        })
    }
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

fn resend_note(is_waiting: bool, is_id_made: bool, searched_from: Option<Timestamp>) -> String {
    let waiting = if is_waiting { STILL_WAITING } else { "" };
    let made = if is_id_made { WEBHOOK_ID_MADE } else { "" };
    let searched =
        searched_from.map(|since| format!(". The delivery log was only searched back to {since}"));
    format!("{NOTE}{waiting}{}{made}", searched.unwrap_or_default())
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
