//! Notices of links and subscriptions that are down, or up again: each change is sent to every topic that
//! wants to know, at least once. Which changes there are is decided in
//! [`posthaste_core::circuit::state_change`].
//!
//! Beside the release, and apart from it: where the one fails, the other goes on. The next run sends what
//! this one does not come to.

mod addressees;
mod state_change;

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;

use futures_util::{StreamExt, stream};
use posthaste_core::circuit::{Shard, is_over};
use posthaste_core::model::TopicName;
use posthaste_ports::{Clock, Ports};
use posthaste_services::{LinkHealth, LinksError, NoticeError, RegistryError, timeout_at};

use super::ended;
use crate::budget::Budget;
use crate::ports::{PortsNotifier, WakePorts};
use addressees::{AddressError, Addressees};
use state_change::{Addressed, changes, together};

/// Addressees that are notified at once. One takes some 30 ms, so that a thousand are notified in seconds.
const NOTIFIED_AT_ONCE: usize = 16;

/// Why notices are not sent in this run.
#[derive(Debug, thiserror::Error)]
enum NotifyError {
    #[error("failed to read or write what is known of links")]
    Links(#[from] LinksError),
    #[error("failed to find out who is notified")]
    Address(#[from] AddressError),
}

/// Sends notices of links.
pub(crate) struct LinkNotices<'a, P: Ports> {
    addressees: Addressees<'a, P>,
    notifier: PortsNotifier<'a, P>,
    links: &'a LinkHealth<P::Store, P::Clock>,
    clock: &'a P::Clock,
}

impl<'a, P: Ports> LinkNotices<'a, P> {
    /// `notices_topic` is notified of every change.
    pub(crate) fn new(ports: &'a WakePorts<P>, notices_topic: Option<&'a TopicName>) -> Self {
        let WakePorts { registry, state: store, links, clock, .. } = ports;
        let addressees = Addressees { registry, store, notices_topic };
        Self { addressees, notifier: ports.notifier(), links, clock }
    }

    /// Sends the notices, and forgets links of which nothing has to be known any more.
    pub(crate) async fn run(&self, budget: Budget<'_>) {
        let ended = timeout_at(self.clock, budget.work, Box::pin(self.notify_all(budget))).await;
        ended::log("notices of links", ended);
    }

    async fn notify_all(&self, budget: Budget<'_>) -> Result<(), NotifyError> {
        let (now, settings) = (self.clock.now(), self.links.settings());
        let parts = self.links.all().await?;
        let changes = parts.iter().flat_map(|(index, shard)| changes(*index, shard, now, settings)).collect();
        let addressed = self.addressees.of(changes).await?;
        let mut rest = addressed.as_slice();
        while !rest.is_empty() {
            if !budget.may_begin(self.clock) {
                return Ok(());
            }
            let (next, later) = rest.split_at(together(rest));
            self.notify_and_mark(next).await?;
            rest = later;
        }
        for (index, shard) in parts {
            if shard.conditions().any(|(_, condition)| is_over(condition, now, settings)) {
                self.links.change(index, |shard| shard.tidy(now, settings)).await?;
            }
        }
        Ok(())
    }

    /// Sends changes, and writes down which were sent. The next run sends one that could not be.
    async fn notify_and_mark(&self, changes: &[Addressed]) -> Result<(), LinksError> {
        let unsent = self.notify(changes).await;
        let mut parts = BTreeMap::<usize, Vec<&Addressed>>::new();
        for (_, it) in changes.iter().enumerate().filter(|(place, _)| !unsent.contains(place)) {
            it.log();
            parts.entry(it.change.index).or_default().push(it);
        }
        for (index, notified) in parts {
            let mark =
                |shard: &mut Shard| notified.iter().fold(false, |is_changed, it| it.mark(shard) | is_changed);
            self.links.change(index, mark).await?;
        }
        Ok(())
    }

    /// Notifies each addressee of all its changes, and answers the places of the changes that some addressee
    /// has yet to get.
    async fn notify(&self, changes: &[Addressed]) -> BTreeSet<usize> {
        let mut by_addressee = BTreeMap::<&String, (&TopicName, Vec<usize>)>::new();
        for (place, it) in changes.iter().enumerate() {
            for (folded, name) in &it.to {
                by_addressee.entry(folded).or_insert_with(|| (name, Vec::new())).1.push(place);
            }
        }
        let unsent = by_addressee.into_values().map(|(name, places)| self.notify_one(name, changes, places));
        // Gathered first: the compiler finds no bound for a closure over references that is kept while others
        // wait.
        let unsent = stream::iter(unsent.collect::<Vec<_>>()).buffer_unordered(NOTIFIED_AT_ONCE);
        unsent.flat_map(stream::iter).collect().await
    }

    /// Notifies one addressee, and answers the changes that it has yet to get.
    async fn notify_one(&self, name: &TopicName, changes: &[Addressed], places: Vec<usize>) -> Vec<usize> {
        let notices = places.iter().filter_map(|place| changes.get(*place)).map(|it| it.change.notice());
        let notices: Vec<_> = notices.collect();
        // Boxed: of the futures of the SDK, the compiler would find the layout too deep otherwise.
        let Err(error) = Box::pin(self.notifier.tell_system(name, &notices)).await else {
            return Vec::new();
        };
        let (changes, dyn_error) = (notices.len(), &error as &dyn Error);
        tracing::error!(notices_topic = %name, changes, error = dyn_error, "notices of links not sent");
        match error {
            // Waiting does not mend a broken record, and the others would be notified again and again.
            NoticeError::Topic(RegistryError::Record(_)) => Vec::new(),
            NoticeError::Topic(_) | NoticeError::FanOut(_) => places,
        }
    }
}
