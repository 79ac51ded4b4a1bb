//! Notices that a link, or a subscription on it, is down or up again: from what workers noted, by
//! wake, over the queue to an endpoint, whatever fails on the way.

use std::collections::BTreeMap;
use std::time::Duration;

use posthaste_core::api::SubscriptionSettings;
use posthaste_core::circuit::{DeliveryTarget, HealthSettings, Observation, RequestFailure};
use posthaste_core::model::{OutcomeName, SubscriptionName, TopicName};
use posthaste_core::stored::{TopicRecord, layout};
use posthaste_local::StateStore;
use posthaste_ports::{Clock, ObjectStore, PutCondition};
use posthaste_services::LinkHealth;
use posthaste_simulation::{Answer, Faults, World};
use posthaste_testkit::ManualClock;
use posthaste_testkit::PortOperation;
use posthaste_testkit::faulty::{PortEffect, at_every_effect_of};
use serde_json::{Value, json};

const LINK: &str = "https://billing.example.com:443";
const OWN: &str = "https://billing.example.com:443 orders.billing";
const BUSY: RequestFailure = RequestFailure {
    outcome: OutcomeName::Busy,
    status: Some(503),
};

/// Time for which a change must last before a notice is sent.
const DELAY: Duration = Duration::from_mins(5);

/// A world in which the topic `orders`, with the subscription `billing`, has its notices sent to
/// `ops`.
async fn told_ops(world: World) -> World {
    world.subscribe(json!({})).await;
    world.tell_ops(json!({})).await;
    world.endpoint.answer([Answer::Status(204)]);
    world
}

fn target(text: &str) -> DeliveryTarget {
    DeliveryTarget::parse(text).unwrap()
}

/// The links as another worker knows them, whose store never fails.
fn book(world: &World) -> LinkHealth<StateStore, ManualClock> {
    LinkHealth::new(
        world.local.state_store(),
        world.clock.clone(),
        HealthSettings::default(),
    )
}

/// A target fails, with its probes, until it is in Retry.
async fn fall(world: &World, text: &str) {
    let book = book(world);
    let target = target(text);
    let failing = Observation::Failing {
        failures: 10,
        last: BUSY,
        began: world.clock.now(),
    };
    book.observe(&[(target.clone(), failing)]).await.unwrap();
    for _ in 0..3 {
        world.clock.advance(Duration::from_mins(1));
        book.claim_probe(&target, "probe").await.unwrap();
        let failed = Observation::ProbeFailed {
            by: "probe".to_owned(),
            last: BUSY,
        };
        book.observe(&[(target.clone(), failed)]).await.unwrap();
    }
}

async fn recover(world: &World, text: &str) {
    let book = book(world);
    book.read_all().await.unwrap();
    book.observe(&[(target(text), Observation::Succeeded)])
        .await
        .unwrap();
}

/// One run of wake, so much later, and the notices that come of it.
async fn told_after(world: &World, later: Duration) -> Vec<Value> {
    world.clock.advance(later);
    let _: Result<_, _> = world.try_wake().await;
    world.deliver_all().await;
    let requests = world.endpoint.take();
    requests
        .iter()
        .map(|request| serde_json::from_str(&request.body).unwrap())
        .collect()
}

fn kinds(notices: &[Value]) -> Vec<&str> {
    notices
        .iter()
        .map(|notice| notice["type"].as_str().unwrap())
        .collect()
}

/// Writes a topic like `orders` under another name.
async fn copy_of_orders(world: &World, name: &str) {
    let record = TopicRecord {
        name: TopicName::parse(name).unwrap(),
        ..world.record().await
    };
    world
        .write_state(
            &layout::topic_record_key(&record.name),
            String::from_utf8(record.render().to_vec()).unwrap(),
        )
        .await;
}

#[tokio::test]
async fn link_that_stays_down_is_announced_once_down_and_once_up() {
    let world = told_ops(World::new()).await;
    fall(&world, LINK).await;
    assert_eq!(
        told_after(&world, DELAY.saturating_sub(Duration::from_secs(1))).await,
        [] as [Value; 0]
    );
    let down = told_after(&world, Duration::from_secs(1)).await;
    assert_eq!(kinds(&down), ["dev.posthaste.link.down"]);
    let data = &down[0]["data"];
    assert_eq!(
        [&data["link"], &data["scope"], &data["state"]],
        [LINK, "link", "retry"]
    );
    assert_eq!(
        (&data["failures"], &data["lastHttpStatusCode"]),
        (&json!(13), &json!(503))
    );
    assert_eq!(
        told_after(&world, Duration::from_mins(1)).await,
        [] as [Value; 0]
    );
    recover(&world, LINK).await;
    assert_eq!(
        told_after(&world, DELAY.saturating_sub(Duration::from_secs(1))).await,
        [] as [Value; 0]
    );
    assert_eq!(
        kinds(&told_after(&world, Duration::from_secs(1)).await),
        ["dev.posthaste.link.up"]
    );
    assert_eq!(
        told_after(&world, Duration::from_mins(1)).await,
        [] as [Value; 0]
    );
    assert_eq!(
        world.links.read_all().await.unwrap().len(),
        0,
        "what is well again is forgotten"
    );
}

#[tokio::test]
async fn a_link_that_is_up_again_before_it_is_told_is_not_told_at_all() {
    let world = told_ops(World::new()).await;
    for _ in 0..3 {
        fall(&world, LINK).await;
        let mut told = told_after(&world, Duration::from_mins(4)).await;
        recover(&world, LINK).await;
        told.extend(told_after(&world, Duration::from_mins(6)).await);
        assert_eq!(told, [] as [Value; 0]);
    }
}

/// A link that falls again before the notice that it is up was down all the time.
#[tokio::test]
async fn link_that_falls_before_its_up_notice_counts_as_down() {
    let world = told_ops(World::new()).await;
    fall(&world, LINK).await;
    assert_eq!(told_after(&world, DELAY).await.len(), 1);
    recover(&world, LINK).await;
    assert_eq!(
        told_after(&world, Duration::from_mins(4)).await,
        [] as [Value; 0]
    );
    fall(&world, LINK).await;
    assert_eq!(told_after(&world, DELAY).await, [] as [Value; 0]);
    recover(&world, LINK).await;
    assert_eq!(
        kinds(&told_after(&world, DELAY).await),
        ["dev.posthaste.link.up"]
    );
}

#[tokio::test]
async fn every_topic_that_is_told_is_told_once_however_many_name_it() {
    let world = told_ops(World::new().telling_ops()).await;
    copy_of_orders(&world, "invoices").await;
    fall(&world, LINK).await;
    assert_eq!(told_after(&world, DELAY).await.len(), 1);
}

/// The program's own topic is notified of links on which no other topic asks for notices.
#[tokio::test]
async fn program_topic_is_notified_of_links_of_topics_without_notices() {
    let world = told_ops(World::new().telling_ops()).await;
    fall(&world, "https://elsewhere.example.com:443").await;
    assert_eq!(told_after(&world, DELAY).await.len(), 1);
    let silent = told_ops(World::new()).await;
    fall(&silent, "https://elsewhere.example.com:443").await;
    assert_eq!(told_after(&silent, DELAY).await, [] as [Value; 0]);
}

#[tokio::test]
async fn subscription_change_is_sent_to_its_own_topic_alone() {
    let world = told_ops(World::new()).await;
    fall(&world, OWN).await;
    let told = told_after(&world, DELAY).await;
    assert_eq!(kinds(&told), ["dev.posthaste.link.down"]);
    let data = &told[0]["data"];
    assert_eq!(
        [&data["scope"], &data["topic"], &data["subscription"]],
        ["subscription", "orders", "billing"]
    );
    fall(&world, "https://billing.example.com:443 elsewhere.billing").await;
    assert_eq!(told_after(&world, DELAY).await, [] as [Value; 0]);
}

#[tokio::test]
async fn a_topic_whose_fallback_is_on_the_link_is_told_too() {
    let world = told_ops(World::new()).await;
    let mut record = world.record().await;
    let endpoint =
        json!({ "url": "https://billing.example.com/", "fallbackUrl": "https://b.example/" });
    let settings: SubscriptionSettings =
        serde_json::from_value(json!({ "endpoint": endpoint })).unwrap();
    record
        .settings
        .subscriptions
        .insert(SubscriptionName::parse("billing").unwrap(), settings);
    world.write_record(record.render()).await;
    fall(&world, "https://b.example:443").await;
    assert_eq!(told_after(&world, DELAY).await.len(), 1);
}

#[tokio::test]
async fn a_topic_that_cannot_be_read_keeps_nobody_from_being_told() {
    let world = told_ops(World::new()).await;
    let key = layout::topic_record_key(&TopicName::parse("broken").unwrap());
    world
        .local
        .state_store()
        .put(&key, "{".into(), PutCondition::Always)
        .await
        .unwrap();
    fall(&world, LINK).await;
    assert_eq!(told_after(&world, DELAY).await.len(), 1);
}

#[tokio::test]
async fn subscription_disabled_by_an_operator_is_announced_once() {
    let world = told_ops(World::new()).await;
    let path = "/topics/orders/subscriptions/billing/disable";
    let (status, answer) = world.api().ask("POST", path, &Value::Null).await;
    assert_eq!(status, 200, "{answer}");
    let told = told_after(&world, Duration::from_mins(1)).await;
    assert_eq!(kinds(&told), ["dev.posthaste.subscription.disabled"]);
    world
        .write_state("telling/orders.billing", "{".to_owned())
        .await;
    let told = told_after(&world, Duration::from_mins(1)).await;
    assert_eq!(kinds(&told), [""; 0]);
    assert_eq!(world.keys("telling/").await, [] as [String; 0]);
}

#[tokio::test]
async fn missing_subscription_causes_no_notice_and_is_forgotten() {
    for gone in [
        "https://elsewhere.example.com:443 orders.billing",
        "https://billing.example.com:443 orders.gone",
        "https://billing.example.com:443 nowhere.billing",
    ] {
        let world = told_ops(World::new().telling_ops()).await;
        fall(&world, gone).await;
        assert_eq!(told_after(&world, DELAY).await, [] as [Value; 0], "{gone}");
        assert_eq!(world.links.read_all().await.unwrap().len(), 0, "{gone}");
    }
}

/// Changes of a subscription whose topic cannot be read are sent to the program's topic.
#[tokio::test]
async fn unreadable_topic_is_announced_to_the_program_topic() {
    let world = told_ops(World::new().telling_ops()).await;
    world
        .write_state("topics/broken.json", "{".to_owned())
        .await;
    fall(&world, "https://billing.example.com:443 broken.billing").await;
    assert_eq!(told_after(&world, DELAY).await.len(), 1);
    assert_eq!(world.links.read_all().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_subscription_is_called_as_its_creator_wrote_it() {
    let world = told_ops(World::new()).await;
    let mut record = world.record().await;
    record.name = TopicName::parse("Orders").unwrap();
    let (_, settings) = record.settings.subscriptions.pop_first().unwrap();
    record
        .settings
        .subscriptions
        .insert(SubscriptionName::parse("Billing").unwrap(), settings);
    world.write_record(record.render()).await;
    fall(&world, OWN).await;
    let told = told_after(&world, DELAY).await;
    assert_eq!(
        [&told[0]["data"]["topic"], &told[0]["data"]["subscription"]],
        ["Orders", "Billing"]
    );
    let subject = "/links/https://billing.example.com:443/topics/Orders/subscriptions/Billing";
    assert_eq!(told[0]["subject"], subject);
    assert_eq!(
        told_after(&world, Duration::from_mins(1)).await,
        [] as [Value; 0]
    );
}

#[tokio::test]
async fn changes_of_many_links_are_sent_and_marked_in_one_run() {
    let world = told_ops(World::new().telling_ops()).await;
    let failing = Observation::Failing {
        failures: 10,
        last: BUSY,
        began: world.clock.now(),
    };
    let links: Vec<_> = (0..30)
        .map(|number| target(&format!("https://l{number}.example.com:443")))
        .collect();
    let observe = async |observation: &dyn Fn() -> Observation| {
        for link in &links {
            book(&world)
                .observe(&[(link.clone(), observation())])
                .await
                .unwrap();
        }
    };
    observe(&|| failing.clone()).await;
    for _ in 0..3 {
        world.clock.advance(Duration::from_mins(1));
        for link in &links {
            book(&world).claim_probe(link, "probe").await.unwrap();
        }
        observe(&|| Observation::ProbeFailed {
            by: "probe".to_owned(),
            last: BUSY,
        })
        .await;
    }
    world.clock.advance(DELAY);
    world.calls.take();
    world.try_wake().await.unwrap();
    let calls = world.calls.take();
    let sends = calls
        .iter()
        .filter(|call| call.operation == PortOperation::SendBatch)
        .count();
    assert_eq!(sends, 1, "thirty notices for one topic: {calls:?}");
    world.deliver_all().await;
    assert_eq!(world.endpoint.take().len(), 30);
    assert_eq!(
        told_after(&world, Duration::from_mins(1)).await,
        [] as [Value; 0]
    );
}

#[tokio::test]
async fn unreadable_addressee_does_not_repeat_the_other_notices() {
    let world = told_ops(World::new().telling_ops()).await;
    copy_of_orders(&world, "invoices").await;
    let mut record = world.record().await;
    record.settings.notices_topic = Some(TopicName::parse("broken").unwrap());
    world.write_record(record.render()).await;
    world
        .write_state("topics/broken.json", "{".to_owned())
        .await;
    fall(&world, LINK).await;
    assert_eq!(told_after(&world, DELAY).await.len(), 1);
    assert_eq!(
        told_after(&world, Duration::from_mins(1)).await,
        [] as [Value; 0]
    );
}

/// The notices of a link's fall and rise while something fails, each change counted once.
async fn changes(faults: &Faults) -> Vec<String> {
    let world = told_ops(World::with(faults)).await;
    let mut told = Vec::new();
    fall(&world, LINK).await;
    // Messages that deliver could not finish are visible again after some minutes.
    let waits = [
        DELAY,
        Duration::from_mins(1),
        Duration::from_mins(10),
        Duration::from_mins(10),
    ];
    for later in waits {
        told.extend(told_after(&world, later).await);
    }
    recover(&world, LINK).await;
    for later in waits {
        told.extend(told_after(&world, later).await);
    }
    let text = |notice: &Value, member: &str| notice[member].as_str().unwrap().to_owned();
    let by_id: BTreeMap<_, _> = told
        .iter()
        .map(|it| (text(it, "id"), text(it, "type")))
        .collect();
    by_id.into_values().collect()
}

/// Tells whether an effect has to do with telling: not all of a long run are tried.
fn is_of_telling(effect: PortEffect<'_>) -> bool {
    effect.operation == PortOperation::SendBatch
        || [layout::LINKS, layout::TOPICS]
            .iter()
            .any(|prefix| effect.key.starts_with(prefix))
}

#[tokio::test]
async fn every_change_is_announced_whichever_effect_fails() {
    let expected = ["dev.posthaste.link.down", "dev.posthaste.link.up"];
    assert_eq!(Box::pin(changes(&Faults::none())).await, expected);
    at_every_effect_of(is_of_telling, async |plan, place| {
        let faults = Faults {
            queues: plan.clone(),
            ..Faults::in_state(plan)
        };
        assert_eq!(Box::pin(changes(&faults)).await, expected, "{place}");
    })
    .await;
}
