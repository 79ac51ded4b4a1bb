//! Notices that an operator disabled a subscription: manage leaves a mark, since it has no way into the
//! queue, and the next run sends the notice and deletes the mark. In this order, so that it is sent at least
//! once.

use std::error::Error;

use posthaste_core::api::notice::Notice;
use posthaste_core::stored::{DisabledMark, layout};
use posthaste_ports::{ObjectStore, PortError, Ports};
use posthaste_services::{NoticeError, timeout_at};

use super::ended;
use crate::budget::Budget;
use crate::ports::{PortsNotifier, WakePorts};

/// Most marks that are looked at in one run.
const MARKS_MAX: usize = 100;

/// Why notices are not sent in this run.
#[derive(Debug, thiserror::Error)]
enum NotifyError {
    #[error("failed to reach the marks of disabled subscriptions")]
    Store(#[from] PortError),
    #[error("failed to send the notice")]
    Notice(#[from] NoticeError),
}

/// Sends notices of disabled subscriptions.
pub(crate) struct DisabledNotices<'a, P: Ports> {
    notifier: PortsNotifier<'a, P>,
    store: &'a P::Store,
    clock: &'a P::Clock,
}

impl<'a, P: Ports> DisabledNotices<'a, P> {
    pub(crate) fn new(ports: &'a WakePorts<P>) -> Self {
        Self { notifier: ports.notifier(), store: &ports.state, clock: &ports.clock }
    }

    /// Sends the notices of the subscriptions that operators disabled since the last run.
    pub(crate) async fn run(&self, budget: Budget<'_>) {
        let ended = timeout_at(self.clock, budget.work, Box::pin(self.notify(budget))).await;
        ended::log("notices of disabled subscriptions", ended);
    }

    async fn notify(&self, budget: Budget<'_>) -> Result<(), NotifyError> {
        for listed in self.store.list(layout::TELLING, None, MARKS_MAX).await?.objects {
            if !budget.may_begin(self.clock) {
                break;
            }
            let Some(object) = self.store.get(&listed.key).await? else { continue };
            match DisabledMark::parse(&object.bytes) {
                Ok(mark) => {
                    let notice = Notice::Disabled(mark.notice());
                    // Boxed: of the futures of the SDK, the compiler would find the layout too deep
                    // otherwise.
                    Box::pin(self.notifier.tell(&mark.topic, &[notice])).await?;
                }
                Err(error) => {
                    let error = &error as &dyn Error;
                    let key = &listed.key;
                    tracing::error!(%key, error, "mark of a disabled subscription not read, no notice sent");
                }
            }
            self.store.delete(&listed.key).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Kit;

    #[tokio::test]
    async fn a_mark_that_cannot_be_read_is_deleted_and_keeps_no_other() {
        let kit = Kit::new();
        for n in 0..3 {
            kit.store.write(&format!("telling/orders.s{n}"), "?");
        }
        DisabledNotices::new(&kit.ports).run(kit.budget()).await;
        assert_eq!(kit.store.keys(layout::TELLING), Vec::<String>::new());
    }
}
