//! Courses of things as the documents tell them.

use super::*;

/// Probes as soon as one is due, all of which fail, and answers when they were, in minutes.
fn probes(until: Duration) -> Vec<u64> {
    let settings = HealthSettings::default();
    let mut condition = condition_after(None, &failing(), NOW, &settings).unwrap();
    let mut probes = Vec::new();
    let mut at = NOW;
    while at < NOW + until {
        if condition.is_due(at) {
            probes.push(at.since(NOW).as_secs() / 60);
            let asked = probed(condition, "p", at + secs(90));
            condition = condition_after(Some(&asked), &probe_failed("p"), at, &settings).unwrap();
        }
        at = at + secs(1);
    }
    probes
}

#[test]
fn exchange_s_course_of_an_endpoint_that_stays_down() {
    assert_eq!(probes(mins(80)), [1, 2, 3, 13, 23, 33, 48, 63, 78]);
}

#[test]
fn a_day_of_it_costs_99_requests() {
    assert_eq!(probes(mins(24 * 60)).len(), 99);
}

#[test]
fn a_success_begins_anew_and_a_later_streak_is_a_first_glitch() {
    let settings = HealthSettings::default();
    let see = |before: Option<&TargetCondition>, seen: &Observation, after| {
        condition_after(before, seen, NOW + after, &settings).unwrap()
    };
    let down = condition(TargetPhase::Retry, 7, NOW + mins(5));
    let up = see(Some(&down), &Observation::Succeeded, mins(1));
    assert_eq!(
        (up.phase, up.since),
        (TargetPhase::Recovering, NOW + mins(1))
    );
    let again = see(Some(&up), &failing_since(NOW + mins(2)), mins(2));
    assert_eq!(
        (again.phase, again.hold, again.until),
        (TargetPhase::Glitch, 1, NOW + mins(3))
    );
}

#[test]
fn an_endpoint_that_asks_for_a_pause_is_asked_once_after_it() {
    let settings = HealthSettings::default();
    let see = |before: &TargetCondition, seen: &Observation, after| {
        condition_after(Some(before), seen, NOW + after, &settings)
    };
    let pause = condition_after(None, &asked(60, None), NOW, &settings).unwrap();
    assert!(pause.is_pause() && pause.until == NOW + secs(60));
    // What was under way when it was asked for changes its end alone, and only to a later one.
    for same in [
        asked(60, None),
        asked(10, None),
        failing(),
        Observation::Succeeded,
    ] {
        assert_eq!(see(&pause, &same, secs(1)), None, "{same:?}");
    }
    let longer = see(&pause, &asked(90, None), secs(1)).unwrap();
    assert_eq!((longer.hold, longer.until), (0, NOW + secs(90)));
    assert_eq!(
        see(&longer, &Observation::Forced, secs(2)).unwrap().phase,
        TargetPhase::Recovering
    );
    assert_eq!(
        decide_for_subscription(None, Some(&longer), NOW + secs(89), &settings),
        CircuitDecision::Delay {
            until: NOW + secs(90)
        }
    );
    let due = NOW + secs(90);
    assert!(longer.is_due(due));
    let asking = probed(longer, "p", due + secs(90));
    let well = see(
        &asking,
        &Observation::ProbeSucceeded { by: "p".to_owned() },
        secs(91),
    )
    .unwrap();
    assert_eq!((well.phase, well.asked), (TargetPhase::Recovering, false));
    // A probe that is asked to wait waits as long; one that fails otherwise is a first Glitch.
    let again = see(&asking, &asked(100, Some("p")), secs(91)).unwrap();
    assert_eq!(
        (again.hold, again.until, again.failures),
        (0, NOW + secs(100), 2)
    );
    let failed = see(&asking, &probe_failed("p"), secs(91)).unwrap();
    assert_eq!(
        (failed.hold, failed.until, failed.asked),
        (1, NOW + secs(151), false)
    );
}

#[test]
fn ten_pauses_in_a_row_are_a_glitch_and_three_glitches_a_retry() {
    let settings = HealthSettings::default();
    let mut at = NOW;
    let mut course = Vec::new();
    let ask = |at: Timestamp| RequestedPause {
        until: at + secs(20),
        last: BUSY,
        began: at,
        probe: Some("p".to_owned()),
    };
    let mut condition = condition_after(None, &Observation::Asked(ask(at)), at, &settings).unwrap();
    for _ in 0..14 {
        course.push((
            condition.phase,
            condition.hold,
            condition.until.since(at).as_secs(),
        ));
        at = condition.until;
        let asking = probed(condition, "p", at + secs(90));
        condition =
            condition_after(Some(&asking), &Observation::Asked(ask(at)), at, &settings).unwrap();
    }
    let pauses = std::iter::repeat_n((TargetPhase::Glitch, 0, 20), 9);
    let glitches = (1..=3).map(|hold| (TargetPhase::Glitch, hold, 60));
    let holds = [(TargetPhase::Retry, 1, 600), (TargetPhase::Retry, 2, 600)];
    assert_eq!(
        course,
        pauses.chain(glitches).chain(holds).collect::<Vec<_>>()
    );
}

#[test]
fn a_link_that_was_told_down_is_not_told_again_while_it_flaps() {
    let settings = HealthSettings::default();
    let down = with_notice_sent(
        &condition(TargetPhase::Retry, 1, NOW + mins(10)),
        StateChange::Down,
    );
    let up = condition_after(Some(&down), &Observation::Succeeded, NOW, &settings).unwrap();
    let again = condition_after(
        Some(&up),
        &failing_since(NOW + mins(1)),
        NOW + mins(1),
        &settings,
    )
    .unwrap();
    assert!(again.told_down && state_change(&again, NOW + mins(60), &settings).is_none());
}
