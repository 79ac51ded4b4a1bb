//! A subscription as a part of addresses.

use crate::address;
use crate::api::RequestTarget;

/// A subscription, by its topic and its name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SubscriptionInUrl<'a> {
    pub(crate) topic: &'a str,
    pub(crate) name: &'a str,
}

impl SubscriptionInUrl<'_> {
    /// A page below its own.
    pub(crate) fn page_path(self, below: &[&str]) -> String {
        address::subscription_path(self.topic, self.name, below)
    }

    /// A resource below its own.
    pub(crate) fn request_target(self, below: &[&str]) -> RequestTarget {
        RequestTarget::new(&[&["topics", self.topic, "subscriptions", self.name], below].concat())
    }

    /// A list of another section, of this subscription alone.
    pub(super) fn list_path(self, section: &str) -> String {
        address::with_query(
            &address::page_path(&[section]),
            &[("topic", self.topic), ("subscription", self.name)],
        )
    }
}
