//! Names of subscriptions within their topic: looked up without regard to case, kept as their
//! creator wrote them.

use super::{SubscriptionSettings, TopicSettings};
use crate::model::SubscriptionName;

impl TopicSettings {
    /// The name under which a subscription is stored: as its creator wrote it.
    pub fn stored_name(&self, name: &SubscriptionName) -> Option<&SubscriptionName> {
        self.find_subscription(name).map(|(stored, _)| stored)
    }

    /// A subscription by its name in any case, with the name under which it is stored.
    pub fn find_subscription(
        &self,
        name: &SubscriptionName,
    ) -> Option<(&SubscriptionName, &SubscriptionSettings)> {
        self.subscriptions
            .iter()
            .find(|(stored, _)| is_same(stored, name))
    }

    /// A subscription to be changed, by its name in any case, with the name under which it is
    /// stored.
    pub fn subscription_mut(
        &mut self,
        name: &SubscriptionName,
    ) -> Option<(&SubscriptionName, &mut SubscriptionSettings)> {
        self.subscriptions
            .iter_mut()
            .find(|(stored, _)| is_same(stored, name))
    }
}

fn is_same(stored: &SubscriptionName, name: &SubscriptionName) -> bool {
    stored.as_str().eq_ignore_ascii_case(name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lookup ignores case and gives the name as its creator wrote it.
    #[test]
    fn subscription_is_found_in_any_case_under_its_stored_name() {
        let written = r#"{"subscriptions":{"Billing":{"endpoint":{"url":"https://a.example"}}}}"#;
        let mut topic: TopicSettings = serde_json::from_str(written).unwrap();
        let mut check = |asked: &str, stored: Option<&str>| {
            let asked = SubscriptionName::parse(asked).unwrap();
            assert_eq!(
                topic.stored_name(&asked).map(SubscriptionName::as_str),
                stored
            );
            assert_eq!(
                topic
                    .find_subscription(&asked)
                    .map(|(name, _)| name.as_str()),
                stored
            );
            assert_eq!(
                topic
                    .subscription_mut(&asked)
                    .map(|(name, _)| name.as_str()),
                stored
            );
        };
        check("Billing", Some("Billing"));
        check("bILLING", Some("Billing"));
        check("billing-2", None);
    }
}
