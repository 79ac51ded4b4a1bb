//! Requests to the double, in the order in which they took effect, and AWS's bill for them.

use posthaste_core::model::SQS_BILLED_CHUNK_BYTES;

/// The status of a request that was lost before anything happened.
pub const NO_ANSWER: u16 = 0;

/// The action of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Action {
    /// `SendMessage`.
    SendMessage,
    /// `SendMessageBatch`.
    SendMessageBatch,
    /// `ReceiveMessage`.
    ReceiveMessage,
    /// `DeleteMessage`.
    DeleteMessage,
    /// `DeleteMessageBatch`.
    DeleteMessageBatch,
    /// `ChangeMessageVisibility`.
    ChangeMessageVisibility,
    /// `ChangeMessageVisibilityBatch`.
    ChangeMessageVisibilityBatch,
    /// `GetQueueAttributes`.
    GetQueueAttributes,
    /// `GetObject`.
    GetObject,
    /// `PutObject`.
    PutObject,
    /// `DeleteObject`.
    DeleteObject,
    /// `ListObjectsV2`.
    ListObjects,
}

impl Action {
    /// True if SQS is asked, not S3.
    pub const fn is_sqs(self) -> bool {
        !matches!(
            self,
            Self::GetObject | Self::PutObject | Self::DeleteObject | Self::ListObjects
        )
    }
}

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The action asked for.
    pub action: Action,
    /// The queue or the bucket, by name.
    pub target: String,
    /// The subjects: bodies of messages that are sent, receipt handles that are settled, bodies
    /// that were received, the object's key, the listing's prefix.
    pub subjects: Vec<String>,
    /// Bytes of message bodies, in the request or in its answer; of S3, of the object.
    pub payload_bytes: usize,
    /// The answer's status, also of an answer that was lost; [`NO_ANSWER`] where nothing happened
    /// and there was no answer.
    pub status: u16,
}

impl Seen {
    /// The number of requests on the bill: SQS counts each begun 64 KB of payload, S3 the request.
    /// <https://aws.amazon.com/sqs/pricing/>
    pub fn billed(&self) -> u64 {
        if !self.action.is_sqs() {
            return 1;
        }
        self.payload_bytes.div_ceil(SQS_BILLED_CHUNK_BYTES).max(1) as u64
    }
}

/// Requests in the order in which they took effect; those that had none, in the order in which they
/// were refused.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Journal(Vec<Seen>);

impl Journal {
    /// All requests.
    pub fn seen(&self) -> &[Seen] {
        &self.0
    }

    /// The requests for `action`.
    pub fn of(&self, action: Action) -> impl Iterator<Item = &Seen> {
        self.0.iter().filter(move |seen| seen.action == action)
    }

    /// The number of requests for `action`.
    pub fn count(&self, action: Action) -> usize {
        self.of(action).count()
    }

    /// The chunks that SQS bills for all of them.
    pub fn billed_by_sqs(&self) -> u64 {
        self.0
            .iter()
            .filter(|seen| seen.action.is_sqs())
            .map(Seen::billed)
            .sum()
    }

    /// The actions of all requests.
    pub fn actions(&self) -> Vec<Action> {
        self.0.iter().map(|seen| seen.action).collect()
    }

    pub(super) fn push(&mut self, seen: Seen) {
        self.0.push(seen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_begun_64_kilobytes_are_billed() {
        let check = |action, payload_bytes, expected| {
            let seen = Seen {
                action,
                target: String::new(),
                subjects: vec![],
                payload_bytes,
                status: 200,
            };
            assert_eq!(seen.billed(), expected, "{payload_bytes} bytes");
        };
        check(Action::ReceiveMessage, 0, 1);
        check(Action::SendMessageBatch, 65_536, 1);
        check(Action::SendMessageBatch, 65_537, 2);
        check(Action::SendMessageBatch, 1_048_576, 16);
        check(Action::PutObject, 1_048_576, 1);
    }
}
