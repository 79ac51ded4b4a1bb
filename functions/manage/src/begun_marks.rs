//! Work that the write of a topic's record begins beside it, written down before the record.

use std::sync::Arc;

use axum::extract::FromRef;
use posthaste_core::stored::{BegunWork, TopicRecord, layout};
use posthaste_ports::{Clock, Ports};

use crate::answer::ApiError;
use crate::force_requests::ForceRequests;
use crate::manage::Manage;
use crate::validating_marks::ValidatingMarks;
use crate::wake_queue::WakeQueue;

/// The marks of work that was begun beside a record.
pub(crate) struct BegunMarks<P: Ports> {
    clock: P::Clock,
    validating: ValidatingMarks<P>,
    forced: ForceRequests<P>,
    wake: WakeQueue<P>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for BegunMarks<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            clock: manage.clock.clone(),
            validating: ValidatingMarks::from_ref(manage),
            forced: ForceRequests::from_ref(manage),
            wake: WakeQueue::from_ref(manage),
        }
    }
}

impl<P: Ports> BegunMarks<P> {
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
            self.validating.put_mark(&next.name).await?;
        }
        for name in &work.forced {
            self.forced.request_force(next, name).await?;
        }
        for mark in work.disabled {
            let key = layout::disabled_notice_key(&mark.topic, &mark.subscription);
            self.wake.put_work(&key, mark.render()).await?;
        }
        Ok(())
    }
}
