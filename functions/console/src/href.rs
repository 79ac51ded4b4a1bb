//! The addresses of pages.

use std::fmt::Write;

use percent_encoding::utf8_percent_encode;
use url::form_urlencoded;

use crate::api::ESCAPED;
use crate::router::PATH;

/// The last part of the path of a form that makes something new.
pub(crate) const NEW: &str = "new";

/// The page of these parts.
pub(crate) fn page(parts: &[&str]) -> String {
    let mut path = PATH.to_owned();
    for part in parts {
        // Writing to a text cannot fail.
        let _ = write!(path, "/{}", utf8_percent_encode(part, ESCAPED));
    }
    path
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
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(parameters).finish();
    format!("{page}?{query}")
}

/// The name in a path. What is called like the form has its name in another case, in which it is found too.
fn not_new(name: &str) -> &str {
    if name == NEW { "New" } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_parameters_are_escaped() {
        assert_eq!(page(&["events", "a b/c?", "..", "d-1"]), "/console/events/a%20b%2Fc%3F/%2E%2E/d-1");
        assert_eq!(with_query("/console/events", &[("type", "a&b")]), "/console/events?type=a%26b");
    }

    #[test]
    fn what_is_called_new_is_not_the_form() {
        assert_eq!(topic("new", &[]), "/console/topics/New");
        assert_eq!(topic("orders", &["subscriptions", NEW]), "/console/topics/orders/subscriptions/new");
        assert_eq!(subscription("a", "new", &["edit"]), "/console/topics/a/subscriptions/New/edit");
    }
}
