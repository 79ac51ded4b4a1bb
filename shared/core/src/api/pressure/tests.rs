//! The view of a state, by its age.

use std::time::Duration;

use super::*;
use serde_json::{Value, json};

const POLL: Timestamp = Timestamp::from_millis(60_000);

/// Drain time at Medium for 15 of 30 polls, of 2 s each; replays are refused already.
fn state() -> PressureState {
    let resource = json!({
        "resource": "drain-time", "level": "medium", "since": 30_000, "reading": 70, "readAt": 60_000,
        "thresholds": { "normal": 30, "medium": 60, "high": 300 },
        "acts": true, "polls": 15, "historyDepth": 30, "refusedFrom": "bulk", "measures": ["alarm"],
    });
    let mut state = PressureState::normal(POLL);
    state.tarpit_ms = 15_000;
    state.next_tarpit_ms = Some(20_000);
    state.first_step_ms = 10_000;
    state.stale_after_ms = 6_000;
    state.resources = vec![serde_json::from_value(resource).unwrap()];
    state
}

/// The view so many milliseconds after the poll.
fn shown(state: &PressureState, age_ms: u64) -> Value {
    serde_json::to_value(PressureView::new(
        Some(state),
        POLL + Duration::from_millis(age_ms),
    ))
    .unwrap()
}

/// The members that say what producers get.
fn told(view: &Value) -> [&Value; 6] {
    [
        "freshness",
        "level",
        "tarpit",
        "nextTarpit",
        "delayedTiers",
        "refusedTiers",
    ]
    .map(|name| &view[name])
}

#[test]
fn before_the_first_poll_nothing_is_under_pressure() {
    let check = |view: PressureView, freshness| {
        let expected = json!({
            "level": "normal", "freshness": freshness, "monitored": true, "tarpit": "PT0S",
            "delayedTiers": [], "refusedTiers": [], "resources": [],
        });
        assert_eq!(serde_json::to_value(view).unwrap(), expected);
    };
    check(PressureView::new(None, POLL), "missing");
    check(PressureView::unreadable(), "unreadable");
}

#[test]
fn a_state_is_shown_with_times_people_read() {
    let expected = json!({
        "level": "medium", "since": "1970-01-01T00:00:30.000Z", "polledAt": "1970-01-01T00:01:00.000Z",
        "freshness": "current", "monitored": true, "tarpit": "PT15S", "nextTarpit": "PT20S",
        "delayedTiers": ["standard"], "refusedTiers": ["bulk"],
        "resources": [{
            "resource": "drain-time", "level": "medium", "since": "1970-01-01T00:00:30.000Z", "reading": 70,
            "unit": "seconds", "readAt": "1970-01-01T00:01:00.000Z",
            "thresholds": { "normal": 30, "medium": 60, "high": 300 }, "acts": true, "polls": 15,
            "historyDepth": 30, "historyPassed": false, "refusedFrom": "bulk", "measures": ["alarm"],
        }],
    });
    assert_eq!(shown(&state(), 6_000), expected);
}

#[test]
fn a_stale_state_is_shown_as_the_first_step_that_is_left_of_it() {
    let view = shown(&state(), 6_001);
    let tiers = json!(["standard", "bulk"]);
    let expected = [
        &json!("stale"),
        &json!("medium"),
        &json!("PT10S"),
        &Value::Null,
        &tiers,
        &json!([]),
    ];
    assert_eq!(told(&view), expected);
    assert_eq!(view["resources"][0].get("refusedFrom"), None);
    assert_eq!(
        (
            &view["resources"][0]["acts"],
            &view["resources"][0]["polls"]
        ),
        (&json!(true), &json!(15))
    );
    // Whom nothing held does not wait because of age.
    let mut refusing = state();
    refusing.tarpit_ms = 0;
    assert_eq!(shown(&refusing, 6_001)["delayedTiers"], json!(["bulk"]));
}

#[test]
fn a_forgotten_state_is_shown_as_normal_with_what_was_read_last() {
    let view = shown(&state(), 900_001);
    let none = json!([]);
    let expected = [
        &json!("forgotten"),
        &json!("normal"),
        &json!("PT0S"),
        &Value::Null,
        &none,
        &none,
    ];
    assert_eq!(told(&view), expected);
    assert_eq!(
        (view.get("since"), &view["polledAt"]),
        (None, &json!("1970-01-01T00:01:00.000Z"))
    );
    let resource = &view["resources"][0];
    assert_eq!(
        (&resource["reading"], &resource["acts"]),
        (&json!(70), &json!(false))
    );
    assert_eq!(
        (resource.get("refusedFrom"), resource.get("measures")),
        (None, None)
    );
}

/// Delay of every acknowledgement is shown also where the state is forgotten.
#[test]
fn base_delay_is_shown_even_of_a_forgotten_state() {
    let mut base = state();
    base.base_ms = 2_000;
    let view = shown(&base, 900_001);
    let tiers = json!(["internal", "standard", "bulk"]);
    let expected = [
        &json!("forgotten"),
        &json!("normal"),
        &json!("PT2S"),
        &Value::Null,
        &tiers,
        &json!([]),
    ];
    assert_eq!(told(&view), expected);
}

#[test]
fn a_state_from_the_future_is_as_old_as_it_is_far_off() {
    let at = |ahead_ms| {
        let now = Timestamp::from_millis(POLL.as_millis() - ahead_ms);
        PressureView::new(Some(&state()), now).freshness
    };
    assert_eq!(
        [at(6_000), at(6_001)],
        [PressureFreshness::Current, PressureFreshness::Stale]
    );
    let mut far = state();
    far.at = POLL + Duration::from_mins(16);
    assert_eq!(
        PressureView::new(Some(&far), POLL).freshness,
        PressureFreshness::Forgotten
    );
}

/// Age says nothing where no resource is watched.
#[test]
fn unmonitored_state_stays_current_at_any_age() {
    let view = shown(&PressureState::unmonitored(POLL), 86_400_000);
    assert_eq!(
        (&view["freshness"], &view["monitored"]),
        (&json!("current"), &json!(false))
    );
}

#[test]
fn in_the_place_of_a_disk_the_unit_says_what_is_meant() {
    let mut state = state();
    assert_eq!(shown(&state, 0)["resources"][0]["unit"], "seconds");
    state.resources[0].in_flight = true;
    assert_eq!(
        shown(&state, 0)["resources"][0]["unit"],
        "percent of the messages that may be in flight"
    );
}
