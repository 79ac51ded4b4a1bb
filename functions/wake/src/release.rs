//! Releasing one object: send its messages, then delete it.

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream;
use posthaste_core::wire::{WireError, parse_delivery, parse_parked};
use posthaste_ports::sending::send_all;
use posthaste_ports::{Clock, Entropy, ObjectStore, OutgoingMessage, PortError, QueueSender};

use crate::{Wake, WakeReport};

/// Objects released at once.
const RELEASES_AT_ONCE: usize = 8;

/// Why an object stays where it is until the next run.
#[derive(Debug, thiserror::Error)]
enum ReleaseError {
    #[error("failed to read or delete the object")]
    Store(#[source] PortError),
    #[error("failed to understand the object")]
    Object(#[source] WireError),
    #[error("failed to send {failed} of {messages} messages")]
    Send {
        failed: usize,
        messages: usize,
        #[source]
        first: PortError,
    },
}

impl<Q, S, C, E> Wake<Q, S, C, E>
where
    Q: QueueSender,
    S: ObjectStore,
    C: Clock,
    E: Entropy,
{
    /// Releases the objects of these keys, several at once.
    pub(crate) async fn release_page(&self, keys: Vec<String>, report: &mut WakeReport) {
        let mut releases = stream::iter(keys)
            .map(|key| async move { (self.release(&key).await, key) })
            .buffer_unordered(RELEASES_AT_ONCE);
        while let Some((released, key)) = releases.next().await {
            match released {
                Ok(sent) => {
                    report.released += 1;
                    report.sent += sent;
                }
                Err(error) => {
                    report.left += 1;
                    tracing::error!(%key, error = &error as &dyn std::error::Error, "parked deliveries not released");
                }
            }
        }
    }

    async fn release(&self, key: &str) -> Result<usize, ReleaseError> {
        let Some(object) = self.ports.state.get(key).await.map_err(ReleaseError::Store)? else {
            return Ok(0);
        };
        let messages = parse_parked(&object.bytes).map_err(ReleaseError::Object)?;
        let count = messages.len();
        let sent = send_all(&self.ports.deliveries, messages.into_iter().map(outgoing).collect()).await;
        let failures: Vec<_> = sent.into_iter().filter_map(Result::err).collect();
        let failed = failures.len();
        if let Some(first) = failures.into_iter().next() {
            return Err(ReleaseError::Send { failed, messages: count, first });
        }
        self.ports.state.delete(key).await.map_err(ReleaseError::Store)?;
        Ok(count)
    }
}

/// A parked message as it goes back. One that cannot be read goes as it is: deliver keeps it byte for byte.
fn outgoing(body: Bytes) -> OutgoingMessage {
    let group = parse_delivery(&body).ok().map(|delivery| delivery.group());
    OutgoingMessage { body, group, delay_secs: 0 }
}
