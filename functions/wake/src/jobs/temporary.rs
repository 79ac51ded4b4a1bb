//! Temporary entities: subscriptions whose time is over, and subscriptions and topics that are idle, leave
//! their records. deliver dead-letters what still waits for them, when it finds no subscription to deliver
//! to.
//!
//! Only topics that `temporary/` names are looked at.

mod topic;
mod waiting;

use std::error::Error;

use futures_util::StreamExt;
use futures_util::stream;
use posthaste_core::model::Timestamp;
use posthaste_core::stored::layout;
use posthaste_ports::validate::LIST_PAGE_MAX;
use posthaste_ports::{ObjectMeta, ObjectStore, Ports};
use posthaste_services::catch_panic::catch_panic;
use posthaste_services::timeout_at;

use crate::budget::Budget;
use crate::ports::WakePorts;
use topic::{Swept, TopicSweep};
use waiting::Waiting;

/// Topics looked at side by side.
const TOPICS_AT_ONCE: usize = 8;

/// Sweeps temporary entities.
pub(crate) struct Temporary<'a, P: Ports> {
    topics: TopicSweep<'a, P>,
    store: &'a P::Store,
    clock: &'a P::Clock,
}

/// One run, and its result.
#[derive(Debug, Default)]
pub(crate) struct TemporaryRun {
    /// The last topic that was looked at; `None` at the start, and when all were.
    pub(crate) swept_to: Option<String>,
    /// Entities that were deleted.
    pub(crate) swept: Swept,
}

impl<'a, P: Ports> Temporary<'a, P> {
    /// The sweep of one run: nothing is parked before the key `parked_from`, and the last outage ended at
    /// `awake_since`.
    pub(crate) fn new(
        ports: &'a WakePorts<P>,
        parked_from: Option<String>,
        awake_since: Option<Timestamp>,
    ) -> Self {
        let WakePorts { state: store, clock, .. } = ports;
        let waiting = Waiting::new(store, parked_from);
        Self { topics: TopicSweep { store, clock, waiting, awake_since }, store, clock }
    }

    /// Looks at every topic that is temporary or has temporary subscriptions, from where the last run ended
    /// and while there is time to begin.
    pub(crate) async fn run(&self, swept_to: Option<String>, budget: Budget<'_>) -> TemporaryRun {
        let mut run = TemporaryRun { swept_to, ..TemporaryRun::default() };
        let _ = timeout_at(self.clock, budget.work, Box::pin(self.sweep(&mut run, budget))).await;
        run
    }

    async fn sweep(&self, run: &mut TemporaryRun, budget: Budget<'_>) {
        while budget.has_time(self.clock) {
            let list = self.store.list(layout::TEMPORARY, run.swept_to.as_deref(), LIST_PAGE_MAX);
            let page = match list.await {
                Ok(page) => page,
                Err(error) => {
                    tracing::warn!(error = &error as &dyn Error, "temporary topics not listed");
                    return;
                }
            };
            if !self.sweep_page(page.objects, run, budget).await {
                return;
            }
            run.swept_to = page.next_after;
            if run.swept_to.is_none() {
                return;
            }
        }
    }

    /// Tells whether all of the page was looked at. In its order, so that one key says how far a run came.
    async fn sweep_page(&self, page: Vec<ObjectMeta>, run: &mut TemporaryRun, budget: Budget<'_>) -> bool {
        let sweep = |key: String| async move { (self.sweep_key(&key, budget).await, key) };
        let mut sweeps = stream::iter(page).map(|object| sweep(object.key)).buffered(TOPICS_AT_ONCE);
        while let Some((swept, key)) = sweeps.next().await {
            let Some(Swept { topics, subscriptions }) = swept else { return false };
            run.swept.topics += topics;
            run.swept.subscriptions += subscriptions;
            run.swept_to = Some(key);
        }
        true
    }

    /// Sweeps one topic; `None` if there is no time to begin any more.
    async fn sweep_key(&self, key: &str, budget: Budget<'_>) -> Option<Swept> {
        if !budget.has_time(self.clock) {
            return None;
        }
        let Some(topic) = layout::temporary_topic(key) else {
            tracing::warn!(%key, "not the name of a topic");
            return Some(Swept::default());
        };
        let swept = catch_panic(self.topics.sweep(&topic)).await;
        let error = match &swept {
            Ok(Ok(swept)) => return Some(*swept),
            Ok(Err(error)) => error as &dyn Error,
            Err(error) => error,
        };
        tracing::error!(%topic, error, "temporary topic not swept");
        Some(Swept::default())
    }
}
