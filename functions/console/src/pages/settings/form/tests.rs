//! Settings in the form and back.

use serde_json::json;
use url::form_urlencoded;

use super::*;

/// The fields as a browser sends them.
fn sent(form: &SettingsForm, changed: &[(&str, &str)]) -> FormFields {
    let mut body = form_urlencoded::Serializer::new(String::new());
    for (field, text) in form.texts() {
        let Some(text) = text else { continue };
        let other = changed.iter().find(|(member, _)| *member == field.member);
        let text = other.map_or(text, |(_, other)| other);
        body.append_pair(field.member, &text.replace('\n', "\r\n"));
    }
    FormFields::parse(body.finish().as_bytes()).unwrap()
}

fn subscription(settings: &Value) -> SettingsForm {
    SettingsForm::for_subscription(&posthaste_yaml::to_text(settings).unwrap()).unwrap()
}

/// The settings after fields were changed.
fn changed(settings: &Value, fields: &[(&str, &str)]) -> Value {
    let form = subscription(settings);
    let fields = sent(&form, fields);
    form.with_typed(&fields).apply()
}

fn samples() -> Vec<Value> {
    let endpoint = json!({ "url": "https://a.example/hooks?x=1#y" });
    let with = |name: &str, value: Value| json!({ "endpoint": endpoint, name: value });
    vec![
        json!({ "endpoint": endpoint }),
        json!({ "endpoint": {
            "url": "https://a.example/", "fallbackUrl": "https://b.example/", "timeout": "PT5S",
            "maxRequestsPerSecond": 0.5, "maxConcurrentRequests": 7, "validation": "CloudEvents",
        } }),
        with(
            "filter",
            json!({
                "includedEventTypes": ["no", "1.5", "a: b", "a, b", "#x"], "subjectBeginsWith": " x ",
                "isSubjectCaseSensitive": true,
                "advancedFilters": [{ "operatorType": "NumberIn", "key": "data.a", "values": [1, [2, 3]] }],
            }),
        ),
        with(
            "filter",
            json!({ "includedEventTypes": ["a\nb", " a", "", "\u{202e}x"], "subjectEndsWith": "a\nb" }),
        ),
        with(
            "retryPolicy",
            json!({
                "schedule": ["PT1M", "PT2M"], "permanentStatuses": [400, 404], "disableOnGone": false,
                "waitFloors": { "404": "PT1M" },
            }),
        ),
        with(
            "retryPolicy",
            json!({ "permanentStatuses": [], "maxDeliveryAttempts": null }),
        ),
        with("deadLetter", json!({ "enabled": false, "delay": "PT0S" })),
        with("recovery", json!({})),
        with(
            "batching",
            json!({ "maxEventsPerBatch": 5, "partialAcknowledgement": true }),
        ),
        with(
            "deliveryHeaders",
            json!([{ "name": "Authorization", "value": "(masked)", "isSecret": true }]),
        ),
        with("signing", json!({ "secrets": ["(masked:00000000)"] })),
        with("whileDisabled", json!("skip")),
        with("expirationTimeUtc", json!("2030-01-01T00:00:00Z")),
    ]
}

#[test]
fn form_of_settings_and_back_is_the_same_settings() {
    for settings in samples() {
        assert_eq!(changed(&settings, &[]), settings);
        let form = subscription(&settings);
        let fields = sent(&form, &[]);
        let base = form.base.clone();
        assert_eq!(form.with_typed(&fields).to_yaml(), base);
    }
    let topic = json!({
        "inputSchema": "Custom", "inputMapping": { "id": { "sourceField": "id" } }, "defaultTimeToLive": "P1D",
        "deliveryLog": "off", "recordUnmatched": true, "noticesTopic": "notices",
    });
    let form = SettingsForm::for_topic(&posthaste_yaml::to_text(&topic).unwrap()).unwrap();
    let fields = sent(&form, &[]);
    assert_eq!(form.with_typed(&fields).apply(), topic);
}

#[test]
fn changed_field_changes_its_member_alone() {
    for settings in samples() {
        let mut expected = settings.clone();
        expected["endpoint"]["timeout"] = "PT7S".into();
        assert_eq!(
            changed(&settings, &[("endpoint.timeout", "PT7S")]),
            expected
        );
    }
}

#[test]
fn emptied_field_leaves_its_member_out() {
    let settings = json!({
        "endpoint": { "url": "https://a.example/", "timeout": "PT5S" }, "deadLetter": { "enabled": false },
    });
    let fields = [("endpoint.timeout", ""), ("deadLetter.enabled", "")];
    let expected = json!({ "endpoint": { "url": "https://a.example/" } });
    assert_eq!(changed(&settings, &fields), expected);
    let without = changed(&settings, &[("endpoint.url", "")]);
    assert_eq!(without["endpoint"]["url"], "");
}

#[test]
fn typed_texts_become_values_of_their_kind() {
    let settings = json!({ "endpoint": { "url": "https://a.example/" } });
    let check = |member: &str, typed: &str, expected: Value| {
        let found = changed(&settings, &[(member, typed)]);
        assert_eq!(member_value(&found, member), Some(&expected), "{typed:?}");
    };
    check("endpoint.maxRequestsPerSecond", " 0.5 ", json!(0.5));
    check("endpoint.maxConcurrentRequests", "many", json!("many"));
    check(
        "retryPolicy.permanentStatuses",
        "400,, 404",
        json!([400, 404]),
    );
    check("retryPolicy.permanentStatuses", "4xx", json!(["4xx"]));
    check(
        "retryPolicy.schedule",
        "PT1M , PT2M",
        json!(["PT1M", "PT2M"]),
    );
    check(
        "filter.includedEventTypes",
        "a\n\n b, c \n",
        json!(["a", "b, c"]),
    );
    check("filter.isSubjectCaseSensitive", "maybe", json!("maybe"));
    check("filter.subjectBeginsWith", " x", json!(" x"));
}

/// A blank is no empty field: it stays, and where it is a mistake the check says so.
#[test]
fn typed_blank_is_kept_and_an_empty_text_stays() {
    let settings = json!({ "endpoint": { "url": "https://a.example/" } });
    let check = |member: &str, typed: &str, expected: Option<&Value>| {
        let found = changed(&settings, &[(member, typed)]);
        assert_eq!(member_value(&found, member), expected, "{member}");
    };
    check("filter.subjectBeginsWith", " ", Some(&json!(" ")));
    check("endpoint.timeout", "  ", Some(&json!("  ")));
    check("endpoint.maxRequestsPerSecond", " ", Some(&json!(" ")));
    check("retryPolicy.schedule", " ", Some(&json!([" "])));
    check("retryPolicy.permanentStatuses", " ", Some(&json!([" "])));
    check("filter.includedEventTypes", " \r\n ", None);
    check("filter.isSubjectCaseSensitive", "", None);
    let blank = json!({
        "endpoint": { "url": "https://a.example/" },
        "filter": { "subjectBeginsWith": "", "subjectEndsWith": "  " },
    });
    assert_eq!(changed(&blank, &[]), blank);
}

#[test]
fn value_that_a_field_cannot_hold_has_none() {
    let settings = json!({
        "endpoint": { "url": "https://a.example/\u{202e}" },
        "filter": { "includedEventTypes": ["a\nb"], "subjectBeginsWith": "a\u{0}" },
        "retryPolicy": { "permanentStatuses": [] },
    });
    let form = subscription(&settings);
    let hidden: Vec<_> = form
        .texts()
        .filter(|(_, text)| text.is_none())
        .map(|(field, _)| field.member)
        .collect();
    assert_eq!(
        hidden,
        [
            "endpoint.url",
            "filter.includedEventTypes",
            "filter.subjectBeginsWith",
            "retryPolicy.permanentStatuses",
        ]
    );
}

#[test]
fn text_with_a_mistake_has_no_form() {
    for text in [
        "",
        "endpoint: [",
        "endpoint: x",
        "endpoint: { url: [1] }",
        "endpoints: {}",
    ] {
        assert!(SettingsForm::for_subscription(text).is_err(), "{text:?}");
    }
    let long = format!("endpoint: {{ url: {} }}", "x".repeat(30_000));
    assert!(SettingsForm::for_subscription(&long).is_err());
}

/// The template's comments stay until something is typed, and its example is no endpoint.
#[test]
fn template_begins_without_an_endpoint() {
    let form = SettingsForm::for_subscription(NEW_SUBSCRIPTION).unwrap();
    let (_, url) = form.texts().next().unwrap();
    assert_eq!(url, Some(""));
    assert_eq!(form.to_yaml_tab(), NEW_SUBSCRIPTION);
    assert!(form.to_yaml().contains("url: \"\""), "{}", form.to_yaml());
}
