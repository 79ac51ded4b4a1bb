//! A scheduled event that is taken back before its release.

use std::sync::Arc;

use axum::extract::{FromRef, State};
use axum::response::{IntoResponse, Response};
use posthaste_core::api::{AuditAction, AuditCaller, CancelledEventView, IsoTimestamp};
use posthaste_core::model::{Timestamp, TopicName};
use posthaste_core::stored::{EventCancellation, event_id_digest, layout};
use posthaste_ports::{Clock, PortError, Ports};
use posthaste_services::{ObjectEdit, UpdateError, update_object};

use crate::answer::{ApiError, JsonResponse};
use crate::audit::{AuditTrail, RequestCaller};
use crate::document::{BadRequests, Problems, UnknownTopic};
use crate::event_path::{EventIdQuery, EventPath, event_path};
use crate::extract::{Path, Query};
use crate::manage::Manage;
use crate::shared_port::SharedPort;
use crate::topic_records::TopicRecords;

/// The note of every answer.
const NOTE: &str = "what was published for later with this id until now is not sent, unless its \
    release has begun";

/// Cancel a scheduled event
///
/// Takes back what was published with this id for later (`Posthaste-Not-Before`, or the topic's
/// `notBeforeAttribute`) and is not released yet, for all subscriptions. It is not looked up first:
/// 202 also where there is no such event. What is published with the same id after this is sent. The
/// delivery log has a record of each delivery that was taken back, when its time has come.
#[utoipa::path(delete, path = "/topics/{topic}/events/{id}", tag = "events",
    params(EventPath, EventIdQuery),
    responses((status = 202, description = "The event is taken back, unless its release has begun",
            body = CancelledEventView,
            headers(("Location" = String, description = "The path that shows what becomes of the event"))),
        BadRequests, UnknownTopic, Problems))]
pub(crate) async fn cancel_event<P: Ports>(
    State(canceller): State<EventCanceller<P>>,
    RequestCaller(caller): RequestCaller,
    Path(EventPath { topic, id }): Path<EventPath>,
    Query(query): Query<EventIdQuery>,
) -> Result<Response, ApiError> {
    let id = query.event_id(id);
    let Cancellation { topic, at } = canceller.cancel_event(caller, &topic, &id).await?;
    let location = event_path(&topic, &id);
    let view = CancelledEventView {
        id,
        cancelled_at: IsoTimestamp(at),
        note: NOTE.to_owned(),
    };
    Ok(JsonResponse::accepted(view, location).into_response())
}

/// A scheduled event that was taken back.
struct Cancellation {
    /// The topic, under the name that was written.
    topic: TopicName,
    /// The time until which accepted events are taken back.
    at: Timestamp,
}

/// The notes that scheduled events are taken back.
pub(crate) struct EventCanceller<P: Ports> {
    state: SharedPort<P, P::Store>,
    clock: P::Clock,
    records: TopicRecords<P>,
    audit: AuditTrail<P>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for EventCanceller<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            state: SharedPort::new(manage, |it| &it.state),
            clock: manage.clock.clone(),
            records: TopicRecords::from_ref(manage),
            audit: AuditTrail::from_ref(manage),
        }
    }
}

impl<P: Ports> EventCanceller<P> {
    /// Takes back what was published with this id until now.
    async fn cancel_event(
        &self,
        caller: AuditCaller,
        topic: &TopicName,
        id: &str,
    ) -> Result<Cancellation, ApiError> {
        let topic = self.records.existing_record(topic).await?.name;
        let key = layout::cancelled_key(&topic, &event_id_digest(id));
        let entry = self.audit.new_entry(caller, AuditAction::CancelEvent);
        let entry = entry.of_topic(&topic).of_target(id);
        let note = async { Ok(self.note_cancellation(&key).await?) };
        let at = self
            .audit
            .run_audited(entry, note, |entry, _| entry)
            .await?;
        tracing::info!(%topic, event_id = id, "a scheduled event was taken back");
        Ok(Cancellation { topic, at })
    }

    /// Writes the note that what was accepted until now is taken back; answers that time. A note
    /// never goes back in time. One that cannot be read is written again: the new one says more.
    async fn note_cancellation(&self, key: &str) -> Result<Timestamp, UpdateError<PortError>> {
        let noted = update_object(&*self.state, key, |found| {
            let found = found.and_then(|object| EventCancellation::parse(&object.bytes).ok());
            let now = self.clock.now();
            let at = found.map_or(now, |found| found.at.max(now));
            Ok(ObjectEdit::Write(EventCancellation { at }.render(), at))
        });
        Ok(noted.await?.answer)
    }
}
