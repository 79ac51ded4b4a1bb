//! The message of a dead letter, in the dead-letter queue: a reason, perhaps trouble with the
//! bucket, and the delivery's own message.
//!
//! Version 1; written by deliver and deadletter, read by deadletter. Fixtures:
//! `dead-letter-v1.json`, `dead-letter-v1-disabled.json`, `dead-letter-v1-dropped.json`,
//! `dead-letter-v1-identity.json`, `dead-letter-v1-object.json`.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::delivery::{WIRE_VERSION, parse_delivery, put_open_object, render_delivery};
use crate::model::{
    DeadLetter, DeadLetterReason, FormatError, StorageTrouble, StoredFormat, Timestamp,
};

const FORMAT: StoredFormat = StoredFormat {
    name: "a dead-letter message",
    newest: WIRE_VERSION,
};

#[derive(Serialize, Deserialize)]
struct DeadLetterHead {
    v: u32,
    reason: DeadLetterReason,
    #[serde(skip_serializing_if = "Option::is_none")]
    storage: Option<StorageTrouble>,
    /// Later than version 1 itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<String>,
    /// Later than version 1 itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    dropped: bool,
    /// Whether the reason is [`DeadLetterReason::SubscriptionDisabled`], a word that release 0.1
    /// does not know. It reads [`DeadLetterReason::EndpointGone`] and passes this over. Later than
    /// version 1 itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    missed: bool,
    /// Later than version 1 itself: release 0.1 passes it over, and such a letter is not recovered.
    #[serde(
        rename = "outageSince",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    outage_since: Option<Timestamp>,
}

#[derive(Deserialize)]
struct DeadLetterWire<'a> {
    #[serde(flatten)]
    head: DeadLetterHead,
    #[serde(borrow)]
    delivery: &'a RawValue,
}

/// Renders a dead letter as the body of a message.
pub fn render_dead_letter(letter: &DeadLetter) -> Bytes {
    let delivery = render_delivery(&letter.delivery);
    let mut body = Vec::with_capacity(delivery.len() + 256);
    let DeadLetter {
        reason,
        storage,
        dropped,
        outage_since,
        ..
    } = *letter;
    let missed = reason == DeadLetterReason::SubscriptionDisabled;
    let head = DeadLetterHead {
        v: 1,
        reason: if missed {
            DeadLetterReason::EndpointGone
        } else {
            reason
        },
        storage,
        object: letter.object.clone(),
        dropped,
        missed,
        outage_since,
    };
    put_open_object(&mut body, &head);
    body.extend_from_slice(b",\"delivery\":");
    body.extend_from_slice(&delivery);
    body.push(b'}');
    body.into()
}

/// Reads a dead-letter message. The events are slices of `body`.
pub fn parse_dead_letter(body: &Bytes) -> Result<DeadLetter, FormatError> {
    let DeadLetterWire { head, delivery } =
        FORMAT.parse(body, |wire: &DeadLetterWire<'_>| wire.head.v)?;
    let DeadLetterHead {
        reason,
        storage,
        object,
        dropped,
        missed,
        outage_since,
        ..
    } = head;
    let reason = if missed {
        DeadLetterReason::SubscriptionDisabled
    } else {
        reason
    };
    let delivery = parse_delivery(&body.slice_ref(delivery.get().as_bytes()))?;
    Ok(DeadLetter {
        reason,
        delivery,
        storage,
        object,
        dropped,
        outage_since,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{EventMarks, Timestamp};
    use crate::stored::delivery::tests::{as_of_0_1_0, delivery, identified};

    const DEAD_LETTER_V1_IDENTITY: &str = include_str!("fixtures/dead-letter-v1-identity.json");
    const DEAD_LETTER_V1_OBJECT: &str = include_str!("fixtures/dead-letter-v1-object.json");
    const DEAD_LETTER_V1_DROPPED: &str = include_str!("fixtures/dead-letter-v1-dropped.json");
    const DEAD_LETTER_V1_DISABLED: &str = include_str!("fixtures/dead-letter-v1-disabled.json");
    const DEAD_LETTER_V1: &str = include_str!("fixtures/dead-letter-v1.json");

    /// Release 0.1 reads a reason that it knows, and writes the dead letter with that one.
    #[test]
    fn letter_of_a_disabled_subscription_has_a_reason_0_1_0_knows() {
        let letter = DeadLetter {
            reason: DeadLetterReason::SubscriptionDisabled,
            ..dead_letter()
        };
        assert_eq!(
            as_of_0_1_0(&render_dead_letter(&letter)),
            DEAD_LETTER_V1_DISABLED.trim_end()
        );
        let body = Bytes::from_static(DEAD_LETTER_V1_DISABLED.as_bytes());
        assert_eq!(parse_dead_letter(&body).unwrap(), letter);
        let of_0_1_0 = DEAD_LETTER_V1_DISABLED.replace(r#","missed":true"#, "");
        let read = parse_dead_letter(&of_0_1_0.into()).unwrap();
        assert_eq!(read.reason, DeadLetterReason::EndpointGone);
    }

    fn dead_letter() -> DeadLetter {
        DeadLetter {
            reason: DeadLetterReason::TimeToLiveExceeded,
            delivery: delivery(),
            storage: Some(StorageTrouble {
                since: Timestamp::from_millis(1_700_000_400_000),
                failures: 3,
            }),
            object: None,
            dropped: false,
            outage_since: None,
        }
    }

    #[test]
    fn dead_letter_with_an_identity_round_trips_as_its_fixture() {
        let letter = DeadLetter {
            delivery: identified(),
            ..dead_letter()
        };
        assert_eq!(
            as_of_0_1_0(&render_dead_letter(&letter)),
            DEAD_LETTER_V1_IDENTITY.trim_end()
        );
        let read = parse_dead_letter(&Bytes::from_static(DEAD_LETTER_V1_IDENTITY.as_bytes()));
        assert_eq!(read.unwrap(), letter);
    }

    #[test]
    fn a_dead_letter_is_written_as_its_fixture_and_read_back() {
        assert_eq!(
            as_of_0_1_0(&render_dead_letter(&dead_letter())),
            DEAD_LETTER_V1.trim_end()
        );
        assert_eq!(
            parse_dead_letter(&Bytes::from_static(DEAD_LETTER_V1.as_bytes())).unwrap(),
            dead_letter()
        );
    }

    #[test]
    fn dead_letter_in_its_object_round_trips_as_its_fixture() {
        let object = Some("ORDERS/BILLING/2023/11/14/22/x.json".to_owned());
        let letter = DeadLetter {
            object,
            storage: None,
            ..dead_letter()
        };
        assert_eq!(
            as_of_0_1_0(&render_dead_letter(&letter)),
            DEAD_LETTER_V1_OBJECT.trim_end()
        );
        let read = parse_dead_letter(&Bytes::from_static(DEAD_LETTER_V1_OBJECT.as_bytes()));
        assert_eq!(read.unwrap(), letter);
    }

    #[test]
    fn dropped_dead_letter_round_trips_as_its_fixture() {
        let letter = DeadLetter {
            dropped: true,
            storage: None,
            ..dead_letter()
        };
        assert_eq!(
            as_of_0_1_0(&render_dead_letter(&letter)),
            DEAD_LETTER_V1_DROPPED.trim_end()
        );
        let read = parse_dead_letter(&Bytes::from_static(DEAD_LETTER_V1_DROPPED.as_bytes()));
        assert_eq!(read.unwrap(), letter);
    }

    #[test]
    fn a_dead_letter_says_since_when_its_endpoint_was_not_well() {
        let letter = DeadLetter {
            outage_since: Some(Timestamp::from_millis(1_700_000_000_000)),
            ..dead_letter()
        };
        let body = render_dead_letter(&letter);
        assert!(body.windows(13).any(|part| part == b"\"outageSince\""));
        assert_eq!(parse_dead_letter(&body).unwrap(), letter);
    }

    #[test]
    fn a_dead_letter_keeps_the_marks_of_its_events() {
        let again = EventMarks {
            replayed: true,
            run: Some("r".to_owned()),
            redirect: Some("/new".to_owned()),
            ..EventMarks::default()
        };
        let mut letter = dead_letter();
        letter.delivery.events[0].marks = again;
        assert_eq!(
            parse_dead_letter(&render_dead_letter(&letter)).unwrap(),
            letter
        );
    }

    #[test]
    fn a_delivery_is_no_dead_letter_nor_the_other_way_round() {
        assert!(matches!(
            parse_dead_letter(&render_delivery(&delivery())),
            Err(FormatError::Malformed(..))
        ));
        assert!(matches!(
            parse_delivery(&render_dead_letter(&dead_letter())),
            Err(FormatError::Malformed(..))
        ));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_panic(body: Vec<u8>) {
            let _ = parse_dead_letter(&Bytes::from(body)).is_ok();
        }
    }
}
