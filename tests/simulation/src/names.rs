//! Names, times and events that every world shares.

use posthaste_core::model::{
    CREATION_ID_BYTES, CreationId, SubscriptionName, Timestamp, TopicName,
};

/// The time at which every world begins.
pub fn start() -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000)
}

/// A CloudEvent of this id.
pub fn event(id: &str) -> String {
    format!(r#"{{"specversion":"1.0","id":"{id}","source":"/shop","type":"order.paid"}}"#)
}

pub(crate) fn creation_id(number: u8) -> CreationId {
    CreationId::new([number; CREATION_ID_BYTES])
}

pub(crate) fn topic_name() -> TopicName {
    TopicName::parse("orders").expect("a name")
}

pub(crate) fn subscription_name() -> SubscriptionName {
    SubscriptionName::parse("billing").expect("a name")
}
