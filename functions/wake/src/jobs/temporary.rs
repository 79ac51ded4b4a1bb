//! Temporary entities: subscriptions whose time is over, and subscriptions and topics that are
//! idle, are taken out of their records. deliver dead-letters what still waits for them, when it
//! finds no subscription to deliver to.
//!
//! A run looks only at topics that `temporary/` names.

mod topic;
mod waiting;

use std::error::Error;

use futures_util::{StreamExt, stream};
use posthaste_core::model::Timestamp;
use posthaste_core::stored::layout;
use posthaste_ports::validate::LIST_PAGE_MAX;
use posthaste_ports::{ObjectMeta, ObjectStore, Ports};
use posthaste_services::catch_panic::catch_panic;

use crate::ports::WakePorts;
use crate::run::WakeRun;
use topic::{SweptCounts, TopicSweep};
use waiting::WaitingSearch;

/// Topics looked at side by side.
const TOPICS_AT_ONCE: usize = 8;

/// Sweeps temporary entities.
pub(crate) struct TemporarySweep<'a, P: Ports> {
    run: WakeRun<'a, P>,
    topics: TopicSweep<'a, P>,
}

/// The result of a run.
#[derive(Debug, Default)]
pub(crate) struct TemporaryRun {
    /// The last topic that was looked at; `None` at the start, and when all were.
    pub(crate) swept_to: Option<String>,
    /// Entities that were deleted.
    pub(crate) swept: SweptCounts,
}

impl<'a, P: Ports> TemporarySweep<'a, P> {
    /// The sweep of one run. No object is parked before the key `parked_from`, and the last outage
    /// ended at `awake_since`.
    pub(crate) fn new(
        run: WakeRun<'a, P>,
        parked_from: Option<String>,
        awake_since: Option<Timestamp>,
    ) -> Self {
        let WakePorts {
            state: store,
            clock,
            entropy,
            ..
        } = run.ports;
        let waiting = WaitingSearch::new(store, parked_from);
        Self {
            run,
            topics: TopicSweep {
                store,
                clock,
                entropy,
                waiting,
                awake_since,
                left: run.left,
            },
        }
    }

    /// Looks at every topic that is temporary or has temporary subscriptions, from where the last
    /// run ended and while there is time to begin. A run that begins in the middle counts as
    /// work: it does not see the topics before.
    pub(crate) async fn run(&self, swept_to: Option<String>) -> TemporaryRun {
        if swept_to.is_some() {
            self.run.note_work();
        }
        let mut result = TemporaryRun {
            swept_to,
            ..TemporaryRun::default()
        };
        let _ = self.run.in_time(self.sweep_pages(&mut result)).await;
        result
    }

    async fn sweep_pages(&self, result: &mut TemporaryRun) {
        let store = &self.run.ports.state;
        while self.run.has_time() {
            let listed = store
                .list(layout::TEMPORARY, result.swept_to.as_deref(), LIST_PAGE_MAX)
                .await;
            let page = match listed {
                Ok(page) => page,
                Err(error) => {
                    self.run.note_work();
                    tracing::warn!(error = &error as &dyn Error, "temporary topics not listed");
                    return;
                }
            };
            if !self.sweep_page(page.objects, result).await {
                return;
            }
            result.swept_to = page.next_after;
            if result.swept_to.is_none() {
                return;
            }
        }
    }

    /// Sweeps the topics of a page in its order, so that one key says how far a run came. Tells
    /// whether all were looked at.
    async fn sweep_page(&self, page: Vec<ObjectMeta>, result: &mut TemporaryRun) -> bool {
        if !page.is_empty() {
            self.run.note_work();
        }
        let mut sweeps = stream::iter(page)
            .map(|mark| async move { (self.sweep_marked(&mark).await, mark.key) })
            .buffered(TOPICS_AT_ONCE);
        while let Some((swept, key)) = sweeps.next().await {
            let Some(SweptCounts {
                topics,
                subscriptions,
            }) = swept
            else {
                return false;
            };
            result.swept.topics += topics;
            result.swept.subscriptions += subscriptions;
            result.swept_to = Some(key);
        }
        true
    }

    /// Sweeps one topic; `None` if there is no time to begin any more.
    async fn sweep_marked(&self, mark: &ObjectMeta) -> Option<SweptCounts> {
        if !self.run.has_time() {
            return None;
        }
        let key = &mark.key;
        let Some(topic) = layout::temporary_topic(key) else {
            tracing::warn!(%key, "not the name of a topic");
            return Some(SweptCounts::default());
        };
        let swept = catch_panic(self.topics.sweep_topic(&topic, mark.modified_at)).await;
        let error = match &swept {
            Ok(Ok(swept)) => return Some(*swept),
            Ok(Err(error)) => error as &dyn Error,
            Err(error) => error,
        };
        tracing::error!(%topic, error, "temporary topic not checked, the next run tries again");
        Some(SweptCounts::default())
    }
}
