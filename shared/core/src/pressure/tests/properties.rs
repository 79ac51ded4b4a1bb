//! Rules that hold for all readings.

use proptest::prelude::*;

use super::*;

fn any_readings() -> impl Strategy<Value = ResourceReadings> {
    let count = || prop::option::weighted(0.9, 0..12_000_u64);
    let share = || {
        prop::option::weighted(
            0.9,
            (0..=100_u64).prop_map(|p| ByteUsage {
                used: p * GIB,
                total: 100 * GIB,
            }),
        )
    };
    let drain = prop::option::weighted(0.9, 0..400_u64);
    (
        count(),
        count(),
        count(),
        share(),
        share(),
        share(),
        share(),
        count(),
        drain,
    )
        .prop_map(
            |(
                visible,
                version_buckets,
                batch_points,
                database,
                log_disk,
                process,
                memory,
                dead_letters,
                drain_secs,
            )| {
                ResourceReadings {
                    visible,
                    version_buckets,
                    batch_points,
                    database: database.map(DatabaseSpace::Disk),
                    log_disk,
                    process_bytes: process.map(|p| p.used),
                    memory,
                    dead_letters,
                    drain_secs,
                }
            },
        )
}

fn any_settings() -> impl Strategy<Value = PressureSettings> {
    let profiles = [
        PressureProfile::Scaled,
        PressureProfile::Exchange2013,
        PressureProfile::Exchange2013German,
    ];
    prop::sample::select(profiles.to_vec()).prop_map(|profile| PressureSettings {
        profile,
        ..PressureSettings::default()
    })
}

proptest! {
    #[test]
    fn whatever_is_read_the_rules_hold(
        settings in any_settings(),
        polls in prop::collection::vec(any_readings(), 1..60),
    ) {
        let mut trace = Trace::new(settings.clone());
        for readings in polls {
            let before = trace.state.clone();
            let state = trace.poll(&readings).clone();
            prop_assert!(state.tarpit_wait() <= settings.tarpit.max);
            let change = state.tarpit_ms.abs_diff(before.tarpit_ms);
            prop_assert!(state.tarpit_ms == 0 || change <= 5000 || state.tarpit_ms == 10_000);
            for row in rows_of_profile(settings.profile) {
                let Some(now) = state.resource(row.resource) else { continue };
                let then = before.resource(row.resource);
                // Hysteresis is never skipped.
                if now.read_at == state.at {
                    let previous = then.map_or(PressureLevel::Normal, |r| r.level);
                    prop_assert_eq!(now.level, next_level(previous, now.reading, now.thresholds));
                }
                // Refused means that the history has passed, or that the row has none.
                if now.refused_from.is_some() {
                    prop_assert!(row.throttles && now.acts && now.level > PressureLevel::Normal);
                    prop_assert!(row.history_depth.is_none_or(|depth| now.polls >= depth));
                }
                // Once refused, refused until Normal; but who passes at Medium does so at once.
                if let Some(from) = then.and_then(|r| r.refused_from) {
                    let from = if now.level == PressureLevel::High { from } else { from.max(ProducerTier::Standard) };
                    prop_assert!(now.effective_level() == PressureLevel::Normal || now.refuses_tier(from));
                }
            }
            // Who is privileged is never worse off than who is not.
            let admitted = ProducerTier::ALL.map(|tier| matches!(trace.admit(tier), Admission::Refuse { .. }));
            prop_assert!(admitted.is_sorted());
            prop_assert_eq!(&PressureState::parse(&state.render()).unwrap(), &state);
        }
    }

    #[test]
    fn no_bytes_break_the_reader(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(PressureState::parse(&bytes).is_err());
    }
}
