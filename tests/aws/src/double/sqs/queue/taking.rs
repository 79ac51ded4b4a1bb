//! Selection of the messages that a receive takes, and of those that were received too often.

use std::collections::HashMap;
use std::time::Duration;

use posthaste_ports::Clock;

use super::super::handle::Handle;
use super::{Queue, Stored};

impl Queue {
    /// Removes the visible messages that were received too often.
    pub(crate) fn worn_out(&mut self, clock: &impl Clock) -> Vec<Stored> {
        let Some(redrive) = &self.redrive else {
            return vec![];
        };
        let now = clock.monotonic();
        let max = redrive.max_receive_count;
        self.messages
            .extract_if(.., |m| m.visible_from <= now && m.receive_count >= max)
            .collect()
    }

    pub(crate) fn adopt(&mut self, messages: Vec<Stored>, from: &str) {
        for message in messages {
            let number = self.number();
            let moved_from = Some(from.to_owned());
            self.messages.push(Stored {
                number,
                moved_from,
                receive: None,
                ..message
            });
        }
    }

    /// True if the limit of messages in flight is reached.
    pub(crate) fn is_full(&self, clock: &impl Clock) -> bool {
        self.in_flight(clock.monotonic()) >= self.in_flight_max
    }

    /// Makes everything visible that was received and is in flight, or was deleted.
    pub(crate) fn show_copies(&mut self, clock: &impl Clock) {
        self.messages.append(&mut self.deleted);
        for message in self
            .messages
            .iter_mut()
            .filter(|message| message.receive.is_some())
        {
            message.visible_from = clock.monotonic();
        }
    }

    fn in_flight(&self, now: Duration) -> usize {
        self.messages
            .iter()
            .filter(|m| m.receive.is_some() && m.visible_from > now)
            .count()
    }

    /// Takes visible messages, those of groups with few in flight first.
    pub(crate) fn take(
        &mut self,
        max: usize,
        visibility: Duration,
        clock: &impl Clock,
    ) -> Vec<(String, &Stored)> {
        let now = clock.monotonic();
        let max = max.min(self.in_flight_max.saturating_sub(self.in_flight(now)));
        let mut in_flight = self.in_flight_by_group(now);
        let mut taken = Vec::new();
        while taken.len() < max {
            let load = |m: &Stored| {
                m.group
                    .as_ref()
                    .and_then(|group| in_flight.get(group))
                    .copied()
                    .unwrap_or(0)
            };
            let visible = self
                .messages
                .iter()
                .enumerate()
                .filter(|(i, m)| m.visible_from <= now && !taken.contains(i));
            let Some((index, _)) = visible.min_by_key(|(_, m)| (load(m), m.number)) else {
                break;
            };
            if let Some(group) = &self.messages[index].group {
                *in_flight.entry(group.clone()).or_default() += 1;
            }
            taken.push(index);
        }
        for index in &taken {
            self.mark_received(*index, now + visibility, clock);
        }
        let handle = |m: &Stored| Handle {
            queue: self.name.clone(),
            message: m.number,
            receive: m.receive.unwrap_or(0),
        };
        taken
            .into_iter()
            .map(|i| &self.messages[i])
            .map(|m| (handle(m).to_string(), m))
            .collect()
    }

    fn mark_received(&mut self, index: usize, visible_from: Duration, clock: &impl Clock) {
        let receive = self.number();
        let message = &mut self.messages[index];
        message.receive = Some(receive);
        message.receive_count += 1;
        message.first_received_at.get_or_insert(clock.now());
        message.received_at = clock.monotonic();
        message.visible_from = visible_from;
    }

    fn in_flight_by_group(&self, now: Duration) -> HashMap<String, usize> {
        let mut in_flight = HashMap::new();
        for message in self
            .messages
            .iter()
            .filter(|m| m.receive.is_some() && m.visible_from > now)
        {
            if let Some(group) = &message.group {
                *in_flight.entry(group.clone()).or_default() += 1;
            }
        }
        in_flight
    }
}
