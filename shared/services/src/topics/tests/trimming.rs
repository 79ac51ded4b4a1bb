//! Topics that are forgotten to free memory, and those that must not be.

use super::*;

/// The memory that is freed when the topic is known by this record.
fn freed(record: &str) -> EvictedAmount {
    EvictedAmount {
        entries: 1,
        bytes: "topics/orders.json".len() + record.len(),
    }
}

#[tokio::test]
async fn trimmed_topic_is_read_anew_and_its_bytes_are_counted() {
    let world = World::with(&FaultPlan::none());
    assert_eq!(world.registry.trim(), EvictedAmount::default());
    world.write(RECORD).await;
    assert_eq!(world.look().await, "there");
    assert_eq!(
        (world.registry.trim(), world.registry.trim()),
        (freed(RECORD), EvictedAmount::default())
    );
    assert_eq!(
        (world.look().await, world.calls.count(PortOperation::Get)),
        ("there", 2)
    );
    // The same after the store has said that nothing has changed.
    world.clock.advance(MAX_AGE);
    assert_eq!(
        (
            world.look().await,
            world.calls.count(PortOperation::GetIfChanged)
        ),
        ("there", 1)
    );
    assert_eq!(world.registry.trim(), freed(RECORD));
    world.store.delete("topics/orders.json").await.unwrap();
    assert_eq!(
        (world.look().await, world.registry.trim()),
        ("absent", freed(""))
    );
}

#[tokio::test]
async fn the_last_known_good_record_of_a_broken_one_is_never_trimmed() {
    for record in broken() {
        let world = World::with(&FaultPlan::none());
        world.write(RECORD).await;
        assert_eq!(world.look().await, "there");
        world.write(record.clone()).await;
        let name = TopicName::parse("orders").unwrap();
        // The last request found it broken, even if its caller did not take the known record.
        assert!(
            world
                .registry
                .topic_seen_after(&name, world.clock.now())
                .await
                .is_err()
        );
        for _ in 0..2 {
            assert_eq!(
                world.registry.trim(),
                EvictedAmount::default(),
                "{record:?}"
            );
            world.clock.advance(MAX_AGE);
            assert_eq!(world.look().await, "there", "{record:?}");
        }
        let mended = RECORD.replace("Billing", "Accounting");
        world.write(mended.clone()).await;
        world.clock.advance(MAX_AGE);
        assert_eq!(
            (world.look().await, world.registry.trim()),
            ("there", freed(&mended))
        );
    }
}

#[tokio::test]
async fn topic_in_use_is_not_trimmed_or_read_twice() {
    let world = World::with(&FaultPlan::none());
    world.write(RECORD).await;
    let topic = world
        .registry
        .topic(&TopicName::parse("orders").unwrap())
        .await
        .unwrap();
    assert_eq!(
        (world.registry.trim(), world.look().await, world.reads()),
        (EvictedAmount::default(), "there", 1)
    );
    drop(topic);
    assert_eq!(world.registry.trim(), freed(RECORD));
}

/// A record that turns out broken while it is read still leaves the last good one.
#[tokio::test]
async fn record_found_broken_during_a_trim_keeps_the_last_good_one() {
    let world = World::gated(&FaultPlan::none(), Duration::ZERO);
    world.write(RECORD).await;
    world.gate.add_permits(1);
    assert_eq!(world.look().await, "there");
    world.write("{").await;
    let mut look = pin!(world.look());
    assert!(waits(look.as_mut()));
    assert_eq!(world.registry.trim(), EvictedAmount::default());
    world.gate.add_permits(1);
    assert_eq!(
        (look.await, world.registry.trim()),
        ("there", EvictedAmount::default())
    );
}
