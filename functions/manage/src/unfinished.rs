//! Work that a request began outside of its topic's record: written down before the record, and
//! finished here or by wake if the process of the request died.
//!
//! | what is written down | who finishes it |
//! |---|---|
//! | `validating/{topic}`: endpoints are to be asked for their consent | this function |
//! | `ending/{digest}`: dead letters are resolved or deleted | this function |
//! | `forcing/{subscription}`: holds are to end, events to go out | wake |
//! | `telling/{subscription}`: a notice of a disabled subscription | wake |
//! | `temporary/{topic}`: the topic, or a part of it, is to go | wake |

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use bytes::Bytes;
use posthaste_core::api::SubscriptionSettings;
use posthaste_core::api::edit::{BegunWork, PendingHandshake};
use posthaste_core::api::problem::Problem;
use posthaste_core::model::{SubscriptionName, TopicName};
use posthaste_core::stored::{ForceRequest, TopicRecord, layout};
use posthaste_ports::{Clock, Entropy, ObjectMeta, ObjectStore, Ports, PutCondition};
use posthaste_services::signal_wake;
use posthaste_services::update::{Edit, create_or_update};

use crate::answer::ApiError;
use crate::manage::Manage;

/// Time between two looks at what processes left.
pub const FINISH_PERIOD: Duration = Duration::from_secs(30);

/// Age at which work counts as left by its process: longer than a request takes, and short enough
/// that it is finished within two minutes.
pub(crate) const LEFT_AFTER: Duration = Duration::from_secs(45);

/// Most marks that are looked at in one go.
pub(crate) const MARKS_MAX: usize = 100;

/// A router that looks at what other processes left before it answers, once in
/// [`FINISH_PERIOD`]: for a process that only runs while it answers.
pub fn finishing_before<P: Ports>(manage: Arc<Manage<P>>, router: Router) -> Router {
    let look = move |request: Request, next: Next| {
        let manage = Arc::clone(&manage);
        async move {
            manage.finish_left_if_due().await;
            next.run(request).await
        }
    };
    router.layer(from_fn(look))
}

impl<P: Ports> Manage<P> {
    /// Writes down what a write of a topic's record begins beside it.
    pub(crate) async fn note_begun(
        &self,
        present: Option<&TopicRecord>,
        next: &TopicRecord,
    ) -> Result<(), ApiError> {
        let (present, now) = (present.map(|present| &present.settings), self.clock.now());
        let work = BegunWork::by(&next.name, present, &next.settings, now);
        if work.asks_endpoints {
            self.mark_validating(&next.name).await?;
        }
        for name in &work.forced {
            self.request_force(next, name).await?;
        }
        for mark in work.disabled {
            let key = layout::telling(&mark.topic, &mark.subscription);
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
        let (identity, now) = (record.created(name).identity(), self.clock.now());
        let new_id = self.entropy.uuid().to_string();
        // wake may rest until it is signalled.
        signal_wake(&self.state, now).await?;
        let key = layout::forcing(&record.name, name);
        let asked = create_or_update(&self.state, &key, |open| {
            let open = open.map(|open| ForceRequest::parse(&open.bytes));
            let request = ForceRequest::asked_for(open, identity, &new_id, now);
            let id = request.id.clone().unwrap_or_default();
            Ok::<_, Problem>(Edit::Write(request.render(), id))
        });
        Ok(asked.await?.answer)
    }

    /// Finishes what processes left. What fails is left for the next time.
    pub async fn finish_left(&self) {
        for (work, finished) in [
            ("handshakes", Box::pin(self.finish_handshakes()).await),
            ("dead letters", Box::pin(self.finish_endings()).await),
        ] {
            if let Err(error) = finished {
                let problem = error.0.kind.title();
                tracing::warn!(
                    work,
                    problem,
                    "work that was left not finished; tried again"
                );
            }
        }
    }

    async fn finish_left_if_due(&self) {
        if self.work.is_look_due(self.clock.monotonic(), FINISH_PERIOD) {
            self.finish_left().await;
        }
    }

    /// Asks endpoints that processes left unasked.
    async fn finish_handshakes(&self) -> Result<(), ApiError> {
        for mark in self.left(layout::VALIDATING).await? {
            let Some(topic) = layout::validating_topic(&mark.key) else {
                tracing::warn!(key = mark.key, "not the name of a topic");
                continue;
            };
            if let Err(error) = self.finish_handshakes_of(&topic).await {
                let problem = error.0.kind.title();
                tracing::warn!(%topic, problem, "endpoints not asked; tried again");
            }
        }
        Ok(())
    }

    async fn finish_handshakes_of(&self, topic: &TopicName) -> Result<(), ApiError> {
        let until = self.work_ends();
        let seen_at = self.clock.monotonic();
        if let Some(record) = self.load(topic).await? {
            let pending = self.unasked(&record);
            if !pending.is_empty() {
                tracing::info!(%topic, endpoints = pending.len(), "endpoints are asked that were left");
                let record = self.shake_hands(record, pending, until, seen_at).await?;
                if !self.unasked(&record).is_empty() {
                    return Ok(());
                }
            }
        }
        self.state.delete(&layout::validating(topic)).await?;
        // A write that came in between found the mark, which is gone now.
        let is_written = self.load(topic).await?;
        if is_written.is_some_and(|record| !self.unasked(&record).is_empty()) {
            self.mark_validating(topic).await?;
        }
        Ok(())
    }

    async fn mark_validating(&self, topic: &TopicName) -> Result<(), ApiError> {
        let key = layout::validating(topic);
        self.state
            .put(&key, Bytes::new(), PutCondition::Always)
            .await?;
        Ok(())
    }

    /// The handshakes of a record that are still to be run.
    fn unasked(&self, record: &TopicRecord) -> Vec<PendingHandshake> {
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

    /// The marks under a prefix that processes left.
    pub(crate) async fn left(&self, prefix: &str) -> Result<Vec<ObjectMeta>, ApiError> {
        let mut marks = self.state.list(prefix, None, MARKS_MAX).await?.objects;
        let now = self.clock.now();
        marks.retain(|mark| now.since(mark.modified_at) >= LEFT_AFTER);
        Ok(marks)
    }
}
