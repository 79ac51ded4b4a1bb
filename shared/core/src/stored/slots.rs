//! The slots of a subscription with a bound on its open requests: who holds how many.
//!
//! Key `slots/{topic}.{subscription}.json`. Version 1; read and written by deliver alone, by
//! conditional put, and found out again when it is lost. Fixture: `slots-v1.json`.

use super::format::versioned_object;
use super::keys::subscription_folder;
use crate::attempt::SlotState;
use crate::model::{SubscriptionName, TopicName};

/// The prefix of the states of slots.
pub const SLOTS: &str = "slots/";

/// The key of the slots of a subscription with a bound on its open requests.
pub fn slot_state_key(topic: &TopicName, subscription: &SubscriptionName) -> String {
    format!("{SLOTS}{}.json", subscription_folder(topic, subscription))
}

versioned_object!(SlotState, 1, "the state of slots");

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::attempt::{SlotClaim, SlotGrant, SlotState};
    use crate::model::{FormatError, SlotLimit, Timestamp};

    /// Version 1 as it was first written. Never edited.
    const V1: &str = include_str!("fixtures/slots-v1.json");

    #[test]
    fn state_of_slots_is_written_as_its_fixture_and_read_back() {
        let claim = SlotClaim {
            holder: "3f1c7e9a-9d0a-4b58-8a41-0a1b2c3d4e5f",
            begun: 0,
            held: 0,
            wanted: 3,
            timeout: Duration::from_secs(30),
        };
        let now = Timestamp::from_millis(1_700_000_000_000);
        let limit = SlotLimit::new(5).unwrap();
        let SlotGrant::Lease(_, state) = limit.take_slots(None, &claim, now) else {
            panic!("expected a lease")
        };
        assert_eq!(state.render(), V1.trim_end());
        assert_eq!(SlotState::parse(V1.as_bytes()).unwrap(), state);
    }

    #[test]
    fn state_of_slots_is_never_read_from_something_else() {
        for other in ["", "{}", r#"{"v":1,"at":5,"leases":[{"slots":-1}]}"#] {
            let read = SlotState::parse(other.as_bytes());
            assert!(matches!(read, Err(FormatError::Malformed(..))), "{other}");
        }
        let newer = SlotState::parse(br#"{"v":2}"#);
        assert!(matches!(newer, Err(FormatError::Newer(2))));
    }
}
