//! Events that arrived after all: their endpoint said yes after a request had timed out, while their dead
//! letter was on its way. They are looked for before anything is written, and count as delivered.
//!
//! The notes stay, so that a letter that comes again finds them. They are removed when they are old, as all
//! notes are.

use std::collections::BTreeSet;
use std::time::Duration;

use posthaste_core::model::delivery::DeadLetter;
use posthaste_ports::{Clock, Entropy, MessageId, ObjectStore, PortError, QueueReceiver, QueueSender};
use posthaste_services::late_answers::answered_late;

use crate::unreadable::{Unreadable, unreadable};
use crate::{DeadLetters, Letter};

/// The letters of one object after that look.
#[derive(Debug, Default)]
pub(crate) struct Remaining {
    /// To be written, without the events that arrived.
    pub(crate) letters: Vec<Letter>,
    /// To come again, because the notes could not be read.
    pub(crate) failures: Vec<MessageId>,
}

impl<Q, S, D, C, E> DeadLetters<Q, S, D, C, E>
where
    Q: QueueReceiver + QueueSender,
    S: ObjectStore,
    D: ObjectStore,
    C: Clock,
    E: Entropy,
{
    /// Takes out of letters of one subscription the events that arrived late. Only a delivery that timed out
    /// costs a look.
    pub(crate) async fn without_late(&self, letters: Vec<Letter>, until: Duration) -> Remaining {
        let asked: BTreeSet<&str> =
            letters.iter().filter(|it| may_have_arrived(&it.dead)).flat_map(keys).collect();
        let Some(Letter { dead, .. }) = letters.first().filter(|_| !asked.is_empty()) else {
            return Remaining { letters, failures: Vec::new() };
        };
        let (topic, subscription) = (&dead.delivery.topic, &dead.delivery.subscription);
        let look = answered_late(&self.ports.state, topic, subscription, &asked);
        match self.in_time(until, look).await {
            Ok(found) => {
                let mut letters = letters;
                if !found.is_empty() {
                    letters = self.remove(letters, &found).await;
                }
                Remaining { letters, failures: Vec::new() }
            }
            Err(error) => self.without_a_look(letters, &error),
        }
    }

    /// Removes the events that were found. A letter that has none left is done with.
    async fn remove(&self, letters: Vec<Letter>, found: &BTreeSet<String>) -> Vec<Letter> {
        let mut left = Vec::with_capacity(letters.len());
        for mut letter in letters {
            let before = letter.dead.delivery.events.len();
            if may_have_arrived(&letter.dead) {
                letter.dead.delivery.events.retain(|event| !found.contains(&event.key));
            }
            let delivery = &letter.dead.delivery;
            let arrived = before - delivery.events.len();
            if arrived > 0 {
                tracing::info!(topic = %delivery.topic, subscription = %delivery.subscription, events = arrived, "not dead-lettered, the endpoint answered late");
            }
            if delivery.events.is_empty() {
                self.acknowledge(&letter.message).await;
            } else {
                left.push(letter);
            }
        }
        left
    }

    /// Hands back the letters whose notes cannot be read. One that would be lost with its message is written.
    fn without_a_look(&self, letters: Vec<Letter>, error: &PortError) -> Remaining {
        tracing::error!(
            letters = letters.len(),
            error = error as &dyn std::error::Error,
            "late answers to the events of dead letters cannot be looked up"
        );
        let now = self.ports.clock.now();
        let mut remaining = Remaining::default();
        for letter in letters {
            let comes_again = may_have_arrived(&letter.dead)
                && unreadable(self.ports.source, letter.message.sent_at, now) == Unreadable::HandBack;
            if comes_again {
                remaining.failures.push(letter.message.id);
            } else {
                remaining.letters.push(letter);
            }
        }
        remaining
    }
}

/// Whether an endpoint may have said yes to a request that timed out. What is written already stands.
fn may_have_arrived(letter: &DeadLetter) -> bool {
    letter.delivery.timed_out && !letter.asks_for_notices_only()
}

fn keys(letter: &Letter) -> impl Iterator<Item = &str> {
    letter.dead.delivery.events.iter().map(|event| event.key.as_str())
}
