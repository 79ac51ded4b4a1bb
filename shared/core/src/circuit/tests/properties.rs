//! Rules that hold for any course of events.

use proptest::prelude::*;

use super::*;
use crate::model::Link;

/// An event that may happen at any moment.
#[derive(Debug, Clone)]
enum Happens {
    /// A delivery comes to this worker of several; it would succeed or fail.
    Delivery {
        worker: u8,
        succeeds: bool,
    },
    /// A worker that probes dies, and its probe has no result.
    Death {
        worker: u8,
    },
    Force,
    Time(u32),
}

fn happens() -> impl Strategy<Value = Happens> {
    let delivery = |(worker, succeeds)| Happens::Delivery { worker, succeeds };
    prop_oneof![
        6 => (0..4_u8, prop::bool::weighted(0.2)).prop_map(delivery),
        1 => (0..4_u8).prop_map(|worker| Happens::Death { worker }),
        1 => Just(Happens::Force),
        4 => (1..1200_u32).prop_map(Happens::Time),
    ]
}

fn target() -> DeliveryTarget {
    DeliveryTarget::Link(Link {
        is_tls: true,
        host: "a.example".into(),
        port: 443,
    })
}

proptest! {
    #[test]
    fn no_course_of_things_hammers_a_target_or_leaves_it_stuck(
        course in prop::collection::vec(happens(), 1..200)
    ) {
        let (settings, target) = (HealthSettings::default(), target());
        let (mut shard, mut now) = (LinkShard::default(), NOW);
        let mut probes: [Option<String>; 4] = Default::default();
        let mut failed_probe_at: Option<Timestamp> = None;
        for (step, it) in course.into_iter().enumerate() {
            match it {
                Happens::Time(secs) => now = now + Duration::from_secs(u64::from(secs)),
                Happens::Death { worker } => probes[usize::from(worker)] = None,
                Happens::Force => {
                    shard.apply_observation(&target, &Observation::Forced, now, &settings);
                    failed_probe_at = None;
                }
                Happens::Delivery { worker, succeeds } => {
                    let mine = &mut probes[usize::from(worker)];
                    // An answer to the probe that is under way.
                    if let Some(by) = mine.take() {
                        let seen = if succeeds { Observation::Succeeded } else { probe_failed(&by) };
                        let is_changed = shard.apply_observation(&target, &seen, now, &settings);
                        if succeeds {
                            failed_probe_at = None;
                        } else if is_changed {
                            failed_probe_at = Some(now);
                        }
                        continue;
                    }
                    match shard.decide_for_target(&target, now, &settings) {
                        CircuitDecision::Open | CircuitDecision::Ramp { .. } => {
                            let seen = if succeeds { Observation::Succeeded } else { failing_since(now) };
                            if shard.apply_observation(&target, &seen, now, &settings) {
                                failed_probe_at = Some(now);
                            }
                        }
                        CircuitDecision::Probe(_) => {
                            let by = format!("{worker}-{step}");
                            prop_assert!(shard.claim_probe(&target, &by, now, &settings).is_some());
                            // No other worker gets it.
                            prop_assert!(shard.claim_probe(&target, "other", now, &settings).is_none());
                            // Not hammered: a hold lies between a failure and the next probe.
                            if let Some(at) = failed_probe_at {
                                prop_assert!(now >= at + settings.glitch_hold);
                            }
                            *mine = Some(by);
                        }
                        CircuitDecision::Delay { until } => {
                            prop_assert!(until > now && until <= now + settings.glitch_hold);
                        }
                        CircuitDecision::Hold => {}
                    }
                }
            }
        }
        // Not stuck: after the longest hold and the longest probe there is a way through.
        let later = now + settings.later_hold + settings.probe_lease;
        let gate = shard.decide_for_target(&target, later, &settings);
        let is_stuck = matches!(gate, CircuitDecision::Hold | CircuitDecision::Delay { .. });
        prop_assert!(!is_stuck);
    }
}
