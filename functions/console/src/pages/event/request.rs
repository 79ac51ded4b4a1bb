//! The event that a page shows, and its query parameters.

use posthaste_core::api::events::{DeliveryView, EncodedId, IdInUrl};
use serde::Deserialize;

use crate::address::PageAddress;
use crate::api::RequestTarget;

/// Most characters of an id in the title.
const TITLE_CHARS_MAX: usize = 120;

/// Most characters of an id, which is more than the log keeps.
pub(super) const ID_CHARS_MAX: usize = 1_100;

/// The query of the page.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct EventPageQuery {
    /// Whether the page shows the event itself.
    #[serde(default)]
    pub(super) payload: bool,
    pub(super) from: Option<String>,
    pub(super) to: Option<String>,
    /// The subscription whose deliveries are shown; every one if there is none.
    pub(super) subscription: Option<String>,
    /// The key of the only delivery that is shown.
    pub(super) key: Option<String>,
    /// The first subscriptions that are left out; with a subscription, its newest deliveries; with
    /// a key, the newest attempts.
    #[serde(default)]
    pub(super) skip: usize,
}

/// The query of the page of an event whose id cannot be a part of a path.
#[derive(Debug, Deserialize)]
pub(crate) struct EventIdPageQuery {
    #[serde(default)]
    id: String,
    id64: Option<EncodedId>,
}

impl EventIdPageQuery {
    pub(crate) fn into_id(self) -> String {
        self.id64.map_or(self.id, |id| id.0)
    }
}

/// The event that a page is about.
pub(super) struct EventPageRequest<'a> {
    pub(super) topic: &'a str,
    pub(super) id: &'a str,
    pub(super) query: &'a EventPageQuery,
}

impl EventPageRequest<'_> {
    pub(super) fn title(&self) -> String {
        let cut: String = self.id.chars().take(TITLE_CHARS_MAX).collect();
        let mark = if cut.len() < self.id.len() { "…" } else { "" };
        format!("Event {cut}{mark}")
    }

    pub(super) fn request_target(&self) -> RequestTarget {
        let carried = IdInUrl::for_id(self.id);
        let target = RequestTarget::new(&["topics", self.topic, "events", carried.path_segment()]);
        let target = match carried.query_parameter() {
            Some((name, value)) => target.query(name, Some(value)),
            None => target,
        };
        let target = target.query("payload", self.query.payload.then_some(true));
        target
            .query("from", self.query.from.as_deref())
            .query("to", self.query.to.as_deref())
    }

    /// The address of the same page with another query.
    pub(super) fn address_with(&self, query: &EventPageQuery) -> PageAddress {
        let address = PageAddress::for_event(self.topic, self.id)
            .query("payload", query.payload.then_some(true));
        let address = address
            .query("from", query.from.as_deref())
            .query("to", query.to.as_deref());
        let address = address.query("subscription", query.subscription.as_deref());
        let address = address.query("key", query.key.as_deref());
        address.query("skip", Some(query.skip).filter(|skip| *skip > 0))
    }

    /// The address of the same page, with or without the event itself.
    pub(super) fn payload_address(&self, payload: bool) -> PageAddress {
        self.address_with(&EventPageQuery {
            payload,
            ..self.query.clone()
        })
    }

    /// The address of the page that begins after the newest `skip`.
    pub(super) fn address_skipping(&self, skip: usize) -> PageAddress {
        self.address_with(&EventPageQuery {
            skip,
            ..self.query.clone()
        })
    }

    /// The address of the page of one delivery. Its key alone may be that of other subscriptions
    /// too.
    pub(super) fn delivery_address(&self, it: &DeliveryView) -> PageAddress {
        let subscription = Some(it.subscription.clone());
        let key = Some(it.key.clone());
        self.address_with(&EventPageQuery {
            subscription,
            key,
            skip: 0,
            ..self.query.clone()
        })
    }

    /// The address of the page of one subscription.
    pub(super) fn subscription_address(&self, name: &str) -> PageAddress {
        self.deliveries_address(name, 0)
    }

    /// The address of the page of one subscription that begins after its newest `skip` deliveries.
    pub(super) fn deliveries_address(&self, name: &str, skip: usize) -> PageAddress {
        self.address_with(&EventPageQuery {
            subscription: Some(name.to_owned()),
            key: None,
            skip,
            ..self.query.clone()
        })
    }

    /// The address of the page of the request of an attempt.
    pub(super) fn made_request_address(&self, it: &DeliveryView, attempt: u16) -> PageAddress {
        let carried = IdInUrl::for_id(self.id);
        let page = match carried.query_parameter() {
            None => PageAddress::new(&[
                "topics",
                self.topic,
                "events",
                carried.path_segment(),
                "request",
            ]),
            Some((name, value)) => PageAddress::new(&["topics", self.topic, "event", "request"])
                .query(name, Some(value)),
        };
        page.query("subscription", Some(&it.subscription))
            .query("key", Some(&it.key))
            .query("attempt", Some(attempt))
    }

    /// The subscriptions before the first one that is shown.
    pub(super) fn skipped_subscriptions(&self) -> usize {
        let is_of_all = self.query.subscription.is_none() && self.query.key.is_none();
        if is_of_all { self.query.skip } else { 0 }
    }

    /// The deliveries to the only subscription before the first one that is shown.
    pub(super) fn skipped_deliveries(&self) -> usize {
        let is_of_one = self.query.subscription.is_some() && self.query.key.is_none();
        if is_of_one { self.query.skip } else { 0 }
    }

    /// The newest attempts of the only delivery that are left out.
    pub(super) fn skipped_attempts(&self) -> usize {
        if self.query.key.is_some() {
            self.query.skip
        } else {
            0
        }
    }

    /// Whether a delivery is shown.
    pub(super) fn is_selected(&self, delivery: &DeliveryView) -> bool {
        let of = &self.query.subscription;
        of.as_ref()
            .is_none_or(|name| delivery.subscription.eq_ignore_ascii_case(name))
            && self
                .query
                .key
                .as_ref()
                .is_none_or(|key| delivery.key == *key)
    }
}
