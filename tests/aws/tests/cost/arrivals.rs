//! The batches in which Lambda receives messages that come one by one.

use std::time::Duration;

use crate::prices::{DELIVER_SECONDS, POLLERS};
use crate::world::BATCH_MAX;

/// The sizes of the batches in which `messages` messages are received, the first batch first. A
/// message comes every `pace`. A poller without a window takes what is there as soon as there is
/// something, at most a full batch, and takes nothing while its invocation lasts. Lambda adds
/// pollers only where these do not keep up.
pub(crate) fn batches(messages: u32, pace: Duration) -> Vec<usize> {
    let invocation = Duration::from_secs_f64(DELIVER_SECONDS);
    let mut free_from = [Duration::ZERO; POLLERS as usize];
    let mut sizes = Vec::new();
    let mut taken = 0;
    while taken < messages {
        let poller = free_from.iter_mut().min().expect("there are pollers");
        let received_at = (*poller).max(pace * taken);
        let waiting = (taken..messages).take_while(|n| pace * *n <= received_at);
        let size = waiting.take(BATCH_MAX).count();
        *poller = received_at + invocation;
        taken += u32::try_from(size).expect("a batch is small");
        sizes.push(size);
    }
    sizes
}

/// Idle pollers take messages one by one, and busy ones what has come meanwhile.
#[test]
fn idle_pollers_take_single_messages_and_busy_ones_batches() {
    let check = |messages, pace, expected: &[usize]| {
        assert_eq!(
            batches(messages, Duration::from_millis(pace)),
            expected,
            "every {pace} ms"
        );
    };
    check(3, 1_000, &[1, 1, 1]);
    check(17, 10, &[1, 1, 1, 1, 1, 8, 1, 1, 1, 1]);
    // A hundred at once fill every batch.
    check(100, 0, &[10; 10]);
}
