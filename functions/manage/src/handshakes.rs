//! Handshakes, which ask endpoints whether they want events. A write leaves a pending handshake in
//! the record. Here all handshakes of the request run at once, and the record receives what the
//! endpoints answered, before the request itself is answered. The write is durable before and stays,
//! even if a step fails.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRef;
use futures_util::stream::{self, StreamExt};
use parking_lot::Mutex;
use posthaste_core::api::edit::PendingHandshake;
use posthaste_core::api::handshake::status_after_handshake;
use posthaste_core::api::{AuditAction, HandshakeResult};
use posthaste_core::model::{Topic, TopicName};
use posthaste_core::stored::TopicRecord;
use posthaste_ports::{Clock, Ports};
use posthaste_services::{SingleFlight, timeout, timeout_at};

use crate::answer::{ApiError, unavailable_problem, unusable_record};
use crate::audit::AuditTrail;
use crate::endpoint_asker::EndpointAsker;
use crate::manage::Manage;
use crate::request_clock::time_until;
use crate::topic_records::TopicRecords;
use crate::topic_writer::TopicWriter;
use crate::validating_marks::ValidatingMarks;

/// Longest time for all handshakes of one request. Within
/// [`HANDSHAKE_TIMEOUT_MAX`](posthaste_core::model::HANDSHAKE_TIMEOUT_MAX) each, one round of them
/// ends and another begins; the rest of the request's time is for the stores. A handshake that did
/// not run by then is still pending: the next write, or the next look at what was left, runs it with
/// the same code.
const HANDSHAKES_TIME_MAX: Duration = Duration::from_secs(14);

/// Most endpoints that are asked at once.
const HANDSHAKES_AT_ONCE_MAX: usize = 64;

/// The time for which a look at the topic stands: an endpoint that is asked later is asked by what
/// is true then.
const LOOK_STANDS: Duration = Duration::from_secs(1);

/// The ends of the handshakes of one topic, as times of the clock's `monotonic`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HandshakeEnds {
    /// The end of waiting for endpoints.
    pub(crate) asked: Duration,
    /// The end of writing their answers.
    pub(crate) written: Duration,
}

/// A topic as it was seen at some time.
struct SeenTopic {
    record: TopicRecord,
    topic: Topic,
    /// The time of the look, by the clock's `monotonic`.
    seen_at: Duration,
}

/// The newest look at a topic, which the handshakes of one request share.
struct SharedTopicLook {
    newest: Mutex<Arc<SeenTopic>>,
    looks: SingleFlight<TopicLook>,
}

/// A look at a topic.
#[derive(Clone)]
enum TopicLook {
    Seen(Arc<SeenTopic>),
    Deleted,
    /// The topic cannot be read now: what was known before stands.
    Unknown,
}

impl SeenTopic {
    fn new(record: TopicRecord, seen_at: Duration) -> Result<Self, ApiError> {
        let topic = record.compile().map_err(|_| unusable_record())?;
        Ok(Self {
            record,
            topic,
            seen_at,
        })
    }

    /// Whether this handshake is still to be run.
    fn has_pending(&self, pending: &PendingHandshake) -> bool {
        let subscriptions = &self.record.settings.subscriptions;
        let status = subscriptions
            .get(&pending.subscription)
            .and_then(|settings| settings.status.as_ref());
        let code = status.and_then(|status| status.handshake.as_ref()?.code_to_ask_with());
        code.is_some_and(|code| code.expose() == pending.code.expose())
    }
}

/// The runner of handshakes.
pub(crate) struct HandshakeRunner<P: Ports> {
    clock: P::Clock,
    asker: EndpointAsker<P>,
    records: TopicRecords<P>,
    writer: TopicWriter<P>,
    validating: ValidatingMarks<P>,
    audit: AuditTrail<P>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for HandshakeRunner<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            clock: manage.clock.clone(),
            asker: EndpointAsker::from_ref(manage),
            records: TopicRecords::from_ref(manage),
            writer: TopicWriter::from_ref(manage),
            validating: ValidatingMarks::from_ref(manage),
            audit: AuditTrail::from_ref(manage),
        }
    }
}

impl<P: Ports> HandshakeRunner<P> {
    /// The ends of handshakes of a request whose work ends at this time of the clock's `monotonic`.
    pub(crate) fn handshake_ends(&self, until: Duration) -> HandshakeEnds {
        HandshakeEnds {
            asked: until.min(self.clock.monotonic() + HANDSHAKES_TIME_MAX),
            written: until,
        }
    }

    /// Runs handshakes of this record, which was written at `written_at`, a time of the clock's
    /// `monotonic`. Answers the record with their outcome. Where nobody is left to be asked then,
    /// the topic's mark goes.
    pub(crate) async fn shake_hands(
        &self,
        record: TopicRecord,
        pending: Vec<PendingHandshake>,
        ends: HandshakeEnds,
        written_at: Duration,
    ) -> Result<TopicRecord, ApiError> {
        if pending.is_empty() {
            return Ok(record);
        }
        let looked_at = SharedTopicLook {
            newest: Mutex::new(Arc::new(SeenTopic::new(record.clone(), written_at)?)),
            looks: SingleFlight::default(),
        };
        // What was done since the write may have taken seconds.
        if self.newest_topic(&looked_at).await.is_none() {
            return Ok(record);
        }
        let time = time_until(&self.clock, ends.asked);
        let answers = self.ask_endpoints(&looked_at, pending, time).await;
        if answers.is_empty() {
            return Ok(record);
        }
        let entry = self.audit.own_entry(AuditAction::Handshake);
        let change = self
            .writer
            .change_existing(entry, &record.name, &[], |record| {
                self.conclude_handshakes(record, &answers);
                Ok(())
            });
        let Some(changed) = timeout_at(&self.clock, ends.written, change).await else {
            let detail = "what the endpoint said could not be written in time";
            return Err(unavailable_problem().detail(detail).into());
        };
        let (record, ()) = changed?;
        if self.validating.unasked_handshakes(&record).is_empty() {
            let unmarked = self.validating.delete_mark(&record.name);
            // Otherwise the next look finds nobody to ask, and does it.
            let _ = timeout_at(&self.clock, ends.written, unmarked).await;
        }
        Ok(record)
    }

    /// The answers of the endpoints that could be asked in time.
    async fn ask_endpoints(
        &self,
        looked_at: &SharedTopicLook,
        pending: Vec<PendingHandshake>,
        time: Duration,
    ) -> Vec<(PendingHandshake, HandshakeResult)> {
        let mut asked = stream::iter(pending)
            .map(|pending| self.ask_if_pending(looked_at, pending))
            .buffer_unordered(HANDSHAKES_AT_ONCE_MAX);
        let mut answers = Vec::new();
        let all = async {
            while let Some(answer) = asked.next().await {
                answers.extend(answer);
            }
        };
        if timeout(&self.clock, time, all).await.is_none() {
            let topic = looked_at.newest.lock().record.name.clone();
            tracing::warn!(%topic, "not every endpoint was asked in time");
        }
        answers
    }

    /// Asks the endpoint of one handshake; `None` if it is not to be run any more.
    async fn ask_if_pending(
        &self,
        looked_at: &SharedTopicLook,
        pending: PendingHandshake,
    ) -> Option<(PendingHandshake, HandshakeResult)> {
        let seen = self.newest_topic(looked_at).await?;
        if !seen.has_pending(&pending) {
            return None;
        }
        let SeenTopic { record, topic, .. } = &*seen;
        let settings = record.settings.subscriptions.get(&pending.subscription)?;
        let subscription = topic.find_subscription(&pending.subscription)?;
        let answer = self
            .asker
            .ask_endpoint(topic, settings, subscription, &pending)
            .await;
        Some((pending, answer))
    }

    /// The topic as it is now, `None` if it was deleted. Endpoints wait for their turn: meanwhile one
    /// may have been given another URL, or its subscription may be gone.
    async fn newest_topic(&self, looked_at: &SharedTopicLook) -> Option<Arc<SeenTopic>> {
        let known = Arc::clone(&looked_at.newest.lock());
        let now = self.clock.monotonic();
        if now.saturating_sub(known.seen_at) < LOOK_STANDS {
            return Some(known);
        }
        let look = looked_at
            .looks
            .run("topic", || self.look_at_topic(&known.record.name, now))
            .await;
        match look {
            TopicLook::Seen(seen) => {
                *looked_at.newest.lock() = Arc::clone(&seen);
                Some(seen)
            }
            TopicLook::Deleted => None,
            TopicLook::Unknown => Some(known),
        }
    }

    async fn look_at_topic(&self, name: &TopicName, now: Duration) -> TopicLook {
        match self.records.load_record(name).await {
            Ok(Some(record)) => SeenTopic::new(record, now)
                .map_or(TopicLook::Unknown, |seen| TopicLook::Seen(Arc::new(seen))),
            Ok(None) => TopicLook::Deleted,
            Err(_) => TopicLook::Unknown,
        }
    }

    /// Writes the answers of endpoints into the record. A handshake that was replaced or concluded
    /// by a callback in the meantime stays as it is.
    fn conclude_handshakes(
        &self,
        record: &mut TopicRecord,
        answers: &[(PendingHandshake, HandshakeResult)],
    ) {
        let now = self.clock.now();
        for (PendingHandshake { subscription, code }, answer) in answers {
            let Some((name, settings)) = record.settings.subscription_mut(subscription) else {
                continue;
            };
            if let Some(status) = status_after_handshake(settings, code, answer, now) {
                tracing::info!(
                    topic = %record.name, subscription = %name, state = %status.state,
                    reason = status.reason, "endpoint asked"
                );
                settings.status = Some(status);
            }
        }
    }
}
