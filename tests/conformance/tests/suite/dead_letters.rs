//! Dead letters as Azure Event Grid's pages describe them: when they are written, where, and with
//! which contents. <https://learn.microsoft.com/azure/event-grid/delivery-and-retry#dead-letter-events>

use posthaste_tests::events::cloud_event;
use posthaste_tests_conformance::{HOOK, SUBSCRIPTION, TOPIC, World};
use serde_json::{Value, json};

/// The page's event in Event Grid's schema, word for word.
const EVENT_GRID: &str = include_str!("../../../../samples/eventgrid/blob-created.json");

fn once() -> Value {
    json!({ "retryPolicy": { "maxDeliveryAttempts": 1, "permanentStatuses": [] } })
}

/// Takes the times out of a dead letter, which must be there and in order, and what no page knows:
/// the identity of the subscription, the delivery's key and the `webhook-id`.
fn without_times(mut letter: Value, names: [&str; 2]) -> Value {
    let members = letter.as_object_mut().expect("a dead letter is an object");
    let times = names.map(|name| {
        members
            .remove(name)
            .and_then(|time| time.as_str().map(str::to_owned))
    });
    let [Some(published), Some(last)] = times else {
        panic!("{names:?} are missing")
    };
    assert!(published <= last, "{published} {last}");
    for names in [
        ["subscriptionIdentity", "subscriptionidentity"],
        ["deliveryKey", "deliverykey"],
        ["webhookId", "webhookid"],
    ] {
        let own = names.map(|name| members.remove(name));
        assert_eq!(own.iter().flatten().count(), 1, "{names:?}: {own:?}");
    }
    letter
}

fn laid_over(mut event: Value, members: &Value) -> Value {
    let event_members = event.as_object_mut().expect("an object");
    let more = members.as_object();
    event_members.extend(more.expect("an object").clone());
    event
}

#[test]
fn event_grid_example_has_the_members_and_values_of_the_page() {
    let world = World::new();
    world.endpoint.on(HOOK, &[404]);
    let events: Vec<Value> = serde_json::from_str(EVENT_GRID).expect("the page's event");
    world.deliver_event_grid(&events, &once());
    let letter = without_times(
        world.dead_letter(),
        ["publishTime", "lastDeliveryAttemptTime"],
    );
    let members = json!({
        "deadLetterReason": "MaxDeliveryAttemptsExceeded", "deliveryAttempts": 1,
        "lastDeliveryOutcome": "NotFound", "lastHttpStatusCode": 404,
    });
    assert_eq!(letter, laid_over(events[0].clone(), &members));
}

#[test]
fn cloud_events_example_has_the_members_and_values_of_the_page() {
    let world = World::new();
    world.endpoint.on(HOOK, &[404]);
    // The page leaves `specversion` out, without which it is no CloudEvent, and has a comma too
    // many.
    let event = json!({
        "specversion": "1.0", "id": "caee971c-3ca0-4254-8f99-1395b394588e", "source": "mysource",
        "dataversion": "1.0", "subject": "mySubject", "type": "fooEventType",
        "datacontenttype": "application/json", "data": { "prop1": "value1", "prop2": 5 },
    });
    world.deliver(&event, &once());
    let letter = without_times(
        world.dead_letter(),
        ["publishtime", "lastdeliveryattempttime"],
    );
    let members = json!({
        "deadletterreason": "MaxDeliveryAttemptsExceeded", "deliveryattempts": 1,
        "lastdeliveryoutcome": "NotFound", "lasthttpstatuscode": 404,
    });
    assert_eq!(letter, laid_over(event, &members));
}

#[test]
fn custom_schema_example_has_the_members_and_values_of_the_page() {
    let world = World::new();
    world.endpoint.on(HOOK, &[404]);
    let event = json!({ "prop1": "my property", "prop2": 5, "myEventType": "fooEventType" });
    // The page's mapping says `myEventType` where its result has it as a value.
    let mapping = json!({
        "eventType": { "defaultValue": "myEventType" },
        "subject": { "defaultValue": "subjectDefault" },
        "dataVersion": { "defaultValue": "1.0" },
    });
    world.deliver_custom(&event, &mapping, &once());
    let mut letter = without_times(
        world.dead_letter(),
        ["publishTime", "lastDeliveryAttemptTime"],
    );
    let members = letter.as_object_mut().expect("a dead letter is an object");
    let made = ["id", "eventTime"].map(|name| members.remove(name));
    assert!(
        made.iter()
            .all(|value| value.as_ref().is_some_and(Value::is_string)),
        "{made:?}"
    );
    let expected = json!({
        "eventType": "myEventType", "dataVersion": "1.0", "metadataVersion": "1",
        "topic": format!("/topics/{TOPIC}"), "subject": "subjectDefault",
        "deadLetterReason": "MaxDeliveryAttemptsExceeded", "deliveryAttempts": 1,
        "lastDeliveryOutcome": "NotFound", "lastHttpStatusCode": 404, "data": event,
    });
    assert_eq!(letter, expected);
}

#[test]
fn an_event_is_given_up_when_its_time_to_live_is_over() {
    let world = World::new();
    let expired = laid_over(
        cloud_event("1"),
        &json!({ "expirytime": "2001-01-01T00:00:00Z" }),
    );
    world.topic("CloudEvents", &json!({})).publish(&expired);
    let letter = world.dead_letter();
    assert_eq!(letter["deadletterreason"], "TimeToLiveExceeded");
    assert!(world.endpoint.all().is_empty());
}

#[test]
fn an_event_is_given_up_when_its_attempts_are_used_up() {
    let world = World::new();
    world.endpoint.on(HOOK, &[500]);
    let more = json!({ "retryPolicy": { "maxDeliveryAttempts": 3 } });
    world.topic("CloudEvents", &more).publish(&cloud_event("1"));
    let letter = world.dead_letter();
    assert_eq!(letter["deadletterreason"], "MaxDeliveryAttemptsExceeded");
    assert_eq!(world.endpoint.received(HOOK).len(), 3);
}

#[test]
fn a_400_or_413_is_a_dead_letter_at_once() {
    for (status, name) in [(400, "BadRequest"), (413, "PayloadTooLarge")] {
        let world = World::new();
        world.endpoint.on(HOOK, &[status]);
        world
            .topic("CloudEvents", &json!({}))
            .publish(&cloud_event("1"));
        let letter = world.dead_letter();
        assert_eq!(letter["deadletterreason"], "UndeliverableDueToClientError");
        assert_eq!(
            (&letter["lastdeliveryoutcome"], &letter["deliveryattempts"]),
            (&json!(name), &json!(1))
        );
    }
}

#[test]
fn without_dead_lettering_an_event_that_is_given_up_is_dropped() {
    let world = World::new();
    world.endpoint.on(HOOK, &[400]);
    let topic = world.topic(
        "CloudEvents",
        &json!({ "deadLetter": { "enabled": false } }),
    );
    topic.publish(&cloud_event("1"));
    posthaste_tests::patience::wait_until("a drop that is counted", || {
        (world.server.api().metric("posthaste_dropped_events_total") >= 1.0).then_some(())
    });
    assert!(world.home.dead_letter_files(TOPIC, SUBSCRIPTION).is_empty());
}

#[test]
fn an_object_s_name_is_in_upper_case_with_the_hour_and_a_guid() {
    let world = World::new();
    world.endpoint.on(HOOK, &[400]);
    world
        .topic("CloudEvents", &json!({}))
        .publish(&cloud_event("1"));
    world.dead_letter();
    let files = world.home.dead_letter_files(TOPIC, SUBSCRIPTION);
    let root = world.home.path().join("dead-letters");
    let name = files[0]
        .strip_prefix(&root)
        .expect("it lies there")
        .to_string_lossy()
        .into_owned();
    let parts: Vec<_> = name.split('/').collect();
    let [topic, subscription, dates @ .., file] = parts.as_slice() else {
        panic!("{name}")
    };
    assert_eq!(
        (*topic, *subscription, dates.len()),
        ("ORDERS", "BILLING", 4)
    );
    // Unpadded: 8, not 08.
    assert!(
        dates
            .iter()
            .all(|part| part.parse::<u32>().is_ok_and(|n| n.to_string() == *part)),
        "{name}"
    );
    let guid = file.strip_suffix(".json").expect("it is JSON");
    assert_eq!(
        guid.split('-').map(str::len).collect::<Vec<_>>(),
        [8, 4, 4, 4, 12]
    );
}

#[test]
fn an_object_is_an_array_of_dead_letters() {
    let world = World::new();
    world.endpoint.on(HOOK, &[400]);
    world
        .topic("CloudEvents", &json!({}))
        .publish(&cloud_event("1"));
    world.dead_letter();
    let file = world
        .home
        .dead_letter_files(TOPIC, SUBSCRIPTION)
        .swap_remove(0);
    let bytes = std::fs::read(file).expect("it can be read");
    let array: Value = serde_json::from_slice(&bytes).expect("it is JSON");
    assert_eq!(array.as_array().map(Vec::len), Some(1));
}
