//! Marks of topics whose endpoints are still to be asked for their consent.

use std::sync::Arc;

use axum::extract::FromRef;
use bytes::Bytes;
use posthaste_core::api::SubscriptionSettings;
use posthaste_core::api::edit::PendingHandshake;
use posthaste_core::model::{SubscriptionName, Timestamp, TopicName};
use posthaste_core::stored::{TopicRecord, layout};
use posthaste_ports::{Clock, Entropy, ErrorKind, ObjectStore, Ports, PutCondition};

use crate::answer::ApiError;
use crate::manage::Manage;
use crate::shared_port::SharedPort;
use crate::topic_records::TopicRecords;

/// The marks of topics whose endpoints are to be asked. Whoever looks at what was left finds them.
pub(crate) struct ValidatingMarks<P: Ports> {
    state: SharedPort<P, P::Store>,
    clock: P::Clock,
    entropy: SharedPort<P, P::Entropy>,
    records: TopicRecords<P>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for ValidatingMarks<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            state: SharedPort::new(manage, |it| &it.state),
            clock: manage.clock.clone(),
            entropy: SharedPort::new(manage, |it| &it.entropy),
            records: TopicRecords::from_ref(manage),
        }
    }
}

impl<P: Ports> ValidatingMarks<P> {
    /// Takes a mark up: it is young again, so that no other process asks the same endpoints. False
    /// if another one was first.
    pub(crate) async fn take_over(&self, topic: &TopicName) -> Result<bool, ApiError> {
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

    /// Marks a topic of which endpoints are to be asked.
    pub(crate) async fn put_mark(&self, topic: &TopicName) -> Result<(), ApiError> {
        let key = layout::validating_mark_key(topic);
        let mark = self.new_mark();
        self.state.put(&key, mark, PutCondition::Always).await?;
        Ok(())
    }

    /// Deletes the mark of a topic of which nobody is to be asked any more.
    pub(crate) async fn delete_mark(&self, topic: &TopicName) -> Result<(), ApiError> {
        self.state
            .delete(&layout::validating_mark_key(topic))
            .await?;
        // A write that came in between found the mark, which is gone now.
        let is_written = self.records.load_record(topic).await?;
        if is_written.is_some_and(|record| !self.unasked_handshakes(&record).is_empty()) {
            self.put_mark(topic).await?;
        }
        Ok(())
    }

    /// The content of a mark: no two are the same, so that conditions tell them apart.
    fn new_mark(&self) -> Bytes {
        self.entropy.uuid().to_string().into()
    }

    /// The handshakes of a record that are still to be run.
    pub(crate) fn unasked_handshakes(&self, record: &TopicRecord) -> Vec<PendingHandshake> {
        let now = self.clock.now();
        record
            .settings
            .subscriptions
            .iter()
            .filter_map(|(name, settings)| pending_handshake(name, settings, now))
            .collect()
    }
}

/// The handshake of a subscription that is still to be run.
fn pending_handshake(
    name: &SubscriptionName,
    settings: &SubscriptionSettings,
    now: Timestamp,
) -> Option<PendingHandshake> {
    let handshake = settings.status.as_ref()?.handshake.as_ref()?;
    let code = handshake.code_to_ask_with()?;
    (handshake.expires_at.0 > now).then(|| PendingHandshake {
        subscription: name.clone(),
        code: code.clone(),
    })
}
