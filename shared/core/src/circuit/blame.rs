//! The blame for failures in a row: whether they are a target's own, or may be one subscription's.

use crate::circuit::DeliveryTarget;

/// The blame for failures in a row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum FailureBlame {
    /// There are no failures.
    #[default]
    Nobody,
    /// All of them are of this subscription, and may be its own: a receiver that crashes closes its
    /// connection as a host does that is going down.
    One(DeliveryTarget),
    /// They are the target's.
    Target,
}

impl FailureBlame {
    /// Adds a failure that is the target's.
    pub fn blame_target(&mut self) {
        *self = Self::Target;
    }

    /// Adds a failure of a subscription that may be the target's: it is, if those of another
    /// subscription were before.
    pub fn add_suspected(&mut self, subscription: &DeliveryTarget) {
        match self {
            Self::Nobody => *self = Self::One(subscription.clone()),
            Self::One(first) if first == subscription => {}
            Self::One(_) | Self::Target => *self = Self::Target,
        }
    }

    /// Whether the failures are the target's.
    pub fn is_of_target(&self) -> bool {
        *self == Self::Target
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_subscriptions_or_a_sure_failure_blame_the_target() {
        let subscription = |name: &str| {
            DeliveryTarget::parse(&format!("https://a.example:443 orders.{name}")).unwrap()
        };
        let billing = subscription("billing");
        let audit = subscription("audit");
        let mut blame = FailureBlame::default();
        assert!(!blame.is_of_target());
        blame.add_suspected(&billing);
        blame.add_suspected(&billing);
        assert_eq!(blame, FailureBlame::One(billing.clone()));
        blame.add_suspected(&audit);
        assert!(blame.is_of_target());
        let mut blame = FailureBlame::One(billing);
        blame.blame_target();
        assert!(blame.is_of_target());
    }
}
