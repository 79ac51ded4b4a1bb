//! The queue of records, on their way into the delivery log.
//!
//! If one process has many invocations, many groups are settled side by side, and each has few
//! records. They take turns: while records are being sent, those of other groups gather, and the
//! next turn sends them all. A turn with few records may wait 25 ms for a commit to share. Other
//! groups do not wait for that turn once they have [`SENT_AT_ONCE_BYTES`] of records together.

use std::collections::BTreeMap;
use std::error::Error;
use std::mem::take;
use std::pin::pin;
use std::sync::Arc;

use futures_util::future::{Either, select};
use parking_lot::Mutex;
use posthaste_core::delivery_log::{RecordText, join_records};
use posthaste_core::model::TopicName;
use posthaste_ports::{Clock, ErrorKind, PortError, Ports};
use posthaste_services::delivery_log::{RECORDS_TIME, count_lost, log_lost, send_records};
use posthaste_services::{LogTally, timeout};
use tokio::sync::oneshot;

use crate::limits::RecordsSettings;

const SENDING: &str = "send records";

/// Bytes of waiting records that are sent without a turn: some 300 records with payloads of 1 KiB.
/// That is a third of the 1,000 messages that may be in flight, so that the others go on meanwhile.
/// With 256 KiB the rates are the same. With 128 KiB the message of records that share payloads is
/// so short that the embedded queue lets it wait.
const SENT_AT_ONCE_BYTES: usize = 512 * 1024;

/// Sends records.
pub(crate) struct RecordsQueue<P: Ports> {
    queue: Arc<P::Queue>,
    clock: P::Clock,
    pub(crate) settings: RecordsSettings,
    /// Records that were lost.
    lost: LogTally,
    waiting: Mutex<WaitingRecords>,
    turn: tokio::sync::Mutex<()>,
}

/// Records that are not sent yet.
#[derive(Default)]
struct WaitingRecords {
    groups: Vec<WaitingGroup>,
    bytes: usize,
}

/// Records of a group.
struct WaitingGroup {
    records: Vec<RecordText>,
    sent: oneshot::Sender<RecordsSent>,
}

/// The fate of records. An error means that some may be missing, and is that of all that were
/// sent together.
type RecordsSent = Result<(), Arc<PortError>>;

impl<P: Ports> RecordsQueue<P> {
    /// Sends to this queue.
    pub(crate) fn new(queue: Arc<P::Queue>, clock: P::Clock, settings: RecordsSettings) -> Self {
        let (lost, waiting, turn) = Default::default();
        Self {
            queue,
            clock,
            settings,
            lost,
            waiting,
            turn,
        }
    }

    /// Sends the records of a group, where groups take turns with those of others that wait.
    pub(crate) async fn send_records(&self, records: Vec<RecordText>) -> RecordsSent {
        if !self.settings.in_turns {
            return self.send_all(records.iter()).await;
        }
        let (sender, sent) = oneshot::channel();
        let are_many = self.waiting.lock().add_group(WaitingGroup {
            records,
            sent: sender,
        });
        let in_turn = async {
            if are_many {
                self.send_waiting().await;
                return sent.await;
            }
            // Another group may send them meanwhile.
            match select(sent, pin!(self.turn.lock())).await {
                Either::Left((sent, _)) => sent,
                Either::Right((_turn, sent)) => {
                    self.send_waiting().await;
                    sent.await
                }
            }
        };
        let error = match timeout(&self.clock, RECORDS_TIME, in_turn).await {
            Some(Ok(sent)) => return sent,
            // Another group, which sent them too, was given up in the middle of it.
            Some(Err(_)) => ErrorKind::Other,
            None => ErrorKind::TimedOut,
        };
        Err(Arc::new(PortError::new(SENDING, error)))
    }

    /// Sends all that wait, if any do.
    async fn send_waiting(&self) {
        let groups = take(&mut *self.waiting.lock()).groups;
        let sent = self
            .send_all(groups.iter().flat_map(|group| &group.records))
            .await;
        for WaitingGroup { sent: of_group, .. } in groups {
            // A group that was given up needs no answer.
            let _ = of_group.send(sent.clone());
        }
    }

    async fn send_all(&self, records: impl Iterator<Item = &RecordText>) -> RecordsSent {
        send_records(&*self.queue, &self.clock, join_records(records))
            .await
            .map_err(Arc::new)
    }

    /// Counts records that are missing in the log, by topic, and logs them: while all are refused,
    /// one line a minute.
    pub(crate) fn report_lost(
        &self,
        lost: &BTreeMap<&TopicName, usize>,
        error: &(dyn Error + 'static),
    ) {
        if let Some(records) = self.lost.add(count_lost(lost), self.clock.monotonic()) {
            log_lost(records, error);
        }
    }
}

impl WaitingRecords {
    /// Adds the records of a group. Answers whether all that wait are enough to be sent without a
    /// turn.
    fn add_group(&mut self, group: WaitingGroup) -> bool {
        self.bytes += group
            .records
            .iter()
            .map(RecordText::byte_len)
            .sum::<usize>();
        self.groups.push(group);
        self.bytes >= SENT_AT_ONCE_BYTES
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use futures_util::future::join_all;
    use posthaste_core::attempt::EntryVerdict;
    use posthaste_core::model::DeliveryLogMode;
    use posthaste_testkit::{CallFault, FaultPlan};
    use serde_json::json;
    use tokio::task::yield_now;

    use super::*;
    use crate::invocation::DeliveryJob;
    use crate::testing::{START, TestPorts, World, delivery, job, subscription};

    fn records(events: usize) -> Vec<RecordText> {
        let log = DeliveryLogMode::Payloads;
        let job = DeliveryJob {
            log,
            ..job(delivery(events), &subscription(json!({})))
        };
        job.take_records(&vec![EntryVerdict::Held; events], START)
    }

    fn queue(world: &World) -> RecordsQueue<TestPorts> {
        RecordsQueue::new(
            Arc::clone(&world.records),
            world.clock.clone(),
            RecordsSettings::EMBEDDED,
        )
    }

    /// Sends three groups while another has its turn.
    async fn sent(queue: &RecordsQueue<TestPorts>) -> Vec<RecordsSent> {
        let turn = queue.turn.lock().await;
        let ended = async {
            yield_now().await;
            drop(turn);
        };
        tokio::join!(
            join_all((1..4).map(|events| queue.send_records(records(events)))),
            ended
        )
        .0
    }

    #[tokio::test]
    async fn groups_that_wait_for_their_turn_share_a_message() {
        let world = World::new();
        let queue = queue(&world);
        assert!(sent(&queue).await.iter().all(Result::is_ok));
        assert_eq!(
            world.recorded().iter().map(Vec::len).collect::<Vec<_>>(),
            [6]
        );
        assert!(queue.send_records(records(2)).await.is_ok());
        assert_eq!(
            world.recorded().iter().map(Vec::len).collect::<Vec<_>>(),
            [2]
        );
    }

    /// A group whose records are [`SENT_AT_ONCE_BYTES`] alone.
    fn many() -> Vec<RecordText> {
        let many = records(SENT_AT_ONCE_BYTES / records(1)[0].byte_len() + 1);
        assert!(many.iter().map(RecordText::byte_len).sum::<usize>() >= SENT_AT_ONCE_BYTES);
        many
    }

    /// Many records do not wait for a turn, and take those that do along.
    #[tokio::test]
    async fn many_records_skip_the_turn_and_take_waiting_ones_along() {
        let world = World::new();
        let queue = queue(&world);
        let turn = queue.turn.lock().await;
        let mut few = Box::pin(queue.send_records(records(1)));
        assert!((&mut few).now_or_never().is_none());
        assert!(queue.send_records(many()).await.is_ok());
        assert!(few.await.is_ok());
        assert_eq!(world.recorded().concat().len(), many().len() + 1);
        let mut few = Box::pin(queue.send_records(records(2)));
        assert!(
            (&mut few).now_or_never().is_none(),
            "few have to wait again"
        );
        drop(turn);
        assert!(few.await.is_ok());
    }

    #[tokio::test]
    async fn a_group_with_the_turn_waits_for_records_that_another_sends() {
        let hangs = FaultPlan::nth(0, CallFault::HangBefore);
        let world = World::with_queues(&FaultPlan::none(), &hangs);
        let queue = queue(&world);
        let turn = queue.turn.lock().await;
        let mut few = Box::pin(queue.send_records(records(1)));
        assert!((&mut few).now_or_never().is_none());
        let mut sends_both = Box::pin(queue.send_records(many()));
        assert!((&mut sends_both).now_or_never().is_none());
        drop(turn);
        assert!((&mut few).now_or_never().is_none());
        drop(sends_both);
        assert_eq!(few.await.unwrap_err().kind, ErrorKind::Other);
        assert_eq!(world.recorded().len(), 0);
    }

    #[tokio::test]
    async fn each_group_hears_that_its_records_were_refused() {
        let refused = FaultPlan::nth(0, CallFault::Before(ErrorKind::Full));
        let world = World::with_queues(&FaultPlan::none(), &refused);
        let kinds: Vec<_> = sent(&queue(&world))
            .await
            .into_iter()
            .map(|it| it.unwrap_err().kind)
            .collect();
        assert_eq!(kinds, [ErrorKind::Full; 3]);
    }

    /// A group learns it if the one that was sending its records gave up in the middle.
    #[tokio::test]
    async fn group_whose_sender_gave_up_gets_an_error() {
        let hangs = FaultPlan::nth(0, CallFault::HangBefore);
        let world = World::with_queues(&FaultPlan::none(), &hangs);
        let queue = queue(&world);
        let turn = queue.turn.lock().await;
        let mut first = Box::pin(queue.send_records(records(1)));
        let mut second = Box::pin(queue.send_records(records(2)));
        assert!((&mut first).now_or_never().is_none());
        assert!((&mut second).now_or_never().is_none());
        drop(turn);
        assert!((&mut first).now_or_never().is_none());
        drop(first);
        assert_eq!(second.await.unwrap_err().kind, ErrorKind::Other);
        assert!(queue.send_records(records(1)).await.is_ok());
    }
}
