//! The delivery of an event that is sent again, and the places where its payload may be.

use super::{DeliveryHistory, DeliveryState, LogRecord};
use crate::model::{Identity, SubscriptionCreation, webhook_id_of};

/// The delivery that is sent again.
#[derive(Debug, Clone, PartialEq)]
pub struct ResendChoice<'a> {
    /// The delivery.
    pub history: &'a DeliveryHistory,
    /// Deliveries with the event's payload, the chosen one first: itself, and copies of it that
    /// were sent again before.
    pub with_payload: Vec<&'a DeliveryHistory>,
    /// Whether it, or such a copy, still waits, so that it may arrive besides.
    pub is_waiting: bool,
}

/// The reason why no delivery can be sent again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResendRefusal {
    /// There is no such delivery.
    Unknown,
    /// There are some, but all were accepted for an earlier subscription of the same name.
    Former,
    /// A producer gave the id to several events. These are the keys of their deliveries, the newest
    /// first.
    Several(Vec<String>),
}

/// Chooses the delivery of an event that is sent again: the one with this key or, without a key,
/// the only one that a producer made. Copies of it by replays and resends are no choice while that
/// one is known. `histories` are those of an id towards one subscription, the newest first.
pub fn choose_delivery<'a>(
    histories: &'a [DeliveryHistory],
    created: &SubscriptionCreation,
    key: Option<&str>,
) -> Result<ResendChoice<'a>, ResendRefusal> {
    let own: Vec<_> = histories
        .iter()
        .filter(|history| is_for(history, created))
        .collect();
    let [newest, ..] = own[..] else {
        return Err(if histories.is_empty() {
            ResendRefusal::Unknown
        } else {
            ResendRefusal::Former
        });
    };
    let published: Vec<_> = own
        .iter()
        .copied()
        .filter(|history| !is_copy(history))
        .collect();
    let history = match (key, &published[..]) {
        (Some(key), _) => own
            .iter()
            .find(|history| history.key == key)
            .ok_or(ResendRefusal::Unknown)?,
        (None, [only]) => only,
        (None, []) => newest,
        (None, several) => return Err(ResendRefusal::Several(history_keys(several))),
    };
    // Whose copy is whose cannot be told where the id repeats.
    let same = if published.len() > 1 {
        vec![history]
    } else {
        with_first(history, &own)
    };
    let is_waiting = same.iter().any(|history| is_waiting(history));
    let with_payload = same
        .into_iter()
        .filter(|history| has_payload(history))
        .collect();
    Ok(ResendChoice {
        history,
        with_payload,
        is_waiting,
    })
}

impl DeliveryHistory {
    /// The `webhook-id` of the event when it travels alone: the one that it was sent under, or
    /// would have been without the other events of its batch.
    pub fn webhook_id(&self) -> String {
        let records = self.records();
        let own = records
            .iter()
            .find_map(|record| record.own_webhook_id.as_ref());
        own.or_else(|| kept_webhook_id(records))
            .cloned()
            .unwrap_or_else(|| webhook_id_of(&self.key))
    }
}

/// The id that an event kept when release 0.1 sent it again, alone. The id of a batch is a digest,
/// without a number.
fn kept_webhook_id(records: &[LogRecord]) -> Option<&String> {
    records
        .iter()
        .filter(|record| record.origin.is_sent_again())
        .filter_map(|record| record.webhook_id.as_ref())
        .find(|id| id.contains('-'))
}

fn with_first<'a>(
    first: &'a DeliveryHistory,
    all: &[&'a DeliveryHistory],
) -> Vec<&'a DeliveryHistory> {
    let others = all
        .iter()
        .copied()
        .filter(|history| history.key != first.key);
    std::iter::once(first).chain(others).collect()
}

fn history_keys(histories: &[&DeliveryHistory]) -> Vec<String> {
    histories
        .iter()
        .map(|history| history.key.clone())
        .collect()
}

fn is_for(history: &DeliveryHistory, created: &SubscriptionCreation) -> bool {
    let first = history.first();
    created.has_accepted(
        first.identity.as_deref().and_then(Identity::parse),
        first.accepted_at,
    )
}

fn is_copy(history: &DeliveryHistory) -> bool {
    history.first().origin.is_sent_again()
}

fn is_waiting(history: &DeliveryHistory) -> bool {
    matches!(
        history.state,
        DeliveryState::Pending | DeliveryState::Waiting | DeliveryState::Held
    )
}

fn has_payload(history: &DeliveryHistory) -> bool {
    history.payload.is_some()
        || history.payload_reference.is_some()
        || history.dead_letter_object.is_some()
}

#[cfg(test)]
mod tests {
    use super::super::AttemptOrigin;
    use super::*;
    use crate::delivery_log::{
        LogRecord, LogResult, RecordKind, RecordPayload, gather_by_delivery,
    };
    use crate::model::{CreationId, CreationRecord, Timestamp};

    /// A record of a delivery; it was accepted at the time of its attempt.
    fn record(key: &str, origin: AttemptOrigin, result: LogResult) -> LogRecord {
        let ms = key.bytes().map(u64::from).sum();
        LogRecord {
            record_id: format!("{key}-{}", result.as_str()),
            time: Timestamp::from_millis(ms),
            accepted_at: Timestamp::from_millis(ms),
            kind: RecordKind::Attempt,
            delivery_key: key.to_owned(),
            webhook_id: Some(format!("msg_of-{key}")),
            payload: RecordPayload::parse("{}"),
            origin,
            result,
            ..LogRecord::default()
        }
    }

    fn check(
        records: Vec<LogRecord>,
        key: Option<&str>,
        expected: Result<(&str, bool), ResendRefusal>,
    ) {
        let histories = gather_by_delivery(records);
        let chosen = choose_delivery(&histories, &SubscriptionCreation::UNKNOWN, key);
        let shown = chosen.map(|chosen| (chosen.history.key.clone(), chosen.is_waiting));
        assert_eq!(
            shown,
            expected.map(|(key, is_waiting)| (key.to_owned(), is_waiting))
        );
    }

    #[test]
    fn the_only_delivery_is_sent_again_and_one_of_several_is_named() {
        use AttemptOrigin::{First, Replay, Resend};
        use LogResult::{Delivered, Retry};
        check(vec![], None, Err(ResendRefusal::Unknown));
        check(vec![record("a", First, Delivered)], None, Ok(("a", false)));
        check(vec![record("a", First, Retry)], None, Ok(("a", true)));
        check(
            vec![record("a", First, Retry)],
            Some("b"),
            Err(ResendRefusal::Unknown),
        );
        let several = || vec![record("a", First, Delivered), record("b", First, Retry)];
        check(
            several(),
            None,
            Err(ResendRefusal::Several(vec!["b".to_owned(), "a".to_owned()])),
        );
        check(several(), Some("a"), Ok(("a", false)));
        let copied = || {
            vec![
                record("a", First, Delivered),
                record("b", Replay, Delivered),
                record("c", Resend, Retry),
            ]
        };
        check(copied(), None, Ok(("a", true)));
        check(copied(), Some("b"), Ok(("b", true)));
        check(copied()[1..].to_vec(), None, Ok(("c", true)));
    }

    #[test]
    fn the_payload_may_be_that_of_a_copy() {
        let bare = LogRecord {
            payload: None,
            ..record("a", AttemptOrigin::First, LogResult::Delivered)
        };
        let copy = record("b", AttemptOrigin::Replay, LogResult::Delivered);
        let keys = |records: Vec<LogRecord>| {
            let histories = gather_by_delivery(records);
            let chosen =
                choose_delivery(&histories, &SubscriptionCreation::UNKNOWN, Some("a")).unwrap();
            history_keys(&chosen.with_payload)
        };
        assert_eq!(keys(vec![bare.clone()]), Vec::<String>::new());
        assert_eq!(keys(vec![bare.clone(), copy.clone()]), ["b"]);
        let full = record("a", AttemptOrigin::First, LogResult::Delivered);
        assert_eq!(keys(vec![full, copy.clone()]), ["a", "b"]);
        let other = record("c", AttemptOrigin::First, LogResult::Delivered);
        assert_eq!(keys(vec![bare, copy, other]), Vec::<String>::new());
    }

    /// Delivery for an earlier subscription of the same name cannot be chosen.
    #[test]
    fn delivery_of_a_former_subscription_is_no_resend_choice() {
        let creation = |byte| {
            Some(CreationRecord {
                id: CreationId::new([byte; 6]),
                at: Some(Timestamp::EPOCH),
            })
        };
        let created = SubscriptionCreation {
            topic: creation(1),
            subscription: creation(2),
            topic_at: Timestamp::EPOCH,
        };
        let of = |identity: &str| LogRecord {
            identity: Some(identity.to_owned()),
            ..record("a", AttemptOrigin::First, LogResult::Delivered)
        };
        let former = gather_by_delivery(vec![of("010101010101030303030303")]);
        assert_eq!(
            choose_delivery(&former, &created, None),
            Err(ResendRefusal::Former)
        );
        let own = gather_by_delivery(vec![of("010101010101020202020202")]);
        assert!(choose_delivery(&own, &created, None).is_ok());
    }

    /// Webhook id is that of the event alone, and a resend hands it on.
    #[test]
    fn webhook_id_is_the_events_own_and_kept_by_resends() {
        let webhook_id = |record: LogRecord| gather_by_delivery(vec![record])[0].webhook_id();
        let of = |origin| record("a", origin, LogResult::Delivered);
        assert_eq!(webhook_id(of(AttemptOrigin::First)), "msg_a");
        // Those of release 0.1 say the id of the request alone.
        for origin in [AttemptOrigin::Replay, AttemptOrigin::Resend] {
            assert_eq!(webhook_id(of(origin)), "msg_of-a");
            let mut batch = of(origin);
            batch.webhook_id = Some("msg_96ba4ca94b8e4f2ad1818929d51bad20".to_owned());
            assert_eq!(webhook_id(batch.clone()), "msg_a");
            batch.own_webhook_id = Some("msg_first-0".to_owned());
            assert_eq!(webhook_id(batch), "msg_first-0");
        }
    }
}
