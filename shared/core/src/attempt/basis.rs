//! The basis of a request: what of its subscription it depends on. A request waits for its turn,
//! and begins only if its basis still is what it was planned by.
//!
//! The version of the topic's record is not compared: most edits change nothing of a request, and a
//! delivery that went back for each of them could wait forever.

use crate::model::{SigningSecret, Subscription, SubscriptionStatus, Timestamp};

/// Whether a request that was planned by one view of a subscription may begin `now` by the current
/// one: the subscription is the same creation, is delivered to, and would make the same request.
///
/// Some parts are no basis. Filter and schema were applied when the event was published. The retry
/// and dead-letter policies are read when the attempt has ended. The delivery log is no concern of
/// the endpoint's.
pub fn may_begin(planned: &Subscription, current: &Subscription, now: Timestamp) -> bool {
    // Each member is named, so that a new one has to be decided on.
    let Subscription {
        topic: _,
        name: _,
        created,
        endpoint,
        fallback,
        timeout,
        delivery_schema: _,
        content_mode,
        filter: _,
        retry: _,
        batching,
        dead_letter: _,
        recovery: _,
        delivery_headers,
        sender_headers,
        signing,
        lifetime,
        delivery_log: _,
        status: _,
        status_since: _,
        while_disabled: _,
        gone_at: _,
        pending_until: _,
        rate,
        concurrency,
    } = current;
    let is_delivered_to =
        !lifetime.is_over(now) && current.status_at(now) == SubscriptionStatus::Active;
    if !is_delivered_to || std::ptr::eq(planned, current) {
        return is_delivered_to;
    }
    created.identity() == planned.created.identity()
        && *endpoint == planned.endpoint
        && *fallback == planned.fallback
        && *timeout == planned.timeout
        && *content_mode == planned.content_mode
        && *batching == planned.batching
        && *rate == planned.rate
        && *concurrency == planned.concurrency
        && *delivery_headers == planned.delivery_headers
        && *sender_headers == planned.sender_headers
        && have_same_live_secrets(signing, &planned.signing, now)
}

/// Whether the secrets that sign an attempt now are the same. One that has ended signs nothing, so
/// it is no change that the next write drops it.
fn have_same_live_secrets(
    current: &[SigningSecret],
    planned: &[SigningSecret],
    now: Timestamp,
) -> bool {
    let mut planned = planned.iter().filter(|it| it.is_live(now));
    let mut current = current.iter().filter(|it| it.is_live(now));
    current.all(|one| planned.next().is_some_and(|other| one.is_same(other)))
        && planned.next().is_none()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::api::compile_subscription;
    use crate::model::{
        CREATION_ID_BYTES, CreationId, CreationRecord, EventSchema, SenderHeaders,
        SubscriptionCreation, SubscriptionName, TopicName,
    };

    const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);
    const FIRST: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const SECOND: &str = "whsec_QUJDREVGR0hJSktMTU5PUFFSU1RVVldY";

    fn merged(settings: &mut Value, more: Value) {
        match (settings, more) {
            (Value::Object(settings), Value::Object(more)) => {
                for (name, value) in more {
                    merged(settings.entry(name).or_insert(Value::Null), value);
                }
            }
            (settings, more) => *settings = more,
        }
    }

    /// A subscription of these settings, besides what every one here has.
    fn subscription(more: Value) -> Subscription {
        let mut settings = json!({
            "endpoint": { "url": "https://a.example/hooks" },
            "deliveryHeaders": [{ "name": "x-tenant", "value": "acme" }],
            "signing": { "secrets": [FIRST] },
        });
        merged(&mut settings, more);
        let topic = TopicName::parse("orders").unwrap();
        let name = SubscriptionName::parse("billing").unwrap();
        let settings = serde_json::from_value(settings).unwrap();
        compile_subscription(&topic, EventSchema::CloudEvents, &name, &settings).unwrap()
    }

    /// A request may begin only if the headers that say who sends are unchanged.
    #[test]
    fn sender_is_part_of_the_basis() {
        let named = |prefix: Option<&str>| {
            let headers = prefix.map(|prefix| SenderHeaders::new(Some(prefix), &[]).unwrap());
            Subscription {
                sender_headers: headers,
                ..subscription(json!({}))
            }
        };
        assert!(may_begin(&named(Some("acme")), &named(Some("acme")), NOW));
        assert!(!may_begin(&named(Some("acme")), &named(Some("shop")), NOW));
        assert!(!may_begin(&named(None), &named(Some("acme")), NOW));
    }

    fn check(more: Value, expected: bool) {
        let shown = more.to_string();
        let current = subscription(more);
        let planned = subscription(json!({}));
        assert_eq!(may_begin(&planned, &current, NOW), expected, "{shown}");
    }

    #[test]
    fn changes_to_the_request_stop_it() {
        check(json!({}), true);
        for endpoint in [
            json!({ "url": "https://a.example/other" }),
            json!({ "fallbackUrl": "https://b.example/" }),
            json!({ "maxRequestsPerSecond": 5.0 }),
            json!({ "maxConcurrentRequests": 5 }),
            json!({ "timeout": "PT7S" }),
        ] {
            check(json!({ "endpoint": endpoint }), false);
        }
        for headers in [
            json!([{ "name": "x-tenant", "value": "other" }]),
            json!([{ "name": "x-tenant", "fromEvent": "/id" }]),
            json!([]),
        ] {
            check(json!({ "deliveryHeaders": headers }), false);
        }
        check(json!({ "contentMode": "binary" }), false);
        check(json!({ "batching": { "maxEventsPerBatch": 5 } }), false);
        check(json!({ "signing": { "secrets": [SECOND] } }), false);
        check(json!({ "signing": { "secrets": [SECOND, FIRST] } }), false);
    }

    #[test]
    fn changes_beside_the_request_do_not_stop_it() {
        check(json!({ "filter": { "includedEventTypes": ["a"] } }), true);
        check(json!({ "retryPolicy": { "maxDeliveryAttempts": 3 } }), true);
        check(json!({ "deadLetter": { "enabled": false } }), true);
    }

    #[test]
    fn only_active_subscriptions_within_their_time_are_sent_to() {
        let since = "2020-01-01T00:00:00Z";
        for state in ["Paused", "Disabled", "Failed"] {
            check(
                json!({ "status": { "state": state, "since": since } }),
                false,
            );
        }
        let ends = |at: Timestamp| Subscription {
            lifetime: crate::model::SubscriptionLifetime {
                ends_at: Some(at),
                ..Default::default()
            },
            ..subscription(json!({}))
        };
        let planned = subscription(json!({}));
        let later = Timestamp::from_millis(NOW.as_millis() + 1);
        assert!(!may_begin(&planned, &ends(NOW), NOW));
        assert!(may_begin(&planned, &ends(later), NOW));
    }

    #[test]
    fn another_creation_of_the_same_settings_gets_nothing_of_it() {
        let made = |id: u8| {
            let creation = Some(CreationRecord {
                id: CreationId::new([id; CREATION_ID_BYTES]),
                at: Some(NOW),
            });
            let created = SubscriptionCreation {
                topic: creation,
                subscription: creation,
                topic_at: NOW,
            };
            Subscription {
                created,
                ..subscription(json!({}))
            }
        };
        assert!(may_begin(&made(1), &made(1), NOW));
        assert!(!may_begin(&made(1), &made(2), NOW));
    }

    #[test]
    fn a_secret_that_has_ended_may_be_dropped_from_the_record() {
        let signing = |secrets: Vec<SigningSecret>| Subscription {
            signing: secrets,
            ..subscription(json!({}))
        };
        let secret = |text, end| SigningSecret::parse(text).unwrap().with_expiry(end);
        let later = Some(Timestamp::from_millis(NOW.as_millis() + 1));
        let both = |end| signing(vec![secret(FIRST, None), secret(SECOND, end)]);
        let one = signing(vec![secret(FIRST, None)]);
        assert!(may_begin(&both(Some(NOW)), &one, NOW));
        assert!(!may_begin(&both(later), &one, NOW));
        assert!(!may_begin(&both(None), &both(later), NOW));
    }
}
