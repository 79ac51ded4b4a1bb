//! Requests to SQS and S3, as AWS counts them.

use std::ops::AddAssign;

use posthaste_tests_aws::double::{Action, Journal, Seen};

/// Requests of one payer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Requests {
    /// SQS: sends, in chunks of 64 KB.
    pub(crate) sends: u64,
    /// SQS: receives, in chunks of 64 KB.
    pub(crate) receives: u64,
    /// SQS: deletes.
    pub(crate) deletes: u64,
    /// SQS: everything else.
    pub(crate) others: u64,
    /// S3: puts and listings, which have one price. Deleting is free.
    pub(crate) puts: u64,
    /// S3: gets, also those answered 304 or 404.
    pub(crate) gets: u64,
}

/// The requests of every function, and the number of invocations.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Bill {
    /// By publish.
    pub(crate) publish: Requests,
    /// By the event source mapping of deliver; receives that brought nothing are left out.
    pub(crate) mapping: Requests,
    /// By deliver.
    pub(crate) deliver: Requests,
    /// By wake, without the requests of runs that find nothing.
    pub(crate) wake: Requests,
    /// By the monitor.
    pub(crate) monitor: Requests,
    /// By record and by its event source mapping; receives that brought nothing are left out.
    pub(crate) record: Requests,
    /// Invocations of publish.
    pub(crate) publish_invocations: u64,
    /// Invocations of deliver.
    pub(crate) deliver_invocations: u64,
    /// Invocations of record by its queue.
    pub(crate) record_invocations: u64,
}

impl Requests {
    /// The requests of a journal.
    pub(crate) fn of(journal: &Journal) -> Self {
        let mut requests = Self::default();
        journal.seen().iter().for_each(|seen| requests.add(seen));
        requests
    }

    /// All of SQS.
    pub(crate) fn sqs(&self) -> u64 {
        self.sends + self.receives + self.deletes + self.others
    }

    /// The remainder of these after `others`.
    pub(crate) fn beside(self, others: Self) -> Self {
        Self {
            sends: self.sends - others.sends,
            receives: self.receives - others.receives,
            deletes: self.deletes - others.deletes,
            others: self.others - others.others,
            puts: self.puts - others.puts,
            gets: self.gets - others.gets,
        }
    }

    fn add(&mut self, seen: &Seen) {
        let counter = match seen.action {
            Action::SendMessage | Action::SendMessageBatch => &mut self.sends,
            Action::ReceiveMessage => &mut self.receives,
            Action::DeleteMessage | Action::DeleteMessageBatch => &mut self.deletes,
            Action::ChangeMessageVisibility
            | Action::ChangeMessageVisibilityBatch
            | Action::GetQueueAttributes => &mut self.others,
            Action::PutObject | Action::ListObjects => &mut self.puts,
            Action::GetObject => &mut self.gets,
            Action::DeleteObject => return,
        };
        *counter += seen.billed();
    }
}

impl Bill {
    /// The requests of all.
    pub(crate) fn requests(&self) -> Requests {
        let mut all = Requests::default();
        for requests in [
            self.publish,
            self.mapping,
            self.deliver,
            self.wake,
            self.monitor,
        ] {
            all += requests;
        }
        all
    }
}

impl AddAssign for Requests {
    fn add_assign(&mut self, other: Self) {
        self.sends += other.sends;
        self.receives += other.receives;
        self.deletes += other.deletes;
        self.others += other.others;
        self.puts += other.puts;
        self.gets += other.gets;
    }
}
