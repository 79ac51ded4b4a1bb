//! The publish keys of a topic, and which tier of producers each of them opens it to.

use crate::model::secret::Secret;
use crate::pressure::Tier;

/// The publish keys of a topic: two at least, so that one can be rotated while the other works.
#[derive(Debug, Clone)]
pub struct TopicKeys(Vec<(Tier, Secret)>);

impl TopicKeys {
    /// The two keys that every topic has; they are the usual producers'.
    pub fn new(key1: Secret, key2: Secret) -> Self {
        Self(vec![(Tier::Standard, key1), (Tier::Standard, key2)])
    }

    /// One key more, of this tier.
    #[must_use]
    pub fn with(mut self, tier: Tier, key: Secret) -> Self {
        self.0.push((tier, key));
        self
    }

    /// The most privileged tier whose key is `offered`, or `None`. Every key is compared, in constant time.
    pub fn tier_of(&self, offered: &str) -> Option<Tier> {
        self.tier_where(|key| key.matches(offered))
    }

    /// The most privileged tier one of whose keys passes `opens`. Every key is asked, so that the time of the
    /// answer does not tell which one it was.
    pub fn tier_where(&self, opens: impl Fn(&Secret) -> bool) -> Option<Tier> {
        let opened = self.0.iter().map(|(tier, key)| opens(key).then_some(*tier));
        opened.fold(None, most_privileged)
    }
}

/// The more privileged of two tiers that were opened, if any was.
pub fn most_privileged(one: Option<Tier>, other: Option<Tier>) -> Option<Tier> {
    [one, other].into_iter().flatten().min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn keys() -> TopicKeys {
        TopicKeys::new(Secret::new("a"), Secret::new("b"))
            .with(Tier::Bulk, Secret::new("c"))
            .with(Tier::Internal, Secret::new("d"))
            .with(Tier::Internal, Secret::new("a"))
    }

    #[test]
    fn a_key_opens_its_tier_and_one_of_two_tiers_the_more_privileged() {
        let check = |offered, expected| assert_eq!(keys().tier_of(offered), expected, "{offered}");
        check("b", Some(Tier::Standard));
        check("c", Some(Tier::Bulk));
        check("d", Some(Tier::Internal));
        check("a", Some(Tier::Internal));
        check("e", None);
    }

    #[test]
    fn every_key_is_asked_whichever_opens() {
        for opening in ["a", "d", "nothing"] {
            let asked = Cell::new(0);
            keys().tier_where(|key| {
                asked.set(asked.get() + 1);
                key.matches(opening)
            });
            assert_eq!(asked.get(), 5, "{opening}");
        }
    }
}
