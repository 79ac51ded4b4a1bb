//! Handshakes that processes left: endpoints that nobody has asked yet.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRef;
use futures_util::stream::{self, StreamExt};
use posthaste_core::model::TopicName;
use posthaste_core::stored::layout;
use posthaste_ports::{Clock, ObjectMeta, Ports};
use posthaste_services::{LEFT_AFTER, LeftWork};

use crate::answer::ApiError;
use crate::begun_requests::BegunRequests;
use crate::handshakes::{HandshakeEnds, HandshakeRunner};
use crate::left_marks::list_left_marks;
use crate::look_trigger::{LOOK_BESIDE_REST, LookTrigger};
use crate::manage::Manage;
use crate::request_clock::{time_until, work_ends};
use crate::shared_port::SharedPort;
use crate::topic_records::TopicRecords;
use crate::validating_marks::ValidatingMarks;

/// Topics whose endpoints are asked side by side: one that hangs keeps no other waiting.
const TOPICS_AT_ONCE: usize = 8;

/// The handshakes that processes left.
pub(crate) struct LeftHandshakes<P: Ports> {
    state: SharedPort<P, P::Store>,
    clock: P::Clock,
    work: SharedPort<P, BegunRequests>,
    records: TopicRecords<P>,
    validating: ValidatingMarks<P>,
    handshakes: HandshakeRunner<P>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for LeftHandshakes<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            state: SharedPort::new(manage, |it| &it.state),
            clock: manage.clock.clone(),
            work: SharedPort::new(manage, |it| &it.work),
            records: TopicRecords::from_ref(manage),
            validating: ValidatingMarks::from_ref(manage),
            handshakes: HandshakeRunner::from_ref(manage),
        }
    }
}

impl<P: Ports> LeftHandshakes<P> {
    /// Asks endpoints that processes left unasked.
    pub(crate) async fn finish_handshakes(
        &self,
        look: LookTrigger,
        left: LeftWork,
        until: Duration,
    ) -> Result<(), ApiError> {
        let place = &self.work.handshakes_seen;
        let now = self.clock.now();
        let marks = list_left_marks(&*self.state, layout::VALIDATING, place, |mark| {
            left.counts_as_left(mark.modified_at, now, LEFT_AFTER)
        })
        .await?;
        stream::iter(marks)
            .for_each_concurrent(TOPICS_AT_ONCE, |mark| self.finish_mark(mark, look, until))
            .await;
        Ok(())
    }

    /// Asks the endpoints of one mark's topic, if there is still time.
    async fn finish_mark(&self, mark: ObjectMeta, look: LookTrigger, until: Duration) {
        if time_until(&self.clock, until).is_zero() {
            return;
        }
        self.work.handshakes_seen.set_last_key(&mark.key);
        let Some(topic) = layout::validating_topic(&mark.key) else {
            tracing::warn!(key = mark.key, "not the name of a topic");
            return;
        };
        let ends = match look {
            LookTrigger::OnSchedule => self.handshakes.handshake_ends(work_ends(&self.clock)),
            LookTrigger::BesideAnswer => HandshakeEnds {
                asked: until,
                written: until + LOOK_BESIDE_REST,
            },
        };
        if let Err(error) = self.finish_handshakes_of(&topic, ends).await {
            let problem = error.0.kind.title();
            tracing::warn!(%topic, problem, "endpoints not asked; tried again");
        }
    }

    async fn finish_handshakes_of(
        &self,
        topic: &TopicName,
        ends: HandshakeEnds,
    ) -> Result<(), ApiError> {
        if !self.validating.take_over(topic).await? {
            return Ok(());
        }
        let seen_at = self.clock.monotonic();
        let Some(record) = self.records.load_record(topic).await? else {
            return self.validating.delete_mark(topic).await;
        };
        let pending = self.validating.unasked_handshakes(&record);
        if pending.is_empty() {
            return self.validating.delete_mark(topic).await;
        }
        tracing::info!(%topic, endpoints = pending.len(), "endpoints are asked that were left");
        self.handshakes
            .shake_hands(record, pending, ends, seen_at)
            .await?;
        Ok(())
    }
}
