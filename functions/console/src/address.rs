//! Addresses of pages. Names that others chose are percent-encoded.

use std::fmt;

use maud::Render;
use url::form_urlencoded;

use crate::api::Target;
use crate::console::PATH;

/// The address of a page of the console.
#[derive(Debug, Clone)]
pub(crate) struct Address(Target);

impl Address {
    /// The page under these parts of a path.
    pub(crate) fn new(parts: &[&str]) -> Self {
        Self(Target::new(parts))
    }

    /// The same with a parameter, if there is a value.
    pub(crate) fn query(self, name: &str, value: Option<impl ToString>) -> Self {
        Self(self.0.query(name, value))
    }

    /// The page of an event. An id that is not plain is in the query.
    pub(crate) fn event(topic: &str, id: &str) -> Self {
        if is_plain(id) {
            return Self::new(&["topics", topic, "events", id]);
        }
        Self::new(&["topics", topic, "event"]).query("id", Some(id))
    }

    /// The same page, if its address has room in a request.
    pub(crate) fn short_event(topic: &str, id: &str) -> Option<Self> {
        Some(Self::event(topic, id)).filter(|address| address.0.as_str().len() <= EVENT_BYTES_MAX)
    }

    /// The page of a topic.
    pub(crate) fn topic(topic: &str) -> Self {
        Self::new(&["topics", not_new(topic)])
    }

    /// The page of a subscription.
    pub(crate) fn subscription(topic: &str, name: &str) -> Self {
        Self::new(&["topics", not_new(topic), "subscriptions", not_new(name)])
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PATH}{}", self.0.as_str())
    }
}

impl Render for Address {
    fn render_to(&self, buffer: &mut String) {
        self.to_string().render_to(buffer);
    }
}

/// Most bytes of the address of an event. `serve` takes 2,048 bytes, of which some are for
/// parameters.
const EVENT_BYTES_MAX: usize = 1_500;

/// Whether an id can be a part of a path. Browsers take a part of dots, even an encoded one, as a
/// step in the path, and an HTTP API of AWS decodes `%2F`.
pub(crate) fn is_plain(id: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    !matches!(id, "" | "." | "..") && id.bytes().all(is_plain)
}

/// The last part of the path of a form that makes something new.
pub(crate) const NEW: &str = "new";

/// The page of these parts.
pub(crate) fn page(parts: &[&str]) -> String {
    Address::new(parts).to_string()
}

/// A page below that of a topic.
pub(crate) fn topic(topic: &str, below: &[&str]) -> String {
    page(&[&["topics", not_new(topic)], below].concat())
}

/// A page below that of a subscription.
pub(crate) fn subscription(of: &str, name: &str, below: &[&str]) -> String {
    topic(of, &[&["subscriptions", not_new(name)], below].concat())
}

/// The address with these parameters.
pub(crate) fn with_query(page: &str, parameters: &[(&str, &str)]) -> String {
    let query = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(parameters)
        .finish();
    format!("{page}?{query}")
}

/// The name in a path. What is called like the form has its name in another case, in which it is
/// found too.
fn not_new(name: &str) -> &str {
    if name == NEW { "New" } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_cannot_leave_its_part_of_the_path() {
        let check = |id: &str, expected: &str| {
            assert_eq!(Address::event("orders", id).to_string(), expected, "{id}");
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

    #[test]
    fn an_address_that_is_too_long_for_a_request_is_not_made() {
        let check =
            |id: &str, expected| assert_eq!(Address::short_event("orders", id).is_some(), expected);
        check(&"x".repeat(1_024), true);
        check(&"ü".repeat(200), true);
        check(&"ü".repeat(1_024), false);
        check(&"\"".repeat(600), false);
    }

    #[test]
    fn parts_and_parameters_are_escaped() {
        assert_eq!(
            page(&["events", "a b/c?", "..", "d-1"]),
            "/console/events/a%20b%2Fc%3F/%2E%2E/d-1"
        );
        assert_eq!(
            with_query("/console/events", &[("type", "a&b")]),
            "/console/events?type=a%26b"
        );
    }

    #[test]
    fn what_is_called_new_is_not_the_form() {
        assert_eq!(topic("new", &[]), "/console/topics/New");
        assert_eq!(
            topic("orders", &["subscriptions", NEW]),
            "/console/topics/orders/subscriptions/new"
        );
        assert_eq!(
            subscription("a", "new", &["edit"]),
            "/console/topics/a/subscriptions/New/edit"
        );
    }
}
