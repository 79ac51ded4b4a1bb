//! A subscription, and what lies below it.

use crate::address;
use crate::api::Target;

/// A subscription, by its topic and its name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Named<'a> {
    pub(crate) topic: &'a str,
    pub(crate) name: &'a str,
}

impl Named<'_> {
    /// A page below its own.
    pub(crate) fn page(self, below: &[&str]) -> String {
        address::subscription(self.topic, self.name, below)
    }

    /// A resource below its own.
    pub(crate) fn target(self, below: &[&str]) -> Target {
        Target::new(&[&["topics", self.topic, "subscriptions", self.name], below].concat())
    }

    /// A list of another section, of this subscription alone.
    pub(super) fn list(self, section: &str) -> String {
        address::with_query(
            &address::page(&[section]),
            &[("topic", self.topic), ("subscription", self.name)],
        )
    }
}
