//! Work that a request began outside of its topic's record: written down before the record, and
//! finished here or by wake if the process of the request died.
//!
//! | what is written down | who finishes it |
//! |---|---|
//! | `validating_mark_key/{topic}`: endpoints are to be asked for their consent | this function |
//! | `ending/{digest}`: dead letters are resolved or deleted | this function |
//! | `force_request_key/{subscription}`: holds are to end, events to go out | wake |
//! | `disabled_notice_key/{subscription}`: a notice of a disabled subscription | wake |
//! | `replaying/{id}`: a replay, with the record that is meant | wake |
//! | `temporary/{topic}`: the topic, or a part of it, is to go | wake |

use std::future::ready;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use posthaste_core::api::SubscriptionSettings;
use posthaste_core::api::edit::PendingHandshake;
use posthaste_core::api::problem::ApiProblem;
use posthaste_core::model::{SubscriptionName, TopicName};
use posthaste_core::stored::{BegunWork, ForceRequest, TopicRecord, layout};
use posthaste_ports::{Clock, Entropy, ErrorKind, ObjectMeta, ObjectStore, Ports, PutCondition};
use posthaste_services::update::{ObjectEdit, create_or_update};
use posthaste_services::{LEFT_AFTER, LeftWork, list_objects, signal_wake, timeout};

use crate::answer::ApiError;
use crate::begun_requests::LookPlace;
use crate::handshakes::HandshakeEnds;
use crate::manage::Manage;

/// Time between two looks at what processes left.
pub const FINISH_PERIOD: Duration = Duration::from_secs(30);

/// Longest time in which a look begins new work, so that it is over before the next one.
const LOOK_TIME_MAX: Duration = Duration::from_secs(25);

/// Longest time in which a look beside an answer begins new work and asks endpoints. The answer may
/// have to wait for it.
const LOOK_BESIDE_TIME_MAX: Duration = Duration::from_secs(2);

/// Time in which a look beside an answer then writes down what it has done.
const LOOK_BESIDE_REST: Duration = Duration::from_secs(2);

/// Most marks that are looked at in one go.
const MARKS_MAX: usize = 100;

/// Topics whose endpoints are asked side by side: one that hangs keeps no other waiting.
const TOPICS_AT_ONCE: usize = 8;

/// A look at what processes left.
#[derive(Debug, Clone, Copy)]
enum LookTrigger {
    OnSchedule,
    BesideAnswer,
}

impl LookTrigger {
    fn time_max(self) -> Duration {
        match self {
            Self::OnSchedule => LOOK_TIME_MAX,
            Self::BesideAnswer => LOOK_BESIDE_TIME_MAX,
        }
    }
}

impl<P: Ports> Manage<P> {
    /// Writes down what a write of a topic's record begins beside it.
    pub(crate) async fn note_begun(
        &self,
        present: Option<&TopicRecord>,
        next: &TopicRecord,
    ) -> Result<(), ApiError> {
        let present = present.map(|present| &present.settings);
        let now = self.clock.now();
        let work = BegunWork::from_write(&next.name, present, &next.settings, now);
        if work.asks_endpoints {
            self.mark_validating(&next.name).await?;
        }
        for name in &work.forced {
            self.request_force(next, name).await?;
        }
        for mark in work.disabled {
            let key = layout::disabled_notice_key(&mark.topic, &mark.subscription);
            self.put_work(&key, mark.render()).await?;
        }
        Ok(())
    }

    /// Asks wake to end the holds of a subscription and to release its events. Answers the id of
    /// the request, which is that of an open one if there is one.
    pub(crate) async fn request_force(
        &self,
        record: &TopicRecord,
        name: &SubscriptionName,
    ) -> Result<String, ApiError> {
        let identity = record.identities_of(name).identity();
        let now = self.clock.now();
        let new_id = self.entropy.uuid().to_string();
        // wake may rest until it is signalled.
        signal_wake(&self.state, now).await?;
        let key = layout::force_request_key(&record.name, name);
        let asked = create_or_update(&self.state, &key, |open| {
            let open = open.map(|open| ForceRequest::parse(&open.bytes));
            let request = ForceRequest::asked_for(open, identity, &new_id, now);
            let id = request.id.clone().unwrap_or_default();
            Ok::<_, ApiProblem>(ObjectEdit::Write(request.render(), id))
        });
        Ok(asked.await?.answer)
    }

    /// Finishes what processes left. What fails, and what there is no time for, is left for the next
    /// time.
    pub async fn finish_left(&self, left: LeftWork) {
        self.finish_left_work(LookTrigger::OnSchedule, left).await;
    }

    /// Gives an answer, and looks beside it at what other processes left, if that is due: for a
    /// process that only runs while it answers.
    pub(crate) async fn look_beside<T>(&self, answer: impl Future<Output = T>) -> T {
        if !self.work.is_look_due(self.clock.monotonic(), FINISH_PERIOD) {
            return answer.await;
        }
        let look = Box::pin(self.finish_left_work(LookTrigger::BesideAnswer, LeftWork::Old));
        let length = LOOK_BESIDE_TIME_MAX + LOOK_BESIDE_REST;
        join(answer, timeout(&self.clock, length, look)).await.0
    }

    async fn finish_left_work(&self, look: LookTrigger, left: LeftWork) {
        let until = self.clock.monotonic() + look.time_max();
        let report = |work: &'static str, finished: Result<(), ApiError>| {
            if let Err(error) = finished {
                let problem = error.0.kind.title();
                tracing::warn!(
                    work,
                    problem,
                    "work that was left not finished; tried again"
                );
            }
        };
        let (handshakes, endings) = join(
            Box::pin(self.finish_handshakes(look, left, until)),
            Box::pin(self.finish_endings(left, until)),
        )
        .await;
        report("handshakes", handshakes);
        report("dead letters", endings);
    }

    /// Asks endpoints that processes left unasked.
    async fn finish_handshakes(
        &self,
        look: LookTrigger,
        left: LeftWork,
        until: Duration,
    ) -> Result<(), ApiError> {
        let place = &self.work.handshakes_seen;
        let now = self.clock.now();
        let is_left = |mark: &ObjectMeta| left.counts_as_left(mark.modified_at, now, LEFT_AFTER);
        let marks = self.list_marks(layout::VALIDATING, place, is_left).await?;
        let finish = |mark: ObjectMeta| async move {
            if self.time_until(until).is_zero() {
                return;
            }
            place.set_last_key(&mark.key);
            let Some(topic) = layout::validating_topic(&mark.key) else {
                tracing::warn!(key = mark.key, "not the name of a topic");
                return;
            };
            let ends = match look {
                LookTrigger::OnSchedule => self.handshake_ends(self.work_ends()),
                LookTrigger::BesideAnswer => HandshakeEnds {
                    asked: until,
                    written: until + LOOK_BESIDE_REST,
                },
            };
            if let Err(error) = self.finish_handshakes_of(&topic, ends).await {
                let problem = error.0.kind.title();
                tracing::warn!(%topic, problem, "endpoints not asked; tried again");
            }
        };
        stream::iter(marks)
            .for_each_concurrent(TOPICS_AT_ONCE, finish)
            .await;
        Ok(())
    }

    async fn finish_handshakes_of(
        &self,
        topic: &TopicName,
        ends: HandshakeEnds,
    ) -> Result<(), ApiError> {
        if !self.take_over_handshakes(topic).await? {
            return Ok(());
        }
        let seen_at = self.clock.monotonic();
        let Some(record) = self.load_record(topic).await? else {
            return self.unmark_validating(topic).await;
        };
        let pending = self.unasked_handshakes(&record);
        if pending.is_empty() {
            return self.unmark_validating(topic).await;
        }
        tracing::info!(%topic, endpoints = pending.len(), "endpoints are asked that were left");
        self.shake_hands(record, pending, ends, seen_at).await?;
        Ok(())
    }

    /// Takes a mark up: it is young again, so that no other process asks the same endpoints. False
    /// if another one was first.
    async fn take_over_handshakes(&self, topic: &TopicName) -> Result<bool, ApiError> {
        let key = layout::validating_mark_key(topic);
        let Some(mark) = self.state.get(&key).await? else {
            return Ok(false);
        };
        let condition = PutCondition::IfMatch(mark.etag);
        match self.state.put(&key, self.new_mark(), condition).await {
            Err(error) if error.kind == ErrorKind::PreconditionFailed => Ok(false),
            put => Ok(put.map(|_| true)?),
        }
    }

    async fn mark_validating(&self, topic: &TopicName) -> Result<(), ApiError> {
        let key = layout::validating_mark_key(topic);
        let mark = self.new_mark();
        self.state.put(&key, mark, PutCondition::Always).await?;
        Ok(())
    }

    /// The content of a mark: no two are the same, so that conditions tell them apart.
    fn new_mark(&self) -> Bytes {
        self.entropy.uuid().to_string().into()
    }

    /// Deletes the mark of a topic of which nobody is to be asked any more.
    pub(crate) async fn unmark_validating(&self, topic: &TopicName) -> Result<(), ApiError> {
        self.state
            .delete(&layout::validating_mark_key(topic))
            .await?;
        // A write that came in between found the mark, which is gone now.
        let is_written = self.load_record(topic).await?;
        if is_written.is_some_and(|record| !self.unasked_handshakes(&record).is_empty()) {
            self.mark_validating(topic).await?;
        }
        Ok(())
    }

    /// The handshakes of a record that are still to be run.
    pub(crate) fn unasked_handshakes(&self, record: &TopicRecord) -> Vec<PendingHandshake> {
        let now = self.clock.now();
        let of = |(name, settings): (&SubscriptionName, &SubscriptionSettings)| {
            let handshake = settings.status.as_ref()?.handshake.as_ref()?;
            let code = handshake.code_to_ask_with()?;
            (handshake.expires_at.0 > now).then(|| PendingHandshake {
                subscription: name.clone(),
                code: code.clone(),
            })
        };
        record
            .settings
            .subscriptions
            .iter()
            .filter_map(of)
            .collect()
    }

    /// Marks under a prefix, from where the last look ended, and then those before.
    pub(crate) async fn list_marks(
        &self,
        prefix: &str,
        place: &LookPlace,
        is_left: impl Fn(&ObjectMeta) -> bool,
    ) -> Result<Vec<ObjectMeta>, ApiError> {
        let start = place.start_key();
        let is_before = |mark: &ObjectMeta| start.as_ref().is_some_and(|start| mark.key <= *start);
        let behind = list_objects(&self.state, prefix, start.clone());
        let before = stream::iter(
            start
                .is_some()
                .then(|| list_objects(&self.state, prefix, None)),
        )
        .flatten()
        .try_take_while(|mark| ready(Ok(is_before(mark))));
        let marks = behind
            .chain(before)
            .try_filter(|mark| ready(is_left(mark)))
            .take(MARKS_MAX);
        Ok(marks.try_collect().await?)
    }
}
