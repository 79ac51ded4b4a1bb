//! Which event a page is about, and what of it.

use serde::Deserialize;

use crate::address::Address;
use crate::api::Target;

/// Most characters of an id in the title.
const TITLE_CHARS_MAX: usize = 120;

/// Most characters of an id, which is more than the log keeps.
pub(super) const ID_CHARS_MAX: usize = 1_100;

/// The query of the page.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct EventAsked {
    /// Whether the page shows the event itself.
    #[serde(default)]
    pub(super) payload: bool,
    pub(super) from: Option<String>,
    pub(super) to: Option<String>,
}

/// The query of the page of an event whose id cannot be a part of a path.
#[derive(Debug, Deserialize)]
pub(crate) struct IdAsked {
    pub(super) id: String,
}

/// The event that a page is about.
pub(super) struct Asked<'a> {
    pub(super) topic: &'a str,
    pub(super) id: &'a str,
    pub(super) query: &'a EventAsked,
}

impl Asked<'_> {
    pub(super) fn title(&self) -> String {
        let cut: String = self.id.chars().take(TITLE_CHARS_MAX).collect();
        let mark = if cut.len() < self.id.len() { "…" } else { "" };
        format!("Event {cut}{mark}")
    }

    pub(super) fn target(&self) -> Target {
        let target = Target::new(&["topics", self.topic, "events", self.id]);
        let target = target.query("payload", self.query.payload.then_some(true));
        target.query("from", self.query.from.as_deref()).query("to", self.query.to.as_deref())
    }

    /// The address of the same page, with or without the event itself.
    pub(super) fn address(&self, payload: bool) -> Address {
        let address = Address::event(self.topic, self.id).query("payload", payload.then_some(true));
        address.query("from", self.query.from.as_deref()).query("to", self.query.to.as_deref())
    }
}
