//! The visit of an event's page, and the topic of the event.

use crate::pages::known_topic::KnownTopic;
use crate::visit::PageVisit;

/// The visit of the page, and the topic of the event.
pub(super) struct EventPageContext<'a> {
    pub(super) visit: &'a PageVisit,
    pub(super) topic: &'a KnownTopic,
}
