//! Courses of things as the documents tell them.

use super::*;

/// Probes as soon as one is due, all of which fail, and answers when they were, in minutes.
fn probes(until: Duration) -> Vec<u64> {
    let settings = HealthSettings::default();
    let mut condition = observe(None, &failing(), NOW, &settings).unwrap();
    let (mut probes, mut at) = (Vec::new(), NOW);
    while at < NOW + until {
        if condition.is_due(at) {
            probes.push(at.since(NOW).as_secs() / 60);
            let asked = probed(condition, "p", at + secs(90));
            condition = observe(Some(&asked), &probe_failed("p"), at, &settings).unwrap();
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
    let see = |before: Option<&Condition>, seen: &Observation, after| {
        observe(before, seen, NOW + after, &settings).unwrap()
    };
    let down = condition(Phase::Retry, 7, NOW + mins(5));
    let up = see(Some(&down), &Observation::Succeeded, mins(1));
    assert_eq!((up.phase, up.since), (Phase::Recovering, NOW + mins(1)));
    let again = see(Some(&up), &failing_since(NOW + mins(2)), mins(2));
    assert_eq!((again.phase, again.hold, again.until), (Phase::Glitch, 1, NOW + mins(3)));
}

#[test]
fn a_link_that_was_told_down_is_not_told_again_while_it_flaps() {
    let settings = HealthSettings::default();
    let down = told(&condition(Phase::Retry, 1, NOW + mins(10)), News::Down);
    let up = observe(Some(&down), &Observation::Succeeded, NOW, &settings).unwrap();
    let again = observe(Some(&up), &failing_since(NOW + mins(1)), NOW + mins(1), &settings).unwrap();
    assert!(again.told_down && news(&again, NOW + mins(60), &settings).is_none());
}
