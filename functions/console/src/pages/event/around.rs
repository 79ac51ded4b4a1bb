//! The visit of an event's page, and the topic of the event.

use crate::pages::known_topic::KnownTopic;
use crate::visit::Visit;

/// The visit of the page, and the topic of the event.
pub(super) struct Around<'a> {
    pub(super) visit: &'a Visit,
    pub(super) topic: &'a KnownTopic,
}
