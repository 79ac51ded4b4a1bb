//! Every state and every observation, and every state and what becomes of a delivery.

use std::fmt::Write;

use super::*;

/// The states: well, each phase during its hold, when it is due, and while it is probed.
fn states() -> Vec<(&'static str, Option<TargetCondition>)> {
    let glitch = TargetPhase::Glitch;
    let retry = TargetPhase::Retry;
    let ahead = NOW + secs(30);
    vec![
        ("well", None),
        ("glitch 1", Some(condition(glitch, 1, ahead))),
        ("glitch 1 due", Some(condition(glitch, 1, NOW))),
        (
            "glitch 1 probed",
            Some(probed(condition(glitch, 1, NOW), "me", ahead)),
        ),
        (
            "glitch 1 probed by another",
            Some(probed(condition(glitch, 1, NOW), "another", ahead)),
        ),
        (
            "glitch 3 probed",
            Some(probed(condition(glitch, 3, NOW), "me", ahead)),
        ),
        ("retry 1", Some(condition(retry, 1, ahead))),
        ("retry 1 due", Some(condition(retry, 1, NOW))),
        (
            "retry 1 probed",
            Some(probed(condition(retry, 1, NOW), "me", ahead)),
        ),
        (
            "retry 3 probed",
            Some(probed(condition(retry, 3, NOW), "me", ahead)),
        ),
        (
            "retry 1 probed by another",
            Some(probed(condition(retry, 1, NOW), "another", ahead)),
        ),
        (
            "retry 1 lapsed lease",
            Some(probed(condition(retry, 1, NOW), "me", NOW)),
        ),
        (
            "recovering",
            Some(condition(TargetPhase::Recovering, 1, NOW)),
        ),
        ("paused", Some(pause(1, ahead))),
        ("paused due", Some(pause(1, NOW))),
        ("paused probed", Some(probed(pause(1, NOW), "me", ahead))),
        (
            "paused again while probed",
            Some(probed(pause(1, NOW + mins(2)), "me", ahead)),
        ),
        (
            "the ninth pause probed",
            Some(probed(pause(9, NOW), "me", ahead)),
        ),
        (
            "glitch 1 until asked",
            Some(as_asked(condition(glitch, 1, ahead))),
        ),
        (
            "retry 1 until asked",
            Some(as_asked(condition(retry, 1, ahead))),
        ),
        (
            "glitch 1 refused",
            Some(as_refused(condition(glitch, 1, ahead))),
        ),
        (
            "glitch 1 refused due",
            Some(as_refused(condition(glitch, 1, NOW))),
        ),
        (
            "glitch 3 refused probed",
            Some(as_refused(probed(condition(glitch, 3, NOW), "me", ahead))),
        ),
        (
            "retry 1 refused probed",
            Some(as_refused(probed(condition(retry, 1, NOW), "me", ahead))),
        ),
    ]
}

fn shown(condition: Option<&TargetCondition>) -> String {
    let Some(it) = condition else {
        return "well".to_owned();
    };
    let probe = if it.is_probed(NOW) { " probed" } else { "" };
    let asked = if it.asked { " asked" } else { "" };
    let refused = if it.refused { " refused" } else { "" };
    format!(
        "{:?} {} {:?}{probe}{asked}{refused}",
        it.phase,
        it.hold,
        it.until.since(NOW)
    )
}

#[test]
fn every_state_and_observation() {
    let observations = [
        ("streak", failing()),
        ("probe failed", probe_failed("me")),
        (
            "stale streak",
            failing_since(Timestamp::from_millis(NOW.as_millis() - 1)),
        ),
        (
            "given up",
            Observation::ProbeGivenUp {
                by: "me".to_owned(),
            },
        ),
        (
            "no such name",
            Observation::ProbeFoundNoName {
                by: "me".to_owned(),
            },
        ),
        ("success", Observation::Succeeded),
        ("force", Observation::Forced),
        ("refusals", refused()),
        (
            "probe refused",
            Observation::ProbeRefused {
                by: "me".to_owned(),
                last: UNAUTHORIZED,
            },
        ),
        ("asked 10 s", asked(10, None)),
        ("asked 900 s", asked(900, None)),
        ("probe asked", asked(900, Some("me"))),
        (
            "probe success",
            Observation::ProbeSucceeded {
                by: "me".to_owned(),
            },
        ),
    ];
    let mut table = String::new();
    for (name, state) in states() {
        for (seen, observation) in &observations {
            let after =
                condition_after(state.as_ref(), observation, NOW, &HealthSettings::default());
            let after = after.map_or_else(|| "-".to_owned(), |after| shown(Some(&after)));
            writeln!(table, "{name:<28}{seen:<14}{after}").unwrap();
        }
    }
    insta::assert_snapshot!(table);
}

#[test]
fn every_state_and_what_becomes_of_a_delivery() {
    let settings = HealthSettings::default();
    let mut table = String::new();
    for (link_name, link) in states() {
        for (name, own) in states() {
            let gate = decide_for_subscription(link.as_ref(), own.as_ref(), NOW, &settings);
            let gate = match gate {
                CircuitDecision::Delay { until } => format!("delay {:?}", until.since(NOW)),
                CircuitDecision::Ramp { at_once, until } => {
                    format!("{at_once} at once for {:?}", until.since(NOW))
                }
                CircuitDecision::Probe(probed) => {
                    format!(
                        "probe link {} subscription {}",
                        probed.link, probed.subscription
                    )
                }
                gate => format!("{gate:?}"),
            };
            writeln!(table, "{link_name:<28}{name:<28}{gate}").unwrap();
        }
    }
    insta::assert_snapshot!(table);
}

#[test]
fn the_ramp_doubles_every_five_seconds_and_ends() {
    let recovering = condition(TargetPhase::Recovering, 1, NOW);
    let check = |after: Duration, expected: Option<u32>| {
        let found = match decide_for_subscription(
            Some(&recovering),
            None,
            NOW + after,
            &HealthSettings::default(),
        ) {
            CircuitDecision::Ramp { at_once, .. } => Some(at_once),
            _ => None,
        };
        assert_eq!(found, expected, "{after:?}");
    };
    for (step, at_once) in [1, 2, 4, 8, 16, 32].into_iter().enumerate() {
        check(secs(5 * step as u64), Some(at_once));
        check(
            secs(5 * step as u64 + 5).saturating_sub(Duration::from_millis(1)),
            Some(at_once),
        );
    }
    check(secs(30), None);
    check(mins(60), None);
}

#[test]
fn a_link_is_told_down_and_up_after_a_while_and_once() {
    let settings = HealthSettings::default();
    let check = |condition: &TargetCondition, after, expected| {
        assert_eq!(
            state_change(condition, NOW + after, &settings),
            expected,
            "{condition:?} {after:?}"
        );
        let quiet = HealthSettings {
            suppress_state_changes: true,
            ..settings.clone()
        };
        assert_eq!(state_change(condition, NOW + after, &quiet), None);
    };
    let glitch = condition(TargetPhase::Glitch, 1, NOW);
    let retry = condition(TargetPhase::Retry, 1, NOW);
    let recovering = condition(TargetPhase::Recovering, 1, NOW);
    check(&glitch, mins(60), None);
    check(
        &retry,
        mins(5).saturating_sub(Duration::from_millis(1)),
        None,
    );
    check(&retry, mins(5), Some(StateChange::Down));
    check(&with_notice_sent(&retry, StateChange::Down), mins(60), None);
    check(&recovering, mins(60), None);
    let told_down = with_notice_sent(&recovering, StateChange::Down);
    check(&told_down, mins(4), None);
    check(&told_down, mins(5), Some(StateChange::Up));
    check(
        &with_notice_sent(&told_down, StateChange::Up),
        mins(60),
        None,
    );
    // An operator's wish says nothing about it; the first success does.
    let forced = TargetCondition {
        forced: true,
        ..told_down
    };
    check(&forced, mins(60), None);
    let answered = condition_after(
        Some(&forced),
        &Observation::Succeeded,
        NOW + mins(7),
        &settings,
    )
    .unwrap();
    check(&answered, mins(12).saturating_sub(secs(1)), None);
    check(&answered, mins(12), Some(StateChange::Up));
}

/// Nothing succeeded since an operator ended the hold.
#[test]
fn failure_after_a_forced_end_is_of_the_same_spell() {
    let settings = HealthSettings::default();
    let later = NOW + mins(1);
    for (forced, began) in [(true, NOW), (false, later)] {
        let before = TargetCondition {
            forced,
            ..condition(TargetPhase::Recovering, 1, NOW)
        };
        let seen = failing_since(later);
        let again = condition_after(Some(&before), &seen, later, &settings).unwrap();
        assert_eq!(again.failing_since, began, "{forced}");
    }
}

#[test]
fn finished_conditions_are_not_kept() {
    let settings = HealthSettings::default();
    let check = |condition: &TargetCondition, after, expected| {
        assert_eq!(
            is_over(condition, NOW + after, &settings),
            expected,
            "{condition:?} {after:?}"
        );
    };
    check(&pause(1, NOW), mins(60).saturating_sub(secs(1)), false);
    check(&pause(1, NOW), mins(60), true);
    check(
        &as_asked(condition(TargetPhase::Glitch, 1, NOW)),
        mins(60),
        false,
    );
    let recovering = condition(TargetPhase::Recovering, 1, NOW);
    check(&recovering, mins(5).saturating_sub(secs(1)), false);
    check(&recovering, mins(5), true);
    check(
        &with_notice_sent(&recovering, StateChange::Down),
        mins(60),
        false,
    );
    check(
        &with_notice_sent(&recovering, StateChange::Down),
        mins(48 * 60),
        true,
    );
    let retry = condition(TargetPhase::Retry, 1, NOW + mins(10));
    check(&retry, mins(10 + 48 * 60).saturating_sub(secs(1)), false);
    check(&retry, mins(10 + 48 * 60), true);
}
