//! The stack that works on a state bucket, so that another is refused.
//!
//! Key `owner.json`. Version 1; written by the monitor on AWS, when its stack is made and then
//! every five minutes, and deleted with the stack; read by the monitor of another stack. Fixture:
//! `owner-v1.json`.

use super::format::versioned_object;
use crate::model::StateOwner;

/// The key of the owner's object.
pub const OWNER: &str = "owner.json";

versioned_object!(StateOwner, 1, "an owner of state");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{FormatError, Timestamp};

    const FIXTURE: &str = include_str!("fixtures/owner-v1.json");

    #[test]
    fn an_owner_is_written_as_it_always_was_and_read_back() {
        let owner = StateOwner {
            stack: "arn:aws:cloudformation:eu-central-1:123456789012:stack/posthaste/0b8b9c5e"
                .to_owned(),
            seen_at: Timestamp::from_millis(1_700_000_000_000),
        };
        assert_eq!(owner.render(), FIXTURE.trim_end());
        assert_eq!(StateOwner::parse(FIXTURE.as_bytes()).unwrap(), owner);
    }

    #[test]
    fn unknown_member_is_ignored_and_a_newer_version_told_apart() {
        let more = br#"{"v":1,"stack":"s","seenAt":5,"more":true}"#;
        assert_eq!(StateOwner::parse(more).unwrap().stack, "s");
        assert!(matches!(
            StateOwner::parse(br#"{"v":2}"#),
            Err(FormatError::Newer(2))
        ));
        assert!(matches!(
            StateOwner::parse(b"{}"),
            Err(FormatError::Malformed(..))
        ));
    }
}
