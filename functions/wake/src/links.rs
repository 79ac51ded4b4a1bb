//! Telling of links and subscriptions that are down, or up again: what is to be told is decided in
//! [`posthaste_core::circuit::news`], and each change is told once to every topic that wants to know, at least once.
//!
//! Beside the release, and apart from it: where the one fails, the other goes on. What a run does not come to is told by
//! the next one.

mod addressees;

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;

use futures_util::{StreamExt, stream};
use posthaste_core::api::notice::{LinkChanged, Notice};
use posthaste_core::circuit::{Condition, News, Shard, Target, is_over, news, told};
use posthaste_core::model::name::TopicName;
use posthaste_core::model::time::Timestamp;
use posthaste_ports::{Clock, Entropy, ObjectStore, PortError, QueueSender};
use posthaste_services::{FanOut, LinksError, NoticeError, Notifier, RegistryError};

use self::addressees::Addressed;
use crate::limits::{Limits, within};
use crate::{Wake, WakePorts};

/// Changes are told to so many addressees, each counted for each of its changes, before they are marked as told: what a
/// crash repeats at most, and what is done in the time in which nothing new is begun.
const TOLD_PER_MARK: usize = 1000;

/// Addressees that are told at once. One takes some 30 ms, so that a thousand are told in seconds.
const TOLD_AT_ONCE: usize = 16;

/// A change that is to be told.
#[derive(Debug)]
struct Change {
    /// The part that it is in.
    index: usize,
    target: Target,
    condition: Condition,
    news: News,
}

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
        let parts = self.ports.links.all().await?;
        let changes = parts.iter().flat_map(|(index, shard)| self.changes(*index, shard, now)).collect();
        let addressed = self.address(changes).await?;
        let mut rest = addressed.as_slice();
        while !rest.is_empty() {
            if !self.may_begin(limits) {
                return Ok(());
            }
            let (next, later) = rest.split_at(together(rest));
            self.tell_and_mark(next).await?;
            rest = later;
        }
        for (index, shard) in parts {
            if shard.conditions().any(|(_, condition)| is_over(condition, now, settings)) {
                self.ports.links.change(index, |shard| shard.tidy(now, settings)).await?;
            }
        }
        Ok(())
    }

    fn changes(&self, index: usize, shard: &Shard, now: Timestamp) -> Vec<Change> {
        let settings = self.ports.links.settings();
        let change = |(target, condition): (Target, &Condition)| {
            let news = news(condition, now, settings)?;
            Some(Change { index, target, condition: condition.clone(), news })
        };
        shard.conditions().filter_map(change).collect()
    }

    /// Tells changes, and writes down which were told. One that could not be is told by the next run.
    async fn tell_and_mark(&self, changes: &[Addressed]) -> Result<(), TellError> {
        let untold = self.tell(changes).await;
        let mut parts = BTreeMap::<usize, Vec<&Addressed>>::new();
        for (_, it) in changes.iter().enumerate().filter(|(place, _)| !untold.contains(place)) {
            it.log();
            parts.entry(it.change.index).or_default().push(it);
        }
        for (index, told) in parts {
            let mark =
                |shard: &mut Shard| told.iter().fold(false, |is_changed, it| it.mark(shard) | is_changed);
            self.ports.links.change(index, mark).await?;
        }
        Ok(())
    }

    /// Tells each addressee all that it is told of these changes, and answers the places of those that not everybody was
    /// told.
    async fn tell(&self, changes: &[Addressed]) -> BTreeSet<usize> {
        let mut by_addressee = BTreeMap::<&String, (&TopicName, Vec<usize>)>::new();
        for (place, it) in changes.iter().enumerate() {
            for (folded, name) in &it.to {
                by_addressee.entry(folded).or_insert_with(|| (name, Vec::new())).1.push(place);
            }
        }
        let told = by_addressee.into_values().map(|(name, places)| self.tell_one(name, changes, places));
        // Gathered first: the compiler finds no bound for a closure over references that is kept while others wait.
        let untold =
            stream::iter(told.collect::<Vec<_>>()).buffer_unordered(TOLD_AT_ONCE).flat_map(stream::iter);
        untold.collect().await
    }

    /// Tells an addressee these changes, and answers those of them that it was not told and is to be.
    async fn tell_one(&self, name: &TopicName, changes: &[Addressed], places: Vec<usize>) -> Vec<usize> {
        let notices = places.iter().filter_map(|place| changes.get(*place)).map(|it| it.change.notice());
        let notices: Vec<_> = notices.collect();
        // Boxed: of the futures of the SDK, the compiler would find the layout too deep otherwise.
        let Err(error) = Box::pin(self.notifier().tell_system(name, &notices)).await else {
            return Vec::new();
        };
        let (changes, dyn_error) = (notices.len(), &error as &dyn Error);
        tracing::error!(notices_topic = %name, changes, error = dyn_error, "changes of links not told");
        match error {
            // Waiting does not mend a broken record, and the others would be told again and again.
            NoticeError::Topic(RegistryError::Record(_)) => Vec::new(),
            NoticeError::Topic(_) | NoticeError::FanOut(_) => places,
        }
    }

    /// The way of notices.
    pub(crate) fn notifier(&self) -> Notifier<'_, Q, S, C, E> {
        let WakePorts { deliveries, state: payloads, registry, clock, entropy, .. } = &self.ports;
        Notifier { registry, fan_out: FanOut { deliveries, payloads, clock, entropy } }
    }
}

/// How many of these, at least one, are told before they are marked.
fn together(changes: &[Addressed]) -> usize {
    let told = changes.iter().scan(0, |sum, it| {
        *sum += it.to.len();
        Some(*sum)
    });
    told.take_while(|sum| *sum <= TOLD_PER_MARK).count().max(1)
}

impl Addressed {
    /// Writes down that it was told; what is of a subscription that is not there any more is forgotten. Whether anything
    /// changed.
    fn mark(&self, shard: &mut Shard) -> bool {
        if self.is_gone {
            return shard.forget([&self.change.target]);
        }
        shard.change(&self.change.target, |it| self.change.marked(it))
    }

    fn log(&self) {
        if self.is_gone {
            return tracing::info!(link = %self.change.target, "no such subscription any more, forgotten");
        }
        self.change.log();
    }
}

impl Change {
    fn notice(&self) -> Notice<'_> {
        Notice::Link(LinkChanged { target: &self.target, condition: &self.condition, news: self.news })
    }

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

#[cfg(test)]
mod tests {
    use super::*;
    use posthaste_core::attempt::outcome::OutcomeName;
    use posthaste_core::circuit::{Failure, HealthSettings, Observation};

    fn addressed(to: usize) -> Addressed {
        let last = Failure { outcome: OutcomeName::Busy, status: None };
        let failing = Observation::Failing { failures: 10, last, began: Timestamp::EPOCH };
        let target = Target::parse("https://a.example:443").unwrap();
        let mut shard = Shard::default();
        shard.observe(&target, &failing, Timestamp::EPOCH, &HealthSettings::default());
        let condition = shard.condition(&target).unwrap().clone();
        let name = |number: usize| TopicName::parse(&format!("ops{number}")).unwrap();
        let to = (0..to).map(|number| (name(number).folded(), name(number))).collect();
        Addressed { change: Change { index: 0, target, condition, news: News::Down }, to, is_gone: false }
    }

    #[test]
    fn changes_are_marked_after_so_many_were_told_however_many_that_are() {
        let check = |to: &[usize], expected: usize| {
            let changes: Vec<_> = to.iter().map(|to| addressed(*to)).collect();
            assert_eq!(together(&changes), expected, "{to:?}");
        };
        check(&[1], 1);
        check(&[TOLD_PER_MARK + 1, 1], 1);
        check(&[TOLD_PER_MARK, 1], 1);
        check(&[400, 400, 200, 1], 3);
        check(&[400, 400, 201, 1], 2);
        check(&vec![0; 3000], 3000);
    }
}
