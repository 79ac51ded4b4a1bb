//! Reading, deciding and showing the pressure.

use posthaste_core::stored::RefusedLetters;
use posthaste_core::stored::refused_letters::refused_letters_key;

use super::*;

/// A slow drain slows producers, then refuses them until the drain is normal.
#[tokio::test]
async fn slow_drain_slows_then_refuses_producers_until_normal() {
    let world = World::new();
    let mut monitor = world.monitor();
    let reader = world.reader();
    assert_eq!(
        monitor.poll_once().await.unwrap().effective_level(),
        PressureLevel::Normal
    );
    assert_eq!(
        reader.admit(ProducerTier::Standard).await.admission,
        Admission::Accept
    );
    // 900 messages at 10 a second are 90 seconds' work, which the second poll can tell.
    world.deliveries.set(900);
    let mut heard = Vec::new();
    for _ in 0..32 {
        world.clock.advance(POLL);
        world.drain.note_settled(20);
        monitor.poll_once().await.unwrap();
        heard.push(match reader.admit(ProducerTier::Standard).await.admission {
            Admission::Accept => 0,
            Admission::Delay(delay) => delay.as_secs(),
            Admission::Refuse { .. } => 99,
        });
    }
    assert_eq!(heard[..12], [0, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 55]);
    assert_eq!(heard[28..], [55, 55, 99, 99]);
    assert_eq!(
        reader.admit(ProducerTier::Internal).await.admission,
        Admission::Accept
    );
    world.deliveries.set(0);
    world.clock.advance(POLL);
    assert_eq!(
        monitor.poll_once().await.unwrap().effective_level(),
        PressureLevel::Normal
    );
    assert_eq!(
        reader.admit(ProducerTier::Standard).await.admission,
        Admission::Accept
    );
}

/// Refused dead letters wait in the queue as fresh ones do, so that its counts cannot tell them.
#[tokio::test]
async fn dead_letters_that_their_storage_refused_are_a_backlog() {
    let world = World::new();
    let mut monitor = world.monitor();
    let reading = |state: &PressureState| {
        let backlog = state.resource(Resource::DeadLetterBacklog).unwrap();
        (backlog.reading, backlog.level)
    };
    *world.dead_letters.0.lock().unwrap() = Some(QueueCounts {
        visible: 3,
        delayed: 5000,
        in_flight: 0,
    });
    let before = world.calls.count(PortOperation::Get);
    assert_eq!(
        reading(&monitor.poll_once().await.unwrap()),
        (3, PressureLevel::Normal)
    );
    assert_eq!(world.calls.count(PortOperation::Get) - before, 1);
    let mut letters = RefusedLetters::default();
    for _ in 0..2000 {
        letters.add_letter(START + Duration::from_mins(5));
    }
    for process in ["a", "b"] {
        let key = refused_letters_key(process);
        let put = world
            .store
            .put(&key, letters.render(), PutCondition::Always);
        put.await.unwrap();
    }
    world.clock.advance(POLL);
    assert_eq!(
        reading(&monitor.poll_once().await.unwrap()),
        (4003, PressureLevel::High)
    );
    world.clock.advance(Duration::from_mins(6));
    assert_eq!(
        reading(&monitor.poll_once().await.unwrap()),
        (3, PressureLevel::Normal)
    );
}

#[tokio::test]
async fn a_backlog_that_drains_fast_throttles_nobody() {
    let world = World::new();
    let mut monitor = world.monitor();
    world.deliveries.set(100_000);
    for _ in 0..400 {
        world.clock.advance(POLL);
        world.drain.note_settled(20_000);
        assert_eq!(
            monitor.poll_once().await.unwrap().effective_level(),
            PressureLevel::Normal
        );
    }
}

#[tokio::test]
async fn retries_and_what_is_being_posted_do_not_count() {
    let world = World::new();
    let mut monitor = world.monitor();
    *world.deliveries.0.lock().unwrap() = Some(QueueCounts {
        visible: 0,
        delayed: 100_000,
        in_flight: 100_000,
    });
    world.clock.advance(POLL);
    let state = monitor.poll_once().await.unwrap();
    assert_eq!(state.effective_level(), PressureLevel::Normal);
    assert_eq!(
        state.resource(Resource::SubmissionQueue).unwrap().reading,
        0
    );
}

#[tokio::test]
async fn every_number_of_the_probe_reaches_its_resource() {
    let world = World::new();
    world.dead_letters.set(7);
    *world.machine.0.lock().unwrap() = ProbeSample {
        database: Some(DatabaseResource::Disk(full(1))),
        log_disk: Some(full(2)),
        process_bytes: Some(3 << 30),
        memory: Some(full(4)),
        version_buckets: Some(5),
        batch_points: Some(6),
    };
    let state = world.monitor().poll_once().await.unwrap();
    let readings: Vec<_> = state
        .resources
        .iter()
        .map(|r| (r.resource, r.reading))
        .collect();
    let expected = [0, 5, 6, 1, 2, 3, 4, 7, 0];
    assert_eq!(
        readings,
        Resource::ALL.into_iter().zip(expected).collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn a_calm_sample_on_aws_sets_each_gauge_to_zero() {
    // A gauge at zero is not written there (shared/aws/src/telemetry), so that an idle stack has no
    // metrics of its own, which CloudWatch would bill. tests/aws/template counts on it.
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let world = World::new();
    world.machine.0.lock().unwrap().database = Some(DatabaseResource::InFlight);
    let mut monitor = world.monitor();
    for _ in 0..2 {
        monitor.poll_once().await.unwrap();
        world.clock.advance(POLL);
    }
    let text = recorder.handle().render();
    let mut lines: Vec<_> = text
        .lines()
        .filter(|one| !one.is_empty() && !one.starts_with('#'))
        .collect();
    lines.sort_unstable();
    let expected = [
        "PressureLevel{resource=\"database-disk\"} 0",
        "PressureLevel{resource=\"dead-letter-backlog\"} 0",
        "PressureLevel{resource=\"drain-time\"} 0",
        "PressureLevel{resource=\"submission-queue\"} 0",
        "PressureReading{resource=\"drain-time\"} 0",
        "PressureRefusedTierCount 0",
        "PressureTarpitInMs 0",
    ];
    assert_eq!(lines, expected);
}

#[tokio::test]
async fn a_full_disk_refuses_at_once_and_is_shown_in_the_gauges() {
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let world = World::new();
    let mut monitor = world.monitor();
    world.machine.0.lock().unwrap().database = Some(DatabaseResource::Disk(full(99)));
    let state = monitor.poll_once().await.unwrap();
    assert_eq!(state.refused_tiers(), ProducerTier::ALL);
    let text = recorder.handle().render();
    let gauges: Vec<_> = text
        .lines()
        .filter(|line| line.starts_with("PressureLevel"))
        .collect();
    assert_eq!(gauges.len(), state.resources.len(), "{text}");
    assert!(
        gauges.contains(&"PressureLevel{resource=\"database-disk\"} 2"),
        "{text}"
    );
    assert!(
        gauges.contains(&"PressureLevel{resource=\"submission-queue\"} 0"),
        "{text}"
    );
    assert!(
        !text.contains("log-disk"),
        "what cannot be read has no gauge: {text}"
    );
    assert!(text.contains("PressureRefusedTierCount 3"), "{text}");
    assert!(text.contains("PressureTarpitInMs 0"), "{text}");
    assert!(
        text.contains("PressureReading{resource=\"database-disk\"} 99"),
        "{text}"
    );
    assert!(
        text.contains("PressureReading{resource=\"submission-queue\"} 0"),
        "{text}"
    );
}

#[tokio::test]
async fn queue_readings_in_sqs_metrics_are_not_billed_twice() {
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let world = World::new();
    world.machine.0.lock().unwrap().database = Some(DatabaseResource::InFlight);
    world.monitor().poll_once().await.unwrap();
    let text = recorder.handle().render();
    let readings: Vec<_> = text
        .lines()
        .filter(|line| line.starts_with("PressureReading"))
        .collect();
    assert_eq!(
        readings,
        ["PressureReading{resource=\"drain-time\"} 0"],
        "{text}"
    );
}

/// Settings that make no sense, and disks that are too small, are refused at the start.
#[tokio::test]
async fn senseless_settings_and_too_small_disks_stop_the_start() {
    let mut world = World::new();
    world.machine.0.lock().unwrap().log_disk = Some(ByteUsage {
        used: 0,
        total: 1 << 30,
    });
    assert!(matches!(
        world.start(),
        Err(SettingsError::DiskTooSmall {
            resource: Resource::LogDisk,
            ..
        })
    ));
    world.settings.enable_resource_monitoring = false;
    assert!(world.start().is_ok());
    world.settings.interval = Duration::ZERO;
    let refused = world.start().err().map(|error| error.to_string());
    assert_eq!(
        refused.as_deref(),
        Some("ResourceMonitoringInterval is 0ns; expected 100ms to 240s")
    );
}

#[tokio::test]
async fn a_queue_that_cannot_be_counted_leaves_its_level_as_it_was() {
    let world = World::new();
    let mut monitor = world.monitor();
    world.dead_letters.set(4000);
    assert!(
        monitor
            .poll_once()
            .await
            .unwrap()
            .asks_for(PressureMeasure::Alarm)
    );
    *world.dead_letters.0.lock().unwrap() = None;
    world.clock.advance(POLL);
    let state = monitor.poll_once().await.unwrap();
    let backlog = state.resource(Resource::DeadLetterBacklog).unwrap();
    assert_eq!(
        (backlog.level, backlog.polls, backlog.read_at),
        (PressureLevel::High, 1, START)
    );
}

/// A resource that is forgotten leaves no gauge at its last level or reading.
#[tokio::test]
async fn forgotten_resource_leaves_no_gauge_at_its_last_level() {
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let world = World::new();
    let mut monitor = world.monitor();
    world.machine.0.lock().unwrap().memory = Some(full(99));
    assert_eq!(
        monitor.poll_once().await.unwrap().effective_level(),
        PressureLevel::High
    );
    world.machine.0.lock().unwrap().memory = None;
    for _ in 0..451 {
        world.clock.advance(POLL);
        monitor.poll_once().await.unwrap();
    }
    let text = recorder.handle().render();
    assert!(
        text.contains("PressureLevel{resource=\"system-memory\"} 0"),
        "{text}"
    );
    assert!(
        text.contains("PressureReading{resource=\"system-memory\"} 0"),
        "{text}"
    );
}

#[tokio::test]
async fn a_row_that_turns_nobody_away_is_shown_in_its_gauge() {
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let mut world = World::new();
    world.settings.profile = posthaste_core::pressure::PressureProfile::Exchange2013;
    world.dead_letters.set(4000);
    assert_eq!(
        world.monitor().poll_once().await.unwrap().effective_level(),
        PressureLevel::Normal
    );
    let text = recorder.handle().render();
    assert!(
        text.contains("PressureLevel{resource=\"dead-letter-backlog\"} 2"),
        "{text}"
    );
}

/// A disk below its formula is reported once, and again only after it fitted.
#[tokio::test]
async fn disk_below_its_formula_is_reported_once_until_it_fits() {
    let world = World::new();
    let mut monitor = world.monitor();
    let mut reported = |bytes| {
        let readings = ResourceReadings {
            log_disk: Some(ByteUsage {
                used: 0,
                total: bytes,
            }),
            ..ResourceReadings::default()
        };
        monitor
            .new_misfits(&readings)
            .into_iter()
            .map(|(resource, _)| resource)
            .collect::<Vec<_>>()
    };
    let seen = [100 << 30, 1 << 30, 1 << 29, 100 << 30, 1 << 30].map(&mut reported);
    let disk = || vec![Resource::LogDisk];
    assert_eq!(seen, [vec![], disk(), vec![], vec![], disk()]);
}
