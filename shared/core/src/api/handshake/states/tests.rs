use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::api::EndpointValidation;
use crate::api::handshake::judge_failure;

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

fn code() -> SecretText {
    SecretText::new("the-code")
}

fn subscription(validation: &str, status: Option<StatusView>) -> SubscriptionSettings {
    let endpoint = json!({ "url": "https://a.example/", "validation": validation });
    let settings = serde_json::from_value(json!({ "endpoint": endpoint })).unwrap();
    SubscriptionSettings { status, ..settings }
}

fn consent(url: &str) -> ConsentView {
    ConsentView {
        url: url.to_owned(),
        validation: EndpointValidation::CloudEvents,
        at: IsoTimestamp(Timestamp::EPOCH),
        allowed_requests_per_minute: None,
    }
}

/// A status since the epoch, with a consent to the URL it has.
fn status(state: StatusState) -> StatusView {
    StatusView {
        consent: Some(consent("https://a.example/")),
        ..StatusView::new(state, None, Timestamp::EPOCH)
    }
}

fn begin(code: &SecretText) -> NewHandshake<'_> {
    NewHandshake { now: NOW, code }
}

fn write(present: Option<StatusView>, validation: &str) -> StatusView {
    let present = present.map(|status| subscription(validation, Some(status)));
    status_after_write(
        present.as_ref(),
        &subscription(validation, None).endpoint,
        begin(&code()),
    )
}

fn do_to(
    action: SubscriptionAction,
    state: StatusView,
    validation: &str,
) -> Result<StatusState, String> {
    let settings = subscription(validation, Some(state));
    status_after_action(action, &settings, begin(&code()))
        .map(|status| status.state)
        .map_err(|wrong| wrong.to_string())
}

/// A status in which a handshake is under way.
fn asked(state: StatusState) -> SubscriptionSettings {
    let handshake = HandshakeView {
        code: Some(code()),
        expires_at: IsoTimestamp(NOW + Duration::from_mins(10)),
        asked_at: None,
    };
    subscription(
        "CloudEvents",
        Some(StatusView {
            handshake: Some(handshake),
            ..status(state)
        }),
    )
}

fn states() -> [StatusState; 5] {
    use StatusState::{Active, Disabled, Failed, Paused, Pending};
    [Active, Pending, Paused, Failed, Disabled]
}

#[test]
fn writing_asks_who_has_not_consented_to_this() {
    assert_eq!(write(None, "none").state, StatusState::Active);
    let new = write(None, "CloudEvents");
    assert_eq!((new.state, new.since.0), (StatusState::Pending, NOW));
    assert_eq!(
        new.handshake.unwrap().expires_at.0,
        NOW + Duration::from_mins(10)
    );
    // As it was: it goes on.
    let active = status(StatusState::Active);
    assert_eq!(write(Some(active.clone()), "CloudEvents"), active);
    let elsewhere = StatusView {
        consent: Some(consent("https://b.example/")),
        ..active.clone()
    };
    assert_eq!(
        write(Some(elsewhere), "CloudEvents").state,
        StatusState::Pending
    );
    assert_eq!(write(Some(active), "EventGrid").state, StatusState::Pending);
}

#[test]
fn writing_makes_active_again_what_has_failed() {
    for state in [StatusState::Failed, StatusState::Pending] {
        let expected = StatusView::new(StatusState::Active, None, NOW);
        assert_eq!(
            write(Some(StatusView::new(state, None, Timestamp::EPOCH)), "none"),
            expected
        );
        assert_eq!(
            write(Some(status(state)), "CloudEvents").state,
            StatusState::Pending
        );
    }
}

#[test]
fn writing_leaves_what_is_paused_as_it_is() {
    let paused = status(StatusState::Paused);
    assert_eq!(write(Some(paused.clone()), "CloudEvents"), paused);
    assert_eq!(
        write(Some(paused), "EventGrid"),
        StatusView::new(StatusState::Paused, None, Timestamp::EPOCH)
    );
}

/// The state after a write to the same endpoint, to another URL, and with another way to be asked.
fn written_here_and_elsewhere(present: &SubscriptionSettings) -> [StatusView; 3] {
    let same = present.endpoint.clone();
    let moved = EndpointSettings {
        url: "https://b.example/".to_owned(),
        ..same.clone()
    };
    let otherwise = EndpointSettings {
        validation: EndpointValidation::EventGrid,
        ..same.clone()
    };
    let new = SecretText::new("new");
    [same, moved, otherwise]
        .map(|endpoint| status_after_write(Some(present), &endpoint, begin(&new)))
}

#[test]
fn disabled_subscription_stays_so_until_its_endpoint_changes() {
    let disabled = status(StatusState::Disabled);
    let present = subscription("CloudEvents", Some(disabled.clone()));
    let [same, moved, otherwise] = written_here_and_elsewhere(&present);
    assert_eq!(same, disabled);
    assert_eq!([moved.state, otherwise.state], [StatusState::Pending; 2]);
    let present = subscription("none", Some(disabled));
    let [same, moved, _] = written_here_and_elsewhere(&present);
    assert_eq!(
        [same.state, moved.state],
        [StatusState::Disabled, StatusState::Active]
    );
}

#[test]
fn pending_handshake_keeps_its_code_until_its_endpoint_changes() {
    let present = asked(StatusState::Pending);
    let [same, moved, otherwise] = written_here_and_elsewhere(&present);
    assert_eq!(Some(same), present.status);
    for other in [moved, otherwise] {
        assert_eq!(other.handshake.unwrap().code, Some(SecretText::new("new")));
    }
    // The handshake's time is over: the endpoint is asked again.
    let later = NewHandshake {
        now: NOW + Duration::from_mins(10),
        code: &SecretText::new("new"),
    };
    let again = status_after_write(Some(&present), &present.endpoint, later);
    assert_eq!(again.handshake.unwrap().code, Some(SecretText::new("new")));
}

#[test]
fn silence_takes_no_consent_back() {
    use StatusState::{Active, Disabled, Failed, Paused, Pending};
    let silence = judge_failure("timed out without an answer");
    for state in [Active, Paused, Disabled] {
        let before = asked(state).status.unwrap();
        let after = status_after_handshake(&asked(state), &code(), &silence, NOW).unwrap();
        assert_eq!(
            (after.state, after.since, after.handshake),
            (state, before.since, None)
        );
        assert_eq!(after.consent, before.consent, "{state:?}");
    }
    for state in [Pending, Failed] {
        assert_eq!(
            status_after_handshake(&asked(state), &code(), &silence, NOW)
                .unwrap()
                .state,
            Failed
        );
    }
}

/// An endpoint that was asked and may still call back is not asked with the same code again.
#[test]
fn answered_handshake_is_not_asked_again_with_the_same_code() {
    let present = asked(StatusState::Pending);
    assert_eq!(
        present
            .status
            .as_ref()
            .unwrap()
            .handshake
            .as_ref()
            .unwrap()
            .code_to_ask_with(),
        Some(&code())
    );
    let later = HandshakeResult::Awaited {
        said: "405".to_owned(),
    };
    let status = status_after_handshake(&present, &code(), &later, NOW).unwrap();
    assert_eq!(status.handshake.unwrap().code_to_ask_with(), None);
}

/// An endpoint that was not asked to the end is told from one that did not consent.
#[test]
fn unfinished_handshake_is_told_from_a_missing_consent() {
    let until = NOW + Duration::from_mins(10);
    let reason = |status: StatusView| status.effective_at(until).reason.unwrap();
    let present = asked(StatusState::Pending);
    let unasked = "the endpoint did not consent in time: it was not asked to the end, which validating or \
                   writing the subscription does";
    assert_eq!(reason(present.status.clone().unwrap()), unasked);
    let later = HandshakeResult::Awaited {
        said: "it answered 405".to_owned(),
    };
    let silent =
        "the endpoint did not consent in time: the endpoint has yet to consent: it answered 405";
    assert_eq!(
        reason(status_after_handshake(&present, &code(), &later, NOW).unwrap()),
        silent
    );
}

#[test]
fn each_action_has_the_states_from_which_it_leads() {
    use StatusState::{Active, Disabled, Paused, Pending};
    use SubscriptionAction::{Disable, Enable, Force, Pause, Resume, Validate};
    let table: [(SubscriptionAction, [Option<StatusState>; 5]); 6] = [
        (
            Validate,
            [
                Some(Active),
                Some(Pending),
                Some(Paused),
                Some(Pending),
                Some(Disabled),
            ],
        ),
        (Pause, [Some(Paused), None, None, None, None]),
        (Resume, [None, None, Some(Active), None, None]),
        (Enable, [None, None, None, Some(Pending), Some(Pending)]),
        (
            Disable,
            [
                Some(Disabled),
                Some(Disabled),
                Some(Disabled),
                Some(Disabled),
                None,
            ],
        ),
        (Force, [Some(Active), None, None, None, None]),
    ];
    for (action, row) in table {
        for (state, expected) in states().into_iter().zip(row) {
            let found = do_to(action, status(state), "CloudEvents").ok();
            assert_eq!(found, expected, "{action:?} of {state:?}");
        }
    }
}

#[test]
fn an_impossible_action_says_what_it_needs() {
    let wrong = do_to(
        SubscriptionAction::Resume,
        status(StatusState::Active),
        "none",
    )
    .unwrap_err();
    assert_eq!(wrong, "it is Active, and only a Paused one can be resumed");
    let wrong = do_to(
        SubscriptionAction::Validate,
        status(StatusState::Active),
        "none",
    )
    .unwrap_err();
    assert_eq!(
        wrong,
        "its endpoint.validation is none, so there is nothing to validate"
    );
}

/// A subscription that was paused without a consent to this endpoint is asked when resumed.
#[test]
fn resuming_without_a_consent_to_this_endpoint_asks_it() {
    let elsewhere = StatusView {
        consent: Some(consent("https://b.example/")),
        ..status(StatusState::Paused)
    };
    assert_eq!(
        do_to(SubscriptionAction::Resume, elsewhere.clone(), "CloudEvents"),
        Ok(StatusState::Pending)
    );
    assert_eq!(
        do_to(SubscriptionAction::Resume, elsewhere, "none"),
        Ok(StatusState::Active)
    );
}

#[test]
fn a_handshake_s_end_decides_over_what_is_to_be_delivered() {
    use StatusState::{Active, Disabled, Failed, Paused, Pending};
    let end = |state, answer: &HandshakeResult| {
        status_after_handshake(&asked(state), &code(), answer, NOW)
            .unwrap()
            .state
    };
    let yes = HandshakeResult::Consented {
        rate: AllowedRate(Some(60)),
    };
    let later = HandshakeResult::Awaited {
        said: "405".to_owned(),
    };
    let no = HandshakeResult::Refused {
        reason: "no".to_owned(),
    };
    for state in [Active, Pending, Failed] {
        assert_eq!(
            [&yes, &later, &no].map(|answer| end(state, answer)),
            [Active, Pending, Failed],
            "{state:?}"
        );
    }
    for state in [Paused, Disabled] {
        assert_eq!(
            [&yes, &later, &no].map(|answer| end(state, answer)),
            [state; 3]
        );
    }
}

#[test]
fn a_consent_is_kept_with_what_was_asked() {
    let answer = HandshakeResult::Consented {
        rate: AllowedRate(Some(60)),
    };
    let status =
        status_after_handshake(&asked(StatusState::Pending), &code(), &answer, NOW).unwrap();
    let expected = ConsentView {
        at: IsoTimestamp(NOW),
        allowed_requests_per_minute: Some(60),
        ..consent("https://a.example/")
    };
    assert_eq!(
        (status.consent, status.handshake, status.since.0),
        (Some(expected), None, NOW)
    );
}

#[test]
fn a_handshake_that_is_not_under_way_any_more_changes_nothing() {
    let no = HandshakeResult::Refused {
        reason: "no".to_owned(),
    };
    assert_eq!(
        status_after_handshake(
            &asked(StatusState::Pending),
            &SecretText::new("older"),
            &no,
            NOW
        ),
        None
    );
    let called_back = subscription("CloudEvents", Some(status(StatusState::Active)));
    assert_eq!(
        status_after_handshake(&called_back, &code(), &no, NOW),
        None
    );
}

#[test]
fn a_call_back_counts_until_its_deadline() {
    let call = |after: u64| {
        let now = NOW + Duration::from_millis(after);
        called_back(
            &asked(StatusState::Pending),
            &code(),
            AllowedRate(None),
            now,
        )
        .map(|status| status.state)
    };
    assert_eq!(call(599_999), Some(StatusState::Active));
    assert_eq!(call(600_000), None);
}

#[test]
fn missing_consent_counts_as_failed_since_the_deadline() {
    let until = NOW + Duration::from_mins(10);
    let pending = asked(StatusState::Pending).status.unwrap();
    assert_eq!(
        pending
            .effective_at(until + Duration::from_hours(1))
            .since
            .0,
        until
    );
    assert_eq!(pending.effective_at(until).state, StatusState::Failed);
    let just_before = Timestamp::from_millis(until.as_millis() - 1);
    assert_eq!(pending.effective_at(just_before), pending);
    let active = asked(StatusState::Active)
        .status
        .unwrap()
        .effective_at(until);
    assert_eq!(
        (active.state, active.handshake),
        (StatusState::Active, None)
    );
}

fn any_status() -> impl Strategy<Value = StatusView> {
    let consents = prop::option::of(prop::sample::select(vec![
        "https://a.example/",
        "https://b.example/",
    ]));
    let handshakes = prop::option::of(0_u64..2_000_000);
    (
        prop::sample::select(states().to_vec()),
        consents,
        handshakes,
    )
        .prop_map(|(state, url, expires)| StatusView {
            consent: url.map(consent),
            handshake: expires.map(|ms| HandshakeView {
                code: Some(code()),
                expires_at: IsoTimestamp(Timestamp::from_millis(NOW.as_millis() - 1_000_000 + ms)),
                asked_at: None,
            }),
            ..StatusView::new(state, None, Timestamp::EPOCH)
        })
}

proptest! {
    /// No course of actions makes a subscription active without a consent to what it asks for now, unless it
    /// was active.
    #[test]
    fn nothing_becomes_active_without_a_consent(
        status in any_status(),
        action in prop::sample::select(vec![
            SubscriptionAction::Validate, SubscriptionAction::Pause, SubscriptionAction::Resume, SubscriptionAction::Enable, SubscriptionAction::Disable, SubscriptionAction::Force,
        ]),
    ) {
        let settings = subscription("CloudEvents", Some(status.clone()));
        let was_active = status.effective_at(NOW).state == StatusState::Active;
        let written = status_after_write(Some(&settings), &settings.endpoint, begin(&code()));
        for after in status_after_action(action, &settings, begin(&code())).ok().into_iter().chain([written]) {
            if after.state == StatusState::Active && !was_active {
                prop_assert!(after.consent.is_some_and(|consent| consent.is_for(&settings.endpoint)));
            }
        }
    }
}
