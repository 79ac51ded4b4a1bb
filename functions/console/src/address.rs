//! Addresses of pages: what others named stands in them percent-encoded.

use std::fmt;

use maud::Render;

use crate::api::Target;
use crate::router::PATH;

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

    /// The page of an event. Browsers take a part of dots, even an encoded one, as a step in the path, so
    /// such an id stands in the query.
    pub(crate) fn event(topic: &str, id: &str) -> Self {
        if matches!(id, "." | "..") {
            return Self::new(&["topics", topic, "event"]).query("id", Some(id));
        }
        Self::new(&["topics", topic, "events", id])
    }

    /// The page of a subscription.
    pub(crate) fn subscription(topic: &str, name: &str) -> Self {
        Self::new(&["topics", topic, "subscriptions", name])
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_cannot_leave_its_part_of_the_path() {
        let check =
            |id: &str, expected: &str| assert_eq!(Address::event("orders", id).to_string(), expected, "{id}");
        check("order-1", "/console/topics/orders/events/order-1");
        check("../x?y#z", "/console/topics/orders/events/%2E%2E%2Fx%3Fy%23z");
        check("..", "/console/topics/orders/event?id=..");
        check(".", "/console/topics/orders/event?id=.");
        check("\"><script>", "/console/topics/orders/events/%22%3E%3Cscript%3E");
    }
}
