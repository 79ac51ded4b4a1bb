//! Telling that an operator disabled a subscription: manage leaves a mark, since it has no way into the queue, and the next
//! run tells it and removes the mark. In this order, so that it is told at least once.

use std::error::Error;

use posthaste_core::api::notice::Notice;
use posthaste_core::stored::disabled::DisabledMark;
use posthaste_core::stored::layout;
use posthaste_ports::{Clock, Entropy, ObjectStore, PortError, QueueSender};
use posthaste_services::NoticeError;

use crate::Wake;
use crate::limits::{Limits, within};

/// Most marks that are looked at in one run.
const MARKS_MAX: usize = 100;

/// Why subscriptions are not told of in this run.
#[derive(Debug, thiserror::Error)]
enum TellError {
    #[error("failed to reach what is to be told")]
    Store(#[from] PortError),
    #[error("failed to tell it")]
    Notice(#[from] NoticeError),
}

impl<Q, S, D, C, E> Wake<Q, S, D, C, E>
where
    Q: QueueSender,
    S: ObjectStore,
    D: ObjectStore,
    C: Clock,
    E: Entropy,
{
    /// Tells of the subscriptions that operators disabled since the last run.
    pub(crate) async fn tell_disabled(&self, limits: Limits) {
        match within(&self.ports.clock, limits.work, Box::pin(self.tell_marks(limits))).await {
            Some(Ok(())) => {}
            Some(Err(error)) => {
                tracing::error!(
                    error = &error as &dyn Error,
                    "disabled subscriptions not told of, the next run goes on"
                );
            }
            None => tracing::error!("disabled subscriptions not told of in time, the next run goes on"),
        }
    }

    async fn tell_marks(&self, limits: Limits) -> Result<(), TellError> {
        for listed in self.ports.state.list(layout::TELLING, None, MARKS_MAX).await?.objects {
            if !self.may_begin(limits) {
                break;
            }
            let Some(object) = self.ports.state.get(&listed.key).await? else { continue };
            match DisabledMark::parse(&object.bytes) {
                Ok(mark) => {
                    let notice = Notice::Disabled(mark.notice());
                    // Boxed: of the futures of the SDK, the compiler would find the layout too deep otherwise.
                    Box::pin(self.notifier().tell(&mark.topic, &[notice])).await?;
                }
                Err(error) => {
                    tracing::error!(key = %listed.key, error = &error as &dyn Error, "a disabled subscription not told of, its mark says nothing");
                }
            }
            self.ports.state.delete(&listed.key).await?;
        }
        Ok(())
    }
}
