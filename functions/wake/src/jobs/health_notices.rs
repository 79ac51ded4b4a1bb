//! Health of subscriptions: writes the tries that this process gathered, opens and closes
//! incidents, and sends their notices. [`posthaste_core::health`] decides which there are.
//!
//! An incident is written before its notice is sent, and marked afterwards. A run that is cut short
//! in between leaves the same notice, with the same id, to the next.

mod disproved;
mod error;
mod facts;
mod sending;

use std::collections::BTreeMap;
use std::error::Error;

use futures_util::future::join_all;
use posthaste_core::circuit::DeliveryTarget;
use posthaste_core::health::DueNotice;
use posthaste_core::model::TopicName;
use posthaste_ports::{Clock, Entropy, Ports};

use super::ended;
use crate::run::WakeRun;
use disproved::end_disproved_holds;
use error::HealthJobError;
use facts::{load_facts, load_missed_facts};
use sending::HealthNotifier;

/// Notices that are sent before they are marked. A crash repeats no more than these.
const SENT_PER_MARK: usize = 32;

/// Looks at health. The topic `notices_topic` is notified of every incident.
pub(crate) async fn check_health<P: Ports>(run: WakeRun<'_, P>, notices_topic: Option<&TopicName>) {
    ended::run_and_log(
        run,
        "health of subscriptions",
        decide_and_notify(run, notices_topic),
    )
    .await;
}

async fn decide_and_notify<P: Ports>(
    run: WakeRun<'_, P>,
    notices_topic: Option<&TopicName>,
) -> Result<(), HealthJobError> {
    let links = &run.ports.links;
    let arrivals = links.arrivals();
    arrivals
        .write_gathered(&run.ports.entropy.uuid().to_string())
        .await?;
    let book = arrivals.stored_book().await?;
    if book.is_empty() {
        return Ok(());
    }
    let mut of_links = BTreeMap::new();
    for (_, shard) in links.read_all().await? {
        for (target, condition) in shard.conditions() {
            if let DeliveryTarget::Link(link) = target {
                of_links.insert(link.to_string(), condition.clone());
            }
        }
    }
    let facts = load_facts(run.ports, &book).await?;
    end_disproved_holds(run, &book, &facts).await;
    let missed = load_missed_facts(run.ports, &book).await?;
    let now = run.ports.clock.now();
    let settings = &links.settings().arrivals;
    let book = arrivals
        .change_book(|book| {
            book.update_incidents(&facts, &of_links, now, settings);
            book.decide_missed(&missed, now);
        })
        .await?;
    // Otherwise an ordinary look suffices: new failures end a rest, and there is none while a link
    // is held.
    if book.may_change_soon(now, settings) {
        run.note_work();
    }
    let due = book.due_notices();
    if due.is_empty() {
        return Ok(());
    }
    let teller = HealthNotifier {
        ports: run.ports,
        book: &book,
        facts: &facts,
        notices_topic,
    };
    for part in due.chunks(SENT_PER_MARK) {
        if !run.may_begin() {
            return Ok(());
        }
        let told = send_all(&teller, part).await;
        arrivals
            .change_book(|book| told.iter().for_each(|notice| book.mark_told(notice)))
            .await?;
    }
    Ok(())
}

/// Sends notices, and answers those that went to all addressees. One that cannot be sent is left
/// to the next run, and does not keep the others.
async fn send_all<'a, P: Ports>(
    teller: &HealthNotifier<'_, P>,
    due: &'a [DueNotice],
) -> Vec<&'a DueNotice> {
    let sends: Vec<_> = due
        .iter()
        .map(|notice| teller.send_notice(notice))
        .collect();
    let mut told = Vec::new();
    for (notice, is_told) in due.iter().zip(join_all(sends).await) {
        match is_told {
            Ok(true) => told.push(notice),
            Ok(false) => {}
            Err(error) => {
                let error = &error as &dyn Error;
                tracing::error!(error, "notice of health not sent");
            }
        }
    }
    told
}

#[cfg(test)]
mod tests;
