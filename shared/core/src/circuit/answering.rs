//! The subscriptions of each link that were answered a moment ago, as one worker has seen them.
//! While one of them is, connections that are closed after the requests of others are those others'
//! own.

use std::collections::HashMap;
use std::time::Duration;

use crate::circuit::DeliveryTarget;
use crate::model::{Link, Timestamp};

/// The time for which an answer shows that the link is well.
const SPEAKS_FOR: Duration = Duration::from_mins(1);

/// The age at which an answer makes room for that of another subscription.
const REPLACED_AFTER: Duration = Duration::from_secs(30);

/// Most subscriptions of a link that are remembered: one is enough, and the others are for when
/// that one fails.
const OF_LINK_MAX: usize = 4;

/// Most links that are remembered. Of any beyond, nothing is known.
const LINKS_MAX: usize = 4096;

/// The subscriptions that were answered a moment ago, by link.
#[derive(Debug, Default)]
pub struct AnsweredSubscriptions(HashMap<Link, Vec<(DeliveryTarget, Timestamp)>>);

impl AnsweredSubscriptions {
    /// Notes an answer to a subscription, whatever it says.
    pub fn note_answer(&mut self, subscription: &DeliveryTarget, now: Timestamp) {
        if self.0.len() >= LINKS_MAX && !self.0.contains_key(subscription.link()) {
            self.0
                .retain(|_, known| known.iter().any(|(_, at)| is_recent_answer(*at, now)));
            if self.0.len() >= LINKS_MAX {
                return;
            }
        }
        let Some(known) = self.0.get_mut(subscription.link()) else {
            let first = vec![(subscription.clone(), now)];
            self.0.insert(subscription.link().clone(), first);
            return;
        };
        if let Some((_, at)) = known.iter_mut().find(|(of, _)| of == subscription) {
            *at = now;
        } else if known.len() < OF_LINK_MAX {
            known.push((subscription.clone(), now));
        } else if let Some(oldest) = known.iter_mut().min_by_key(|(_, at)| *at)
            && (oldest.1 > now || now.since(oldest.1) >= REPLACED_AFTER)
        {
            *oldest = (subscription.clone(), now);
        }
    }

    /// Notes a connection that was closed after a request of a subscription.
    pub fn note_closed_connection(&mut self, subscription: &DeliveryTarget) {
        if let Some(known) = self.0.get_mut(subscription.link()) {
            known.retain(|(of, _)| of != subscription);
        }
    }

    /// Whether a subscription of the link was answered within the last minute, and had no
    /// connection closed since.
    pub fn is_any(&self, link: &Link, now: Timestamp) -> bool {
        let known = self.0.get(link);
        known.is_some_and(|known| known.iter().any(|(_, at)| is_recent_answer(*at, now)))
    }
}

/// An answer that lies ahead was noted before a clock was set back.
fn is_recent_answer(at: Timestamp, now: Timestamp) -> bool {
    at <= now && now.since(at) <= SPEAKS_FOR
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(secs: u64) -> Timestamp {
        Timestamp::from_millis(secs * 1000)
    }

    fn subscription(host: &str, name: &str) -> DeliveryTarget {
        DeliveryTarget::parse(&format!("https://{host}:443 orders.{name}")).unwrap()
    }

    #[test]
    fn answer_speaks_for_its_link_for_a_minute() {
        let mut answered = AnsweredSubscriptions::default();
        let own = subscription("a.example", "billing");
        answered.note_answer(&own, at(100));
        let is_any = |secs| answered.is_any(own.link(), at(secs));
        assert_eq!([99, 100, 160, 161].map(is_any), [false, true, true, false]);
        let other = subscription("b.example", "billing");
        assert!(!answered.is_any(other.link(), at(100)));
    }

    #[test]
    fn subscription_whose_connection_was_closed_speaks_no_more() {
        let mut answered = AnsweredSubscriptions::default();
        let [billing, audit] = ["billing", "audit"].map(|name| subscription("a.example", name));
        answered.note_answer(&billing, at(100));
        answered.note_answer(&audit, at(100));
        answered.note_closed_connection(&billing);
        assert!(answered.is_any(billing.link(), at(100)));
        answered.note_closed_connection(&audit);
        assert!(!answered.is_any(billing.link(), at(100)));
        answered.note_answer(&audit, at(101));
        assert!(answered.is_any(billing.link(), at(101)));
    }

    /// Of many subscriptions, those that fail do not hide those that are answered.
    #[test]
    fn old_answers_make_room_for_those_of_others() {
        let mut answered = AnsweredSubscriptions::default();
        let all: Vec<_> = (0..8)
            .map(|index| subscription("a.example", &format!("s{index}")))
            .collect();
        for of in &all {
            answered.note_answer(of, at(100));
        }
        for of in &all {
            answered.note_answer(of, at(130));
        }
        assert_eq!(answered.0[all[0].link()].len(), OF_LINK_MAX);
        answered.note_answer(&all[7], at(160));
        for of in &all[..7] {
            answered.note_closed_connection(of);
        }
        assert!(answered.is_any(all[0].link(), at(160)));
    }

    #[test]
    fn links_take_bounded_room_and_the_old_ones_make_way() {
        let mut answered = AnsweredSubscriptions::default();
        for index in 0..=LINKS_MAX {
            answered.note_answer(&subscription(&format!("h{index}.example"), "s"), at(100));
        }
        assert_eq!(answered.0.len(), LINKS_MAX);
        answered.note_answer(&subscription("late.example", "s"), at(161));
        assert_eq!(answered.0.len(), 1);
    }
}
