//! The things by which a user knows an event: its id, a request's `webhook-id`, the key of a
//! dead-letter object.

use crate::delivery_log::log_text;
use crate::model::{SubscriptionName, TopicName, WEBHOOK_ID_PREFIX, is_object_key};
use crate::stored::dead_letter::{dead_letter_hour, dead_letter_owner, dead_letters_of};

/// The meanings that a text may have, by its form. Producers choose ids freely, so every text may
/// be an event's id besides anything else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventReference {
    /// The id of an event, as the delivery log keeps it.
    pub event_id: String,
    /// The `webhook-id` of a request.
    pub webhook_id: Option<String>,
    /// The key of a dead-letter object.
    pub dead_letter: Option<DeadLetterKey>,
}

/// The key of a dead-letter object, by its form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetterKey {
    /// The key.
    pub key: String,
    /// The prefix of the keys of its subscription.
    pub prefix: String,
    /// The topic.
    pub topic: TopicName,
    /// The subscription.
    pub subscription: SubscriptionName,
}

impl EventReference {
    /// Reads what a user has. White space around a `webhook-id` or a key comes from where it was
    /// copied; around an event's id it may be the producer's.
    pub fn from_text(text: &str) -> Self {
        let trimmed = text.trim();
        let is_of_request = trimmed
            .strip_prefix(WEBHOOK_ID_PREFIX)
            .is_some_and(|rest| !rest.is_empty());
        Self {
            event_id: log_text(text),
            webhook_id: is_of_request.then(|| trimmed.to_owned()),
            dead_letter: DeadLetterKey::parse(trimmed),
        }
    }
}

impl DeadLetterKey {
    fn parse(key: &str) -> Option<Self> {
        let (topic, subscription) = dead_letter_owner(key).filter(|_| is_object_key(key))?;
        let prefix = dead_letters_of(&topic, &subscription);
        dead_letter_hour(&prefix, key)?;
        let file = key.strip_prefix(&prefix)?.split('/').nth(4)?;
        (!file.is_empty()).then(|| Self {
            key: key.to_owned(),
            prefix,
            topic,
            subscription,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KEY: &str = "ORDERS/BILLING/2026/11/21/9/0b8b9c5e-6a0c-4a57-9d0c-3c2a7d1f6f1e.json";

    fn forms(text: &str) -> (bool, bool) {
        let known = EventReference::from_text(text);
        (known.webhook_id.is_some(), known.dead_letter.is_some())
    }

    #[test]
    fn form_of_a_text_says_what_it_may_be() {
        assert_eq!(forms("order-1001"), (false, false));
        assert_eq!(
            forms("5f1c9f5e-7c1b-4c0e-9a53-0d7d2f1b6c11"),
            (false, false)
        );
        assert_eq!(
            forms("msg_018bcfe568007abc8def0123456789ab-0"),
            (true, false)
        );
        // As version 0.1.0 made them, and of a batch.
        assert_eq!(
            forms("msg_d696566cadfa433ea894554ff54dd785-0"),
            (true, false)
        );
        assert_eq!(forms("msg_d696566cadfa433ea894554ff54dd785"), (true, false));
        assert_eq!(forms(KEY), (false, true));
        for other in [
            "",
            " ",
            "msg",
            "msg_",
            "MSG_1",
            "a/b",
            "ORDERS/BILLING",
            "ORDERS/BILLING/2026/11/21/9",
            "ORDERS/BILLING/2026/11/21/9/",
            "ORDERS/BILLING/2026/13/21/9/x.json",
            "orders/billing/2026/11/21/9/x.json",
            "ORDERS//2026/11/21/9/x.json",
            "ORDERS/BILLING/2026/11/21/9/../x.json",
            "MALFORMED/2026/11/21/9/x",
        ] {
            assert_eq!(forms(other), (false, false), "{other}");
        }
    }

    #[test]
    fn every_text_may_be_the_id_of_an_event() {
        for text in [KEY, "msg_1-0", " msg_1-0\n", "ü ?%2F", ""] {
            assert_eq!(EventReference::from_text(text).event_id, text);
        }
    }

    #[test]
    fn copied_key_is_read_without_white_space() {
        let known = EventReference::from_text(&format!(" {KEY}\n"));
        let letter = known.dead_letter.unwrap();
        assert_eq!(
            (letter.key.as_str(), letter.prefix.as_str()),
            (KEY, "ORDERS/BILLING/")
        );
        assert_eq!(letter.topic.folded(), "orders");
        let known = EventReference::from_text("\tmsg_1-0 ");
        assert_eq!(known.webhook_id.as_deref(), Some("msg_1-0"));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text: String) {
            let known = EventReference::from_text(&text);
            prop_assert_eq!(known.event_id, log_text(&text));
        }
    }
}
