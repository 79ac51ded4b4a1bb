//! Readers that come at once, records that are broken, and the greatest age of a known topic.

use super::*;

#[tokio::test]
async fn a_topic_is_read_once_in_an_interval_however_many_ask() {
    let world = World::with(&FaultPlan::none());
    world.write(RECORD).await;
    for interval in 1..=3 {
        for _ in 0..100 {
            assert_eq!(world.look().await, "there");
        }
        assert_eq!(world.reads(), interval);
        world.clock.advance(MAX_AGE);
    }
    assert_eq!(world.calls.count(PortOperation::Get), 1);
}

#[tokio::test]
async fn missing_topic_is_asked_for_once_per_interval() {
    let world = World::with(&FaultPlan::none());
    for _ in 0..100 {
        assert_eq!(world.look().await, "absent");
    }
    world.write(RECORD).await;
    assert_eq!((world.look().await, world.reads()), ("absent", 1));
    world.clock.advance(MAX_AGE);
    assert_eq!((world.look().await, world.reads()), ("there", 2));
}

#[tokio::test]
async fn many_that_ask_at_once_share_one_read() {
    let world = World::gated(&FaultPlan::none(), MAX_AGE);
    world.write(RECORD).await;
    for round in 1..=2 {
        let mut lookups = pin!(join_all((0..16).map(|_| world.look())));
        assert!(waits(lookups.as_mut()));
        world.gate.add_permits(1);
        assert_eq!(lookups.await, ["there"; 16]);
        assert_eq!((world.reads(), world.registry.flights.count()), (round, 0));
        world.clock.advance(MAX_AGE);
    }
}

#[tokio::test]
async fn dropped_reader_leaves_the_read_to_the_next_caller() {
    let world = World::gated(&FaultPlan::none(), MAX_AGE);
    world.write(RECORD).await;
    {
        let mut first = Box::pin(world.look());
        let mut second = pin!(world.look());
        assert!(waits(first.as_mut()) && waits(second.as_mut()));
        drop(first);
        world.gate.add_permits(1);
        assert_eq!(second.await, "there");
    }
    world.clock.advance(MAX_AGE);
    assert!(waits(pin!(world.look())));
    assert_eq!((world.reads(), world.registry.flights.count()), (1, 0));
}

#[tokio::test]
async fn an_error_is_shared_by_those_who_wait_and_by_nobody_after() {
    let denied = CallFault::Before(ErrorKind::Denied);
    let plan = FaultPlan::by(move |effect| (effect.number == 0).then(|| denied.clone()));
    let world = World::gated(&plan, MAX_AGE);
    world.write(RECORD).await;
    let mut lookups = pin!(join_all((0..4).map(|_| world.look())));
    assert!(waits(lookups.as_mut()));
    world.gate.add_permits(2);
    assert_eq!(lookups.await, ["unknown"; 4]);
    assert_eq!((world.look().await, world.reads()), ("there", 2));
}

#[tokio::test]
async fn registry_without_cache_age_reads_for_every_caller() {
    let world = World::gated(&FaultPlan::none(), Duration::ZERO);
    world.write(RECORD).await;
    world.gate.add_permits(16);
    assert_eq!(join_all((0..16).map(|_| world.look())).await, ["there"; 16]);
    assert_eq!(world.reads(), 16);
}

#[tokio::test]
async fn broken_record_keeps_the_last_good_one_until_mended() {
    for record in broken() {
        let world = World::with(&FaultPlan::none());
        world.write(RECORD).await;
        assert_eq!(world.look().await, "there");
        world.write(record.clone()).await;
        for _ in 0..3 {
            world.clock.advance(MAX_AGE);
            assert_eq!(world.look().await, "there", "{record:?}");
        }
        let mended = RECORD.replace("Billing", "Accounting");
        world.write(mended).await;
        world.clock.advance(MAX_AGE);
        assert_eq!(world.look().await, "there", "{record:?}");
        let topic = world
            .registry
            .topic(&TopicName::parse("orders").unwrap())
            .await
            .unwrap()
            .unwrap();
        assert!(topic.subscriptions.contains_key("accounting"));
    }
}

#[tokio::test]
async fn broken_record_that_was_never_good_is_unknown_not_absent() {
    for record in broken() {
        let world = World::with(&FaultPlan::none());
        world.write(record.clone()).await;
        assert_eq!(world.look().await, "unknown", "{record:?}");
    }
}

#[tokio::test]
async fn a_store_that_refuses_or_fails_says_nothing_about_the_topic() {
    for kind in [
        ErrorKind::Denied,
        ErrorKind::TimedOut,
        ErrorKind::NotFound,
        ErrorKind::Other,
    ] {
        let fault = CallFault::Before(kind);
        let plan = FaultPlan::by(move |effect| (effect.number > 0).then(|| fault.clone()));
        let world = World::with(&plan);
        world.write(RECORD).await;
        assert_eq!(world.look().await, "there");
        world.clock.advance(MAX_AGE);
        assert_eq!(
            (world.look().await, plan.faults()),
            ("there", 1),
            "{kind:?}"
        );
        // The only copy is kept.
        assert_eq!(world.registry.trim(), EvictedAmount::default());
        world.clock.advance(MAX_AGE);
        assert_eq!(
            (world.look().await, plan.faults()),
            ("there", 2),
            "{kind:?}"
        );
    }
}

#[tokio::test]
async fn a_record_that_is_gone_is_a_topic_that_is_gone() {
    let world = World::with(&FaultPlan::none());
    world.write(RECORD).await;
    assert_eq!(world.look().await, "there");
    world.store.delete("topics/orders.json").await.unwrap();
    world.clock.advance(MAX_AGE);
    assert_eq!(world.look().await, "absent");
}

#[tokio::test]
async fn a_record_that_says_that_it_is_deleted_is_no_topic() {
    let world = World::with(&FaultPlan::none());
    world.write(RECORD).await;
    assert_eq!(world.look().await, "there");
    let record = TopicRecord::parse(RECORD.as_bytes())
        .unwrap()
        .into_tombstone(world.clock.now());
    world.write(record.render()).await;
    world.clock.advance(MAX_AGE);
    assert_eq!(world.look().await, "absent");
}

#[tokio::test]
async fn known_topic_counts_for_a_moment_only_if_read_after_it() {
    let world = World::with(&FaultPlan::none());
    let name = TopicName::parse("orders").unwrap();
    let seen = async |moment| {
        world
            .registry
            .topic_seen_after(&name, moment)
            .await
            .unwrap()
            .is_some()
    };
    assert_eq!(world.look().await, "absent");
    let before = world.clock.now();
    world.clock.advance(Duration::from_secs(1));
    world.write(RECORD).await;
    // Young enough for every other caller.
    assert_eq!((world.look().await, world.reads()), ("absent", 1));
    assert!(seen(before).await);
    assert_eq!(world.reads(), 2);
    assert_eq!((world.look().await, world.reads()), ("there", 2));
    // A view of a moment after is not read again, as far as clocks can be trusted.
    world.clock.advance(Duration::from_secs(3));
    assert!(seen(Timestamp::from_millis(before.as_millis() - 1)).await);
    assert_eq!(world.reads(), 2);
    assert!(seen(before).await);
    assert_eq!(world.reads(), 3);
}

/// A store that fails says nothing of any moment, even where something is known.
#[tokio::test]
async fn failing_store_answers_for_no_moment_despite_a_known_topic() {
    for fault in [
        CallFault::Before(ErrorKind::Denied),
        CallFault::After(ErrorKind::TimedOut),
    ] {
        let plan = FaultPlan::by(move |effect| (effect.number > 0).then(|| fault.clone()));
        let world = World::with(&plan);
        world.write(RECORD).await;
        assert_eq!(world.look().await, "there");
        let name = TopicName::parse("orders").unwrap();
        let moment = world.clock.now();
        assert!(
            world
                .registry
                .topic_seen_after(&name, moment)
                .await
                .is_err()
        );
        // A later failure does not make the last known good record any younger either.
        world.clock.advance(MAX_AGE);
        assert_eq!(world.look().await, "there");
        assert!(
            world
                .registry
                .topic_seen_after(&name, moment + MAX_AGE)
                .await
                .is_err()
        );
    }
    let world = World::with(&FaultPlan::none());
    world.write(RECORD).await;
    assert_eq!(world.look().await, "there");
    world.write("{").await;
    let name = TopicName::parse("orders").unwrap();
    assert!(
        world
            .registry
            .topic_seen_after(&name, world.clock.now())
            .await
            .is_err()
    );
}
