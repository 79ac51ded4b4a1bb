//! Telling of links and subscriptions that are down, or up again: what is to be told is decided in
//! [`posthaste_core::health::news`], and each change is told once to every topic that wants to know, at least once.
//!
//! Beside the release, and apart from it: where the one fails, the other goes on. What a run does not come to is told by
//! the next one.

mod addressees;

use std::collections::BTreeMap;
use std::error::Error;

use posthaste_core::health::{Condition, News, Shard, Target, is_over, news, told};
use posthaste_core::name::TopicName;
use posthaste_core::notice::{LinkChanged, Notice};
use posthaste_core::time::Timestamp;
use posthaste_ports::{
    Clock, Entropy, FanOut, LinksError, NoticeError, Notifier, ObjectStore, PortError, QueueSender,
    RegistryError,
};

use crate::limits::{Limits, within};
use crate::{Wake, WakePorts};

/// So many changes are told before they are marked as told: what a crash repeats at most.
const CHANGES_PER_MARK: usize = 50;

/// A change that is to be told.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) target: Target,
    condition: Condition,
    news: News,
}

/// Whom a change is told, by folded name, so that nobody is told twice.
pub(crate) type Addressees = BTreeMap<String, TopicName>;

/// Why changes are not told in this run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TellError {
    #[error("failed to read or write what is known of links")]
    Links(#[from] LinksError),
    #[error("failed to list the topics")]
    Topics(#[from] PortError),
    #[error("failed to read the topics")]
    Topic(#[from] RegistryError),
}

impl<Q, S, D, C, E> Wake<Q, S, D, C, E>
where
    Q: QueueSender,
    S: ObjectStore,
    D: ObjectStore,
    C: Clock,
    E: Entropy,
{
    /// Tells what is to be told of links, and forgets those of which nothing has to be known any more.
    pub(crate) async fn tell_links(&self, limits: Limits) {
        match within(&self.ports.clock, limits.work, Box::pin(self.tell_changes(limits))).await {
            Some(Ok(())) => {}
            Some(Err(error)) => {
                tracing::error!(
                    error = &error as &dyn Error,
                    "changes of links not told, the next run goes on"
                );
            }
            None => tracing::error!("changes of links not told to the end in time, the next run goes on"),
        }
    }

    async fn tell_changes(&self, limits: Limits) -> Result<(), TellError> {
        let (now, settings) = (self.ports.clock.now(), self.ports.links.settings());
        for (index, shard) in self.ports.links.all().await? {
            let changes = self.changes(&shard, now);
            for changes in changes.chunks(CHANGES_PER_MARK) {
                if !self.may_begin(limits) {
                    return Ok(());
                }
                self.tell_and_mark(index, changes).await?;
            }
            if shard.conditions().any(|(_, condition)| is_over(condition, now, settings)) {
                self.ports.links.change(index, |shard| shard.tidy(now, settings)).await?;
            }
        }
        Ok(())
    }

    fn changes(&self, shard: &Shard, now: Timestamp) -> Vec<Change> {
        let settings = self.ports.links.settings();
        let change = |(target, condition): (Target, &Condition)| {
            let news = news(condition, now, settings)?;
            Some(Change { target, condition: condition.clone(), news })
        };
        shard.conditions().filter_map(change).collect()
    }

    /// Tells changes, and writes down which were told. One that could not be is told by the next run.
    async fn tell_and_mark(&self, index: usize, changes: &[Change]) -> Result<(), TellError> {
        let mut is_told = Vec::with_capacity(changes.len());
        for (change, to) in changes.iter().zip(self.addressees(changes).await?) {
            let result = self.tell_all(change, &to).await;
            if let Err(error) = &result {
                tracing::error!(target = %change.target, error = error as &dyn Error, "a change of a link not told, the next run tries again");
            } else {
                change.log();
            }
            is_told.push(result.is_ok());
        }
        let mark = |shard: &mut Shard| {
            let mut is_changed = false;
            for (change, _) in changes.iter().zip(&is_told).filter(|(_, is_told)| **is_told) {
                is_changed |= shard.change(&change.target, |it| change.marked(it));
            }
            is_changed
        };
        self.ports.links.change(index, mark).await?;
        Ok(())
    }

    async fn tell_all(&self, change: &Change, to: &Addressees) -> Result<(), NoticeError> {
        let notifier = self.notifier();
        let Change { target, condition, news } = change;
        let notice = Notice::Link(LinkChanged { target, condition, news: *news });
        for name in to.values() {
            // Boxed: of the futures of the SDK, the compiler would find the layout too deep otherwise.
            Box::pin(notifier.tell_system(name, &[notice])).await?;
        }
        Ok(())
    }

    /// The way of notices.
    pub(crate) fn notifier(&self) -> Notifier<'_, Q, S, C, E> {
        let WakePorts { deliveries, state: payloads, registry, clock, entropy, .. } = &self.ports;
        Notifier { registry, fan_out: FanOut { deliveries, payloads, clock, entropy } }
    }
}

impl Change {
    /// The condition that stands there by now, marked. That it is down belongs to the spell that was told; after that it is
    /// up, it is to be told anew whatever it is.
    fn marked(&self, now: &Condition) -> Option<Condition> {
        let is_meant = self.news == News::Up || now.failing_since == self.condition.failing_since;
        is_meant.then(|| told(now, self.news))
    }

    fn log(&self) {
        let (target, since) = (&self.target, self.condition.since);
        match self.news {
            News::Down => {
                let Condition { failures, last, failing_since, .. } = &self.condition;
                tracing::warn!(link = %target, %since, %failing_since, failures, last = ?last.outcome, status = last.status, "link down");
            }
            News::Up => tracing::info!(link = %target, %since, "link up again"),
        }
    }
}
