//! Notices of links and subscriptions that are down, or up again: each change is sent to every
//! topic that wants to know, at least once. [`posthaste_core::circuit::state_change`] decides which
//! changes there are.
//!
//! Notices and the release do not depend on each other: where one fails, the other goes on. The
//! next run sends what this one has no time for.

mod addressees;
mod former;
mod state_change;

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::sync::Arc;

use futures_util::future::join;
use futures_util::{StreamExt, stream};
use posthaste_core::circuit::{LinkShard, is_over};
use posthaste_core::model::TopicName;
use posthaste_ports::{Clock, Ports};
use posthaste_services::{LinksError, NoticeError, RegistryError};

use super::ended;
use crate::ports::WakePorts;
use crate::run::WakeRun;
use addressees::{AddressError, find_addressees};
use former::forget_former;
use state_change::{AddressedChange, changes_per_mark, changes_to_send};

/// Addressees that are notified at once. One takes some 30 ms, so that a thousand are notified in
/// seconds.
const NOTIFIED_AT_ONCE: usize = 16;

/// Why notices are not sent in this run.
#[derive(Debug, thiserror::Error)]
enum NotifyError {
    #[error("failed to read or write what is known of links")]
    Links(#[from] LinksError),
    #[error("failed to find out who is notified")]
    Address(#[from] AddressError),
}

/// Sends the notices, and forgets links and subscriptions of which nothing has to be known any more.
/// The topic `notices_topic` is notified of every change.
pub(crate) async fn check_links<P: Ports>(run: WakeRun<'_, P>, notices_topic: Option<&TopicName>) {
    let look = async {
        let parts = run.ports.links.read_all().await?;
        if !parts.is_empty() {
            run.note_work();
        }
        // Neither waits for the other, or fails with it.
        let notices = notify_all(run, notices_topic, &parts);
        let former = forget_former(run, &parts);
        join(
            ended::run_and_log(run, "notices of links", notices),
            ended::run_and_log(run, "health of former subscriptions", former),
        )
        .await;
        Ok::<_, LinksError>(())
    };
    ended::run_and_log(run, "state of links", look).await;
}

async fn notify_all<P: Ports>(
    run: WakeRun<'_, P>,
    notices_topic: Option<&TopicName>,
    parts: &[(usize, Arc<LinkShard>)],
) -> Result<(), NotifyError> {
    let WakePorts { links, clock, .. } = run.ports;
    let now = clock.now();
    let settings = links.settings();
    let changes = parts
        .iter()
        .flat_map(|(index, shard)| changes_to_send(*index, shard, now, settings))
        .collect();
    let addressed = find_addressees(run.ports, notices_topic, changes).await?;
    let mut rest = addressed.as_slice();
    while !rest.is_empty() {
        if !run.may_begin() {
            return Ok(());
        }
        let (next, later) = rest.split_at(changes_per_mark(rest));
        notify_and_mark(run.ports, next).await?;
        rest = later;
    }
    for (index, shard) in parts {
        if shard
            .conditions()
            .any(|(_, condition)| is_over(condition, now, settings))
        {
            links
                .change_shard(*index, |shard| shard.forget_outdated(now, settings))
                .await?;
        }
    }
    Ok(())
}

/// Sends changes, and writes down which were sent. The next run sends the others.
async fn notify_and_mark<P: Ports>(
    ports: &WakePorts<P>,
    changes: &[AddressedChange],
) -> Result<(), LinksError> {
    let unsent = notify_addressees(ports, changes).await;
    let mut by_shard = BTreeMap::<usize, Vec<&AddressedChange>>::new();
    for (_, it) in changes
        .iter()
        .enumerate()
        .filter(|(place, _)| !unsent.contains(place))
    {
        it.log();
        by_shard.entry(it.change.index).or_default().push(it);
    }
    for (index, notified) in by_shard {
        let marked = ports.links.change_shard(index, |shard| {
            notified
                .iter()
                .fold(false, |is_changed, it| it.mark_sent(shard) | is_changed)
        });
        marked.await?;
    }
    Ok(())
}

/// Notifies each addressee of all its changes, and answers the places of the changes that some
/// addressee has yet to get.
async fn notify_addressees<P: Ports>(
    ports: &WakePorts<P>,
    changes: &[AddressedChange],
) -> BTreeSet<usize> {
    let mut by_addressee = BTreeMap::<&String, (&TopicName, Vec<usize>)>::new();
    for (place, it) in changes.iter().enumerate() {
        for (folded, name) in &it.to {
            by_addressee
                .entry(folded)
                .or_insert_with(|| (name, Vec::new()))
                .1
                .push(place);
        }
    }
    let unsent = by_addressee
        .into_values()
        .map(|(name, places)| notify_one(ports, name, changes, places));
    // Gathered first: the compiler finds no bound for a closure over references that is kept while
    // others wait.
    let unsent = stream::iter(unsent.collect::<Vec<_>>()).buffer_unordered(NOTIFIED_AT_ONCE);
    unsent.flat_map(stream::iter).collect().await
}

/// Notifies one addressee, and answers the changes that it has yet to get.
async fn notify_one<P: Ports>(
    ports: &WakePorts<P>,
    name: &TopicName,
    changes: &[AddressedChange],
    places: Vec<usize>,
) -> Vec<usize> {
    let notices = places
        .iter()
        .filter_map(|place| changes.get(*place))
        .map(|it| it.change.notice());
    let notices: Vec<_> = notices.collect();
    // Boxed: the compiler would find the layout of the SDK's futures too deep otherwise.
    let Err(error) = Box::pin(ports.notifier().send_to_topic(name, &notices)).await else {
        return Vec::new();
    };
    let changes = notices.len();
    let dyn_error = &error as &dyn Error;
    tracing::error!(notices_topic = %name, changes, error = dyn_error, "notices of links not sent");
    match error {
        // Waiting does not mend a broken record, and the others would be notified again and again.
        NoticeError::Topic(RegistryError::Record(_)) => Vec::new(),
        NoticeError::Topic(_) | NoticeError::FanOut(_) => places,
    }
}
