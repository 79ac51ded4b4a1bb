//! Addresses of pages. Names that others chose are percent-encoded.

use std::fmt;

use maud::Render;
use posthaste_core::api::events::IdInUrl;
use url::form_urlencoded;

use crate::api::RequestTarget;
use crate::console::PATH;

/// The address of a page of the console.
#[derive(Debug, Clone)]
pub(crate) struct PageAddress(RequestTarget);

impl PageAddress {
    /// The page under these parts of a path.
    pub(crate) fn new(parts: &[&str]) -> Self {
        Self(RequestTarget::new(parts))
    }

    /// The same with a parameter, if there is a value.
    pub(crate) fn query(self, name: &str, value: Option<impl ToString>) -> Self {
        Self(self.0.query(name, value))
    }

    /// The page of an event. An id that a path does not carry is in the query.
    pub(crate) fn for_event(topic: &str, id: &str) -> Self {
        let carried = IdInUrl::for_id(id);
        match carried.query_parameter() {
            None => Self::new(&["topics", topic, "events", carried.path_segment()]),
            Some((name, value)) => Self::new(&["topics", topic, "event"]).query(name, Some(value)),
        }
    }

    /// The same with the id of an event as a parameter.
    pub(crate) fn with_event_id(self, id: &str) -> Self {
        let carried = IdInUrl::for_id(id);
        let (name, value) = carried.query_parameter().unwrap_or(("id", id));
        self.query(name, Some(value))
    }

    /// The page of a topic.
    pub(crate) fn for_topic(topic: &str) -> Self {
        Self::new(&["topics", avoid_form_path(topic)])
    }

    /// The page of a subscription.
    pub(crate) fn for_subscription(topic: &str, name: &str) -> Self {
        Self::new(&[
            "topics",
            avoid_form_path(topic),
            "subscriptions",
            avoid_form_path(name),
        ])
    }
}

impl fmt::Display for PageAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PATH}{}", self.0.as_str())
    }
}

impl Render for PageAddress {
    fn render_to(&self, buffer: &mut String) {
        self.to_string().render_to(buffer);
    }
}

/// The last part of the path of a form that makes something new.
pub(crate) const NEW: &str = "new";

/// The last part of the path of a page that edits what is there.
pub(crate) const EDIT: &str = "edit";

/// The page of these parts.
pub(crate) fn page_path(parts: &[&str]) -> String {
    PageAddress::new(parts).to_string()
}

/// A page below that of a topic.
pub(crate) fn topic_path(topic: &str, below: &[&str]) -> String {
    page_path(&[&["topics", avoid_form_path(topic)], below].concat())
}

/// A page below that of a subscription.
pub(crate) fn subscription_path(of: &str, name: &str, below: &[&str]) -> String {
    topic_path(
        of,
        &[&["subscriptions", avoid_form_path(name)], below].concat(),
    )
}

/// The address with these parameters.
pub(crate) fn with_query(page: &str, parameters: &[(&str, &str)]) -> String {
    let query = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(parameters)
        .finish();
    format!("{page}?{query}")
}

/// The address of a page of the console, if `address` is one and leads nowhere else.
pub(crate) fn local_page(address: &str) -> Option<&str> {
    let rest = address.strip_prefix(PATH)?;
    let is_below = rest.is_empty() || rest.starts_with(['/', '?']);
    let is_plain = address.bytes().all(|b| b.is_ascii_graphic() && b != b'\\');
    (is_below && is_plain).then_some(address)
}

/// The name as a part of a path. A resource that is called like the form has its name in another
/// case, in which it is found too.
fn avoid_form_path(name: &str) -> &str {
    if name == NEW { "New" } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_cannot_leave_its_part_of_the_path() {
        let check = |id: &str, expected: &str| {
            assert_eq!(
                PageAddress::for_event("orders", id).to_string(),
                expected,
                "{id}"
            );
        };
        check("order-1", "/console/topics/orders/events/order-1");
        check("a_b.c-1", "/console/topics/orders/events/a_b%2Ec-1");
        check("../x?y#z", "/console/topics/orders/event?id=..%2Fx%3Fy%23z");
        check("shop/1", "/console/topics/orders/event?id=shop%2F1");
        check("a b", "/console/topics/orders/event?id=a+b");
        check("", "/console/topics/orders/event?id=");
        check("..", "/console/topics/orders/event?id=..");
        check(".", "/console/topics/orders/event?id=.");
        check(
            "\"><script>",
            "/console/topics/orders/event?id=%22%3E%3Cscript%3E",
        );
    }

    /// The longest ids that the log keeps lead to their events: what is around them takes some
    /// hundred bytes.
    #[test]
    fn address_of_a_long_id_has_room_in_a_request() {
        for character in ["x", "ü", "\"", "日", "👋"] {
            let address = PageAddress::for_event("orders", &character.repeat(2_000)).to_string();
            assert!(address.len() < 6_000, "{}", address.len());
            let asked = PageAddress::new(&["a"])
                .with_event_id(&character.repeat(2_000))
                .to_string();
            assert!(asked.len() < 6_000, "{}", asked.len());
        }
    }

    #[test]
    fn parts_and_parameters_are_escaped() {
        assert_eq!(
            page_path(&["events", "a b/c?", "..", "d-1"]),
            "/console/events/a%20b%2Fc%3F/%2E%2E/d-1"
        );
        assert_eq!(
            with_query("/console/events", &[("type", "a&b")]),
            "/console/events?type=a%26b"
        );
    }

    /// A topic or a subscription called `new` is found as `New`, so the form keeps its path.
    #[test]
    fn resource_named_new_has_another_path_than_the_form() {
        assert_eq!(topic_path("new", &[]), "/console/topics/New");
        assert_eq!(
            topic_path("orders", &["subscriptions", NEW]),
            "/console/topics/orders/subscriptions/new"
        );
        assert_eq!(
            subscription_path("a", "new", &["edit"]),
            "/console/topics/a/subscriptions/New/edit"
        );
    }
}
