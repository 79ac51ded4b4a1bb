//! Late answers: events that arrived after all, because their endpoint answered after the request had timed
//! out. They are left out before anything is written, and count as delivered.
//!
//! The notes of late answers stay, so that a letter that comes again finds them. Wake removes them when they
//! are old.

use std::collections::BTreeSet;
use std::error::Error;
use std::time::Duration;

use posthaste_core::model::DeadLetter;
use posthaste_ports::{Clock, MessageId, PortError, Ports};
use posthaste_services::late_answers::answered_late;

use crate::dead_letters::DeadLetters;
use crate::letter::Letter;
use crate::unreadable::{Unreadable, unreadable};

/// The letters of one object that are left.
#[derive(Debug, Default)]
pub(crate) struct Remaining {
    /// To be written, without the events that arrived.
    pub(crate) letters: Vec<Letter>,
    /// To come again, because the notes could not be read.
    pub(crate) failures: Vec<MessageId>,
}

impl<P: Ports> DeadLetters<P> {
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
                tracing::info!(
                    topic = %delivery.topic, subscription = %delivery.subscription, events = arrived,
                    "not dead-lettered, the endpoint answered late"
                );
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
            error = error as &dyn Error,
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
